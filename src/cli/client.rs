//! One HTTP call to a node, for the small commands.
//!
//! Several addresses may be given; they are tried in turn while nothing has been sent. A node that does not lead
//! says who does, and the call goes there, once.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::Value;

use super::exit::{Failure, root_of};

/// A node in the same room answers a connection in a millisecond, one across the world in half a second.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Looking never waits for a majority.
pub const LOOK_MAX: Duration = Duration::from_secs(5);

/// A hand-over waits until the heir has caught up.
pub const ACT_MAX: Duration = Duration::from_secs(60);

/// No answer of a small command is near this; a program that is no node may send anything.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Where to call, for every command that does.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// Any node of the cluster; several, separated by commas, are tried in turn
    #[arg(long, env = "ELDEST_URL", default_value = "http://127.0.0.1:9000", value_delimiter = ',')]
    pub url: Vec<String>,
    /// The admin token, where the cluster asks for one; better given by the environment, which `ps` does not show
    #[arg(long, env = "ELDEST_ADMIN_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// A file with the admin token
    #[arg(long, env = "ELDEST_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// An answer of any status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub url: String,
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// A node that could not even be connected to.
#[derive(Clone, Debug)]
pub struct Unreached {
    pub url: String,
    pub why: String,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.url, self.why)
    }
}

/// A refusal, as RFC 9457 writes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub status: u16,
    pub code: String,
    pub title: String,
    pub detail: String,
    pub leader_node: Option<LeaderNode>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct LeaderNode {
    pub url: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.detail.is_empty() { &self.title } else { &self.detail };
        write!(f, "refused: {text} ({}, {})", self.code, self.status)
    }
}

#[derive(Clone, Debug)]
pub struct Caller {
    client: Client,
    token: Option<String>,
}

/// What to ask for.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub body: Option<Vec<u8>>,
    pub within: Duration,
}

impl Call {
    pub fn get(path: &str) -> Call {
        Call { method: Method::GET, path: path.to_string(), body: None, within: LOOK_MAX }
    }

    pub fn post(path: &str, body: &Value) -> Call {
        let body = Some(body.to_string().into_bytes());
        Call { method: Method::POST, path: path.to_string(), body, within: ACT_MAX }
    }
}

impl Target {
    /// Makes the call on the first node that can be connected to, and on the leader if that one points there.
    pub async fn call(&self, call: &Call) -> Result<Answer, Failure> {
        let caller = self.caller()?;
        let answer = caller.first(&self.url, call).await?;
        match leader_elsewhere(&answer) {
            Some(leader) => caller.call(&leader, call).await,
            None => Ok(answer),
        }
    }

    pub fn caller(&self) -> Result<Caller, Failure> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(Failure::file(path));
        let token = match (&self.token, &self.token_file) {
            (None, Some(path)) => Some(read(path)?.trim().to_string()),
            (token, _) => token.clone(),
        };
        Caller::new(token)
    }

    /// The same, where anything but success is a refusal and the answer is JSON (or nothing).
    pub async fn ask(&self, call: &Call) -> Result<Value, Failure> {
        let answer = self.call(call).await?.accepted()?;
        answer.json()
    }
}

impl Caller {
    pub fn new(token: Option<String>) -> Result<Caller, Failure> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_MAX)
            .build()
            .map_err(Failure::NoClient)?;
        Ok(Caller { client, token })
    }

    /// The first that can be connected to answers. Nothing is sent twice.
    pub async fn first(&self, urls: &[String], call: &Call) -> Result<Answer, Failure> {
        let mut unreached = Vec::new();
        for url in urls {
            match self.call(url, call).await {
                Err(Failure::NotReachable(mut tried)) => unreached.append(&mut tried),
                answered => return answered,
            }
        }
        Err(Failure::NotReachable(unreached))
    }

    /// An answer that is read as it comes, for as long as it lasts.
    pub async fn open(&self, url: &str, path: &str) -> Result<Response, Failure> {
        let mut request = self.client.get(address(url, path)?);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| failure(url, &error))?;
        match response.status().is_success() {
            true => Ok(response),
            false => {
                let (url, status) = (url.to_string(), response.status());
                let body = response.bytes().await.map_err(|error| failure(&url, &error))?.to_vec();
                Err(Answer { url, status, body }.refusal())
            }
        }
    }

    pub async fn call(&self, url: &str, call: &Call) -> Result<Answer, Failure> {
        let address = address(url, &call.path)?;
        let mut request = self.client.request(call.method.clone(), address).timeout(call.within);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = &call.body {
            request = request.header("content-type", "application/json").body(body.clone());
        }
        let failed = |error: reqwest::Error| failure(url, &error);
        let mut response = request.send().await.map_err(failed)?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                let why = format!("more than {BODY_BYTES_MAX} bytes");
                return Err(Failure::Strange { url: url.to_string(), why });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { url: url.to_string(), status, body })
    }
}

