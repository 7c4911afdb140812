//! Single calls, each sent once. They are for tools that show what a cluster answers, and decide themselves how to
//! handle a failure.
//!
//! A [`Client`](super::Client) retries calls, remembers the leader and distinguishes refusals. A [`Caller`] does
//! less: it tries the nodes in turn while nothing has been sent, and follows one redirect to the leader.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
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
use crate::problem::WRONG_CLUSTER;

/// The limit for connecting, which takes a millisecond in the same room and half a second across the world.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The limit of a read. A read never waits for a majority.
pub const LOOK_MAX: Duration = Duration::from_secs(5);

/// After this time the next node is asked, too. A healthy node answers sooner, unless it is on another continent, and
/// then a second question does no harm.
const HEDGE: Duration = Duration::from_millis(200);

/// The limit of the question which node is alive. A live node answers it at once, however busy it is.
const PROBE_MAX: Duration = Duration::from_secs(3);

/// The limit of an action. A hand-over waits until the new leader has caught up.
pub const ACT_MAX: Duration = Duration::from_secs(60);

/// One call.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// The path with its query.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    /// The body, as JSON.
    pub body: Option<Vec<u8>>,
    /// The time limit for the whole answer.
    pub within: Duration,
}

impl Request {
    /// A call without a body. Its time limit is [`LOOK_MAX`] for a read, and [`ACT_MAX`] for any other method.
    pub fn new(method: Method, path: impl Into<String>) -> Request {
        let within = if method.is_safe() { LOOK_MAX } else { ACT_MAX };
        Request { method, path: path.into(), headers: Vec::new(), body: None, within }
    }

    /// A GET call.
    pub fn get(path: impl Into<String>) -> Request {
        Request::new(Method::GET, path)
    }

    /// A POST call with a JSON body.
    pub fn post(path: impl Into<String>, body: &Value) -> Request {
        Request::new(Method::POST, path).body(body.to_string())
    }

    /// Sets the body, which must be JSON.
    pub fn body(mut self, json: impl Into<Vec<u8>>) -> Request {
        self.body = Some(json.into());
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the time limit for the whole answer.
    pub fn within(mut self, within: Duration) -> Request {
        self.within = within;
        self
    }
}

/// The connections to the nodes, with the credential. A clone shares the connections.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
    credential: Option<String>,
    token_from: Option<String>,
    /// Whether each call names a cluster.
    names_cluster: bool,
}

impl Caller {
    /// A caller with the admin token for administrative calls, if the cluster requires it. Fails with
    /// [`CallError::NoClient`].
    pub fn new(admin_token: Option<String>) -> Result<Caller, CallError> {
        Caller::with_tls(admin_token, &Tls::default())
    }

    /// A caller of nodes that use TLS.
    pub fn with_tls(admin_token: Option<String>, tls: &Tls) -> Result<Caller, CallError> {
        Caller::of_cluster(admin_token, tls, None)
    }

    /// A caller of the nodes of this cluster. A node of another cluster refuses each call, and counts as one that cannot be
    /// reached.
    pub fn of_cluster(
        credential: Option<String>,
        tls: &Tls,
        cluster_id: Option<&str>,
    ) -> Result<Caller, CallError> {
        let client = connections(CONNECT_MAX, tls, cluster_id).map_err(|why| CallError::NoClient { why })?;
        Ok(Caller { client, credential, token_from: None, names_cluster: cluster_id.is_some() })
    }

    /// Names the source of the token. A refusal for lack of rights shows it.
    pub fn token_from(self, source: Option<String>) -> Caller {
        Caller { token_from: source, ..self }
    }

    /// Calls the first of these nodes that accepts a connection. If that node names another leader, the call is sent
    /// to the leader.
    pub async fn call<U: AsRef<str>>(&self, urls: &[U], request: &Request) -> Result<Answer, CallError> {
        let answer = self.first(urls, request).await?;
        match leader_elsewhere(&answer) {
            Some(leader) => self.at(&alike(&leader, &answer.url), request).await,
            None => Ok(answer),
        }
    }

    /// Returns the answer of the first node that accepts a connection, with any status. Only reads are sent to
    /// several nodes: if a node accepts a read and is silent (it may be frozen), the next node is asked, too. Any other call
    /// goes to a node that has just answered.
    pub async fn first<U: AsRef<str>>(&self, urls: &[U], request: &Request) -> Result<Answer, CallError> {
        if request.method.is_safe() && urls.len() > 1 {
            let urls = urls.iter().map(|url| url.as_ref().to_string()).collect();
            return hedged(self, urls, request).await;
        }
        let mut unreached = Vec::new();
        for url in self.live_first(urls).await? {
            match self.at(&url, request).await {
                Err(CallError::NotReached { mut tried }) => unreached.append(&mut tried),
                answered => return answered,
            }
        }
        Err(CallError::NotReached { tried: unreached })
    }

    /// The answer of this node, with any status.
    pub async fn at(&self, url: &str, request: &Request) -> Result<Answer, CallError> {
        let address = address(url, &request.path)?;
        let Request { method, headers, body, within, .. } = request;
        let prepared = self.prepared(method, address, headers, body);
        self.of_this_cluster(
            exchange(prepared, &Clock::Boottime, url, *within)
                .await
                .map_err(|broken| broken.at(url, method))?,
        )
    }

