//! One call at a time, sent once: for tools that show what a cluster says, and decide themselves what to do about a failure.
//!
//! A [`Client`](super::Client) repeats calls, remembers the leader and tells refusals apart. A [`Caller`] does the least that
//! still is a call of a cluster: it tries the nodes in turn while nothing has been sent, and goes where a node that does not
//! lead points to, once.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::Answer;
use super::exchange::{Broken, exchange, prepared, whole};
use super::lines::Lines;
use super::lines::{BodyPieces, LongAnswer, body_of};
use super::nodes::{alike, parsed};
use super::pool::Tls;
use super::pool::connections;
use crate::call_error::CallError;
use crate::clock::Clock;
use crate::problem::Tried;

/// A node in the same room answers a connection in a millisecond, one across the world in half a second.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Looking never waits for a majority.
pub const LOOK_MAX: Duration = Duration::from_secs(5);

/// After it the next node is asked, too: longer than any answer of a healthy node takes, shorter than people wait.
const HEDGE: Duration = Duration::from_millis(700);

/// A hand-over waits until the heir has caught up.
pub const ACT_MAX: Duration = Duration::from_secs(60);

/// What to ask for.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Option<Vec<u8>>,
    /// How long the whole answer may take.
    pub within: Duration,
}

impl Request {
    pub fn new(method: Method, path: impl Into<String>) -> Request {
        let within = if method.is_safe() { LOOK_MAX } else { ACT_MAX };
        Request { method, path: path.into(), headers: Vec::new(), body: None, within }
    }

    pub fn get(path: impl Into<String>) -> Request {
        Request::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>, body: &Value) -> Request {
        Request::new(Method::POST, path).body(body.to_string())
    }

    pub fn body(mut self, json: impl Into<Vec<u8>>) -> Request {
        self.body = Some(json.into());
        self
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    pub fn within(mut self, within: Duration) -> Request {
        self.within = within;
        self
    }
}

/// The way to any node, with its bounds. A clone shares connections.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
    credential: Option<String>,
}

impl Caller {
    /// The admin token is for orders, where the cluster asks for it.
    pub fn new(admin_token: Option<String>) -> Result<Caller, CallError> {
        Caller::with_tls(admin_token, &Tls::default())
    }

    /// The same for nodes that speak TLS.
    pub fn with_tls(admin_token: Option<String>, tls: &Tls) -> Result<Caller, CallError> {
        let client = connections(CONNECT_MAX, tls).map_err(|why| CallError::NoClient { why })?;
        Ok(Caller { client, credential: admin_token })
    }

    /// Makes the call at the first of these nodes that can be connected to, and at the leader if that one points there.
    pub async fn call<U: AsRef<str>>(&self, urls: &[U], request: &Request) -> Result<Answer, CallError> {
        let answer = self.first(urls, request).await?;
        match leader_elsewhere(&answer) {
            Some(leader) => self.at(&alike(&leader, &answer.url), request).await,
            None => Ok(answer),
        }
    }

    /// The first that can be connected to answers, of any status. Nothing is sent twice but what only looks: a node that takes
    /// the question and is silent (it may be frozen) does not keep the others from answering.
    pub async fn first<U: AsRef<str>>(&self, urls: &[U], request: &Request) -> Result<Answer, CallError> {
        if request.method.is_safe() && urls.len() > 1 {
            let urls = urls.iter().map(|url| url.as_ref().to_string()).collect();
            return hedged(self, urls, request).await;
        }
        let mut unreached = Vec::new();
        for url in urls {
            match self.at(url.as_ref(), request).await {
                Err(CallError::NotReached { mut tried }) => unreached.append(&mut tried),
                answered => return answered,
            }
        }
        Err(CallError::NotReached { tried: unreached })
    }

    /// The answer of this node, of any status.
    pub async fn at(&self, url: &str, request: &Request) -> Result<Answer, CallError> {
        let address = address(url, &request.path)?;
        let Request { method, headers, body, within, .. } = request;
        let prepared = prepared(&self.client, self.credential.as_deref(), method, address, headers, body);
        let answered = exchange(prepared, &Clock::Boottime, url, *within).await;
        answered.map_err(|broken| broken.at(url))
    }

    /// An answer that is read as it comes, for as long as it lasts: from the first of these nodes that can be connected to.
    pub async fn open<U: AsRef<str>>(&self, urls: &[U], path: &str) -> Result<Lines, CallError> {
        let mut unreached = Vec::new();
        for url in urls {
            match self.open_at(url.as_ref(), path).await {
                Err(CallError::NotReached { mut tried }) => unreached.append(&mut tried),
                opened => return opened,
            }
        }
        Err(CallError::NotReached { tried: unreached })
    }

    async fn open_at(&self, url: &str, path: &str) -> Result<Lines, CallError> {
        Ok(Lines::new(url.to_string(), self.begin_at(url, path).await?))
    }