impl Answer {
    pub fn accepted(self) -> Result<Answer, Failure> {
        match self.status.is_success() {
            true => Ok(self),
            false => Err(self.refusal()),
        }
    }

    fn refusal(&self) -> Failure {
        match self.problem() {
            Some(problem) => Failure::Refused(Box::new(problem)),
            None => Failure::Strange { url: self.url.clone(), why: format!("status {}", self.status) },
        }
    }

    fn problem(&self) -> Option<Problem> {
        let problem: Problem = serde_json::from_slice(&self.body).ok()?;
        (!problem.code.is_empty()).then_some(Problem { status: self.status.as_u16(), ..problem })
    }

    pub fn json(&self) -> Result<Value, Failure> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        let strange =
            |error: serde_json::Error| Failure::Strange { url: self.url.clone(), why: error.to_string() };
        serde_json::from_slice(&self.body).map_err(strange)
    }
}

fn leader_elsewhere(answer: &Answer) -> Option<String> {
    let misdirected = answer.status == StatusCode::MISDIRECTED_REQUEST;
    misdirected.then(|| answer.problem()).flatten()?.leader_node.map(|leader| leader.url)
}

fn address(base: &str, path: &str) -> Result<Url, Failure> {
    let with_scheme = if base.contains("://") { base.to_string() } else { format!("http://{base}") };
    let bad = |why| Failure::NotAnAddress { text: base.to_string(), why };
    let url = Url::parse(&with_scheme).map_err(|_| bad("write http://host:port"))?;
    if url.scheme() != "http" {
        return Err(bad("only http is spoken"));
    }
    url.join(path).map_err(|_| bad("write http://host:port"))
}

/// Only what surely was not sent may be tried elsewhere.
fn failure(url: &str, error: &reqwest::Error) -> Failure {
    let url = url.to_string();
    let why = if error.is_timeout() { "no answer in time".to_string() } else { root_of(error) };
    if error.is_connect() {
        return Failure::NotReachable(vec![Unreached { url, why }]);
    }
    Failure::NoAnswer { url, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        let status = StatusCode::from_u16(status).expect("a status");
        Answer { url: "http://n1".into(), status, body: body.into() }
    }

    #[test]
    fn addresses() {
        let full = address("http://127.0.0.1:9000", "/v1/status").map(String::from).ok();
        assert_eq!(full.as_deref(), Some("http://127.0.0.1:9000/v1/status"));
        let short = address("10.0.0.1:9000", "/leader").map(String::from).ok();
        assert_eq!(short.as_deref(), Some("http://10.0.0.1:9000/leader"));
        assert_eq!(address("https://n1:9000", "/").map_err(|failure| failure.code()), Err(2));
        assert_eq!(address("http://", "/").map_err(|failure| failure.code()), Err(2));
    }

    #[test]
    fn a_refusal_shows_its_detail_and_code() {
        let body =
            r#"{"code":"no_quorum","title":"No quorum","detail":"node 1 reaches 1 of 3","retryable":true}"#;
        let failure = answer(503, body).accepted().map(|_| ()).expect_err("refused");
        assert_eq!(failure.to_string(), "refused: node 1 reaches 1 of 3 (no_quorum, 503)");
        assert_eq!(failure.code(), 4);
    }

    #[test]
    fn what_is_no_node_is_said_to_be_none() {
        let failure = answer(404, "<html>").accepted().map(|_| ()).expect_err("strange");
        assert_eq!(
            failure.to_string(),
            "http://n1 does not answer like a node of Eldest: status 404 Not Found"
        );
        assert_eq!(failure.code(), 1);
    }

    #[test]
    fn a_node_that_does_not_lead_points_to_the_one_that_does() {
        let body = r#"{"code":"not_leader","leader_node":{"id":2,"url":"http://n2:9000"}}"#;
        assert_eq!(leader_elsewhere(&answer(421, body)).as_deref(), Some("http://n2:9000"));
        assert_eq!(leader_elsewhere(&answer(503, body)), None);
        assert_eq!(leader_elsewhere(&answer(421, r#"{"code":"not_leader"}"#)), None);
    }

    #[tokio::test]
    async fn a_closed_port_is_not_reachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let target = Target { url: vec![url.clone(), url], token: None, token_file: None };
        let failure = target.ask(&Call::get("/livez")).await.expect_err("closed");
        assert!(matches!(&failure, Failure::NotReachable(tried) if tried.len() == 2), "{failure}");
        assert_eq!(failure.code(), 3);
    }
}