    /// Opens a stream that is read line by line as it comes, from the first of these nodes that can give it now. If none can, the
    /// error is a refusal rather than the silence of another node.
    pub async fn open<U: AsRef<str>>(&self, urls: &[U], path: &str) -> Result<Lines, CallError> {
        let (mut unreached, mut refusal) = (Vec::new(), None);
        for url in self.live_first(urls).await? {
            match self.open_at(&url, path).await {
                Err(CallError::NotReached { mut tried }) => unreached.append(&mut tried),
                Err(CallError::Refused(problem)) if problem.status == 503 => {
                    refusal.get_or_insert(CallError::Refused(problem));
                }
                opened => return opened,
            }
        }
        Err(refusal.unwrap_or(CallError::NotReached { tried: unreached }))
    }

    /// The nodes, beginning with one that answers now. A frozen node would take a call, and keep it. If none answers, nothing
    /// has been sent yet.
    pub async fn live_first<U: AsRef<str>>(&self, urls: &[U]) -> Result<Vec<String>, CallError> {
        let mut urls: Vec<String> = urls.iter().map(|url| url.as_ref().to_string()).collect();
        let probe = Request::get("/livez").within(PROBE_MAX);
        match hedged(self, urls.clone(), &probe).await {
            Ok(Answer { url: live, .. }) => urls.sort_by_key(|url| *url != live),
            Err(CallError::NoAnswer { url, why, .. }) => {
                let why = format!("it accepted the connection and sent nothing: {why}");
                return Err(CallError::NotReached { tried: vec![Tried { url, why }] });
            }
            Err(error) => return Err(error),
        }
        Ok(urls)
    }

    async fn open_at(&self, url: &str, path: &str) -> Result<Lines, CallError> {
        Ok(Lines::new(url.to_string(), self.begin_at(url, path).await?))
    }

    /// Opens an answer that is too large for memory, from the first of these nodes that accepts a connection, or from
    /// the leader if that node names one.
    pub async fn download<U: AsRef<str>>(&self, urls: &[U], path: &str) -> Result<LongAnswer, CallError> {
        let mut unreached = Vec::new();
        for url in &self.live_first(urls).await? {
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

    /// Sends a body that is too large for memory to this node. `within` limits the whole upload and its answer.
    pub async fn upload(
        &self,
        url: &str,
        path: &str,
        pieces: BodyPieces,
        within: Duration,
    ) -> Result<Answer, CallError> {
        let address = address(url, path)?;
        let headers = [("content-type", "text/plain".to_string())];
        let request = self.prepared(&Method::POST, address, &headers, &None).body(body_of(pieces));
        self.of_this_cluster(
            exchange(request, &Clock::Boottime, url, within)
                .await
                .map_err(|broken| broken.at(url, &Method::POST))?,
        )
    }

    async fn begin_at(&self, url: &str, path: &str) -> Result<Response, CallError> {
        let address = address(url, path)?;
        let request = self.prepared(&Method::GET, address, &[], &None);
        // A read changes nothing at the node, so a node that accepts the connection and says nothing is skipped.
        let Ok(sent) = timeout(LOOK_MAX, request.send()).await else {
            let why = format!("it accepted the connection and sent nothing for {} s", LOOK_MAX.as_secs());
            return Err(CallError::NotReached { tried: vec![Tried { url: url.to_string(), why }] });
        };
        let response = sent.map_err(|error| Broken::of(&error).at(url, &Method::GET))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let read = whole(response).await.map_err(|broken| broken.at(url, &Method::GET))?;
        Err(self.of_this_cluster(Answer::of(url, read, Clock::Boottime.now()))?.refusal())
    }

    fn prepared(
        &self,
        method: &Method,
        address: Url,
        headers: &[(&'static str, String)],
        body: &Option<Vec<u8>>,
    ) -> RequestBuilder {
        prepared(&self.client, self.credential.as_deref(), method, address, headers, body)
    }

    /// The answer, with the source of the token, unless the node belongs to another cluster. Then it has done nothing.
    fn of_this_cluster(&self, answer: Answer) -> Result<Answer, CallError> {
        let problem =
            answer.problem().filter(|_| self.names_cluster && answer.status == StatusCode::CONFLICT);
        if let Some(problem) = problem.filter(|problem| problem.code == WRONG_CLUSTER) {
            let why = format!("{}; if it was formed again, set its context again", problem.detail);
            return Err(CallError::NotReached { tried: vec![Tried { url: answer.url, why }] });
        }
        Ok(Answer { token_from: self.token_from.clone(), ..answer })
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

/// Asks the next node when a node cannot be reached, or is silent for a while. The first answer counts. If there is
/// none, the result is the error of the first silent node.
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
            // The panic of the task was reported already.
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
        let told = ended.map(drop).expect_err("nobody answers").to_string();
        assert!(told.contains("it accepted the connection and sent nothing"), "{told}");
    }
}