    /// An answer that is too large to be held: from the first of these nodes that can be connected to, or from the leader if that
    /// one points there.
    pub async fn download<U: AsRef<str>>(&self, urls: &[U], path: &str) -> Result<LongAnswer, CallError> {
        let mut unreached = Vec::new();
        for url in urls {
            let url = url.as_ref();
            match self.begin_at(url, path).await {
                Err(CallError::NotReached { mut tried }) => unreached.append(&mut tried),
                Err(CallError::Refused(problem))
                    if problem.status == 421 && problem.leader_node.is_some() =>
                {
                    let leader =
                        problem.leader_node.map(|leader| alike(&leader.url, url)).unwrap_or_default();
                    return Ok(LongAnswer::new(leader.clone(), self.begin_at(&leader, path).await?));
                }
                begun => return Ok(LongAnswer::new(url.to_string(), begun?)),
            }
        }
        Err(CallError::NotReached { tried: unreached })
    }

    /// A body that is too large to be held, sent to this node; `within` is for all of it and for the answer.
    pub async fn upload(
        &self,
        url: &str,
        path: &str,
        pieces: BodyPieces,
        within: Duration,
    ) -> Result<Answer, CallError> {
        let address = address(url, path)?;
        let headers = [("content-type", "text/plain".to_string())];
        let credential = self.credential.as_deref();
        let request = prepared(&self.client, credential, &Method::POST, address, &headers, &None);
        let answered = exchange(request.body(body_of(pieces)), &Clock::Boottime, url, within).await;
        answered.map_err(|broken| broken.at(url))
    }

    async fn begin_at(&self, url: &str, path: &str) -> Result<Response, CallError> {
        let address = address(url, path)?;
        let credential = self.credential.as_deref();
        let request = prepared(&self.client, credential, &Method::GET, address, &[], &None);
        // Nothing happens at whoever is asked: one that takes the connection and says nothing is passed over.
        let Ok(sent) = timeout(LOOK_MAX, request.send()).await else {
            let why = format!("it took the connection and said nothing for {} s", LOOK_MAX.as_secs());
            return Err(CallError::NotReached { tried: vec![Tried { url: url.to_string(), why }] });
        };
        let response = sent.map_err(|error| Broken::of(&error).at(url))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let read = whole(response).await.map_err(|broken| broken.at(url))?;
        Err(Answer::of(url, read, Clock::Boottime.now()).refusal())
    }
}

fn leader_elsewhere(answer: &Answer) -> Option<String> {
    let misdirected = answer.status == StatusCode::MISDIRECTED_REQUEST;
    misdirected.then(|| answer.problem()).flatten()?.leader_node.map(|leader| leader.url)
}

fn address(base: &str, path: &str) -> Result<Url, CallError> {
    let bad = |why| CallError::NotAnAddress { url: base.to_string(), why };
    let url = parsed(base).map_err(bad)?;
    url.join(path).map_err(|_| bad("write http://host:port"))
}

/// Asks the next node when one cannot be reached, or is silent for a while. The first answer counts; if there is none, what the
/// first silent one came to.
async fn hedged(caller: &Caller, urls: Vec<String>, request: &Request) -> Result<Answer, CallError> {
    let mut calls = JoinSet::new();
    let mut urls = urls.into_iter();
    let (mut unreached, mut silent) = (Vec::new(), None);
    loop {
        if let Some(url) = urls.next() {
            let (caller, request) = (caller.clone(), request.clone());
            calls.spawn(async move { caller.at(&url, &request).await });
        }
        let more = urls.len() > 0;
        let answered = tokio::select! {
            answered = calls.join_next() => answered,
            () = tokio::time::sleep(HEDGE), if more => continue,
        };
        match answered {
            Some(Ok(Err(CallError::NotReached { mut tried }))) => unreached.append(&mut tried),
            Some(Ok(Err(error @ CallError::NoAnswer { .. }))) => drop(silent.get_or_insert(error)),
            Some(Ok(answered)) => return answered,
            // A task that panicked has said why.
            Some(Err(_)) => {}
            None if !more => return Err(silent.unwrap_or(CallError::NotReached { tried: unreached })),
            None => {}
        }
        if calls.is_empty() && !more {
            return Err(silent.unwrap_or(CallError::NotReached { tried: unreached }));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses() {
        let full = address("http://127.0.0.1:9000", "/v1/status").map(String::from).ok();
        assert_eq!(full.as_deref(), Some("http://127.0.0.1:9000/v1/status"));
        let short = address("10.0.0.1:9000", "/leader").map(String::from).ok();
        assert_eq!(short.as_deref(), Some("http://10.0.0.1:9000/leader"));
        for wrong in ["ftp://n1:9000", "http://"] {
            assert!(matches!(address(wrong, "/"), Err(CallError::NotAnAddress { .. })), "{wrong}");
        }
    }

    #[test]
    fn whoever_acts_waits_longer() {
        assert_eq!(Request::get("/").within, LOOK_MAX);
        assert_eq!(Request::new(Method::DELETE, "/").within, ACT_MAX);
        assert_eq!(Request::post("/", &json!({})).within(LOOK_MAX).within, LOOK_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_the_connection_and_says_nothing_is_passed_over() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", silent.local_addr().expect("an address"));
        let caller = Caller::new(None).expect("a client");
        let ended = caller.open(&[&url, &url], "/v1/feed").await;
        assert!(matches!(ended, Err(CallError::NotReached { tried }) if tried.len() == 2));
    }
}
