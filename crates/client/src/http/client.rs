//! A client of a cluster: its nodes and its bounds.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::time::timeout;

use super::answer::Answer;
use super::call::Call;
use super::exchange::{Broken, prepared, whole};
use super::lines::Lines;
use super::nodes::Nodes;
use super::pool::Tls;
use super::pool::{Http, connections};
use super::retry;
use crate::clock::Clock;
use crate::error::Error;
use crate::problem::{Problem, Tried};
use crate::random;

/// Longer than a cluster takes to elect a leader, with every attempt on the way.
const DEADLINE: Duration = Duration::from_secs(10);

/// A node that takes longer for an answer is given up for the next one.
const ATTEMPT: Duration = Duration::from_secs(3);

/// A node in the same room answers a connection in a millisecond, one across the world in half a second.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// The header that shows who may speak for what is held.
pub const SECRET: &str = "eldest-secret";

/// The way to a cluster. A clone shares connections, and what is known of the leader; and whether it shows its secret for processes, too:
/// who registers under the same name in its next life could not, unless it was told the secret.
#[derive(Clone, Debug)]
pub struct Client(Arc<Http>, bool);

#[derive(Clone, Debug)]
pub struct ClientBuilder {
    nodes: Vec<String>,
    credential: Option<String>,
    secret: Option<String>,
    deadline: Duration,
    attempt: Duration,
    tls: Tls,
}

impl ClientBuilder {
    /// How long one call may take with all its attempts; 10 s unless told.
    pub fn deadline(mut self, deadline: Duration) -> ClientBuilder {
        self.deadline = deadline;
        self
    }

    /// How long one attempt may take; 3 s unless told.
    pub fn attempt_timeout(mut self, attempt: Duration) -> ClientBuilder {
        self.attempt = attempt;
        self
    }

    /// Where the cluster lets in by tokens: one whose grants cover what this client does.
    pub fn token(mut self, token: impl Into<String>) -> ClientBuilder {
        self.credential = Some(token.into());
        self
    }

    /// For orders, where the cluster asks for it: what may do everything else as well.
    pub fn admin_token(self, token: impl Into<String>) -> ClientBuilder {
        self.token(token)
    }

    /// What this client shows for what it holds: 1 to 256 ASCII characters that nobody else knows. Drawn anew for each client unless
    /// told; a process that is to go on under another life's names is told the same again.
    pub fn secret(mut self, secret: impl Into<String>) -> ClientBuilder {
        self.secret = Some(secret.into());
        self
    }

    /// Where the nodes speak TLS: whom to believe, and what to show. The files are read once.
    pub fn tls(mut self, tls: Tls) -> ClientBuilder {
        self.tls = tls;
        self
    }

    pub fn build(self) -> Result<Client, Error> {
        let ClientBuilder { nodes, credential, secret, deadline, attempt, tls } = self;
        let client = connections(CONNECT_MAX, &tls).map_err(|why| Error::NoClient { why })?;
        let (nodes, names_itself) = (Nodes::new(nodes)?, secret.is_some());
        let secret = secret.unwrap_or_else(random::id);
        let clock = Clock::Boottime;
        let http = Arc::new(Http { client, nodes, clock, credential, secret, deadline, attempt });
        Ok(Client(http, names_itself))
    }
}

impl Client {
    /// A client of the cluster with these nodes: `http://host:port` each, or `https://`. Name all of them.
    pub fn new<I: IntoIterator<Item = S>, S: Into<String>>(nodes: I) -> Result<Client, Error> {
        Client::builder(nodes).build()
    }

    pub fn builder<I: IntoIterator<Item = S>, S: Into<String>>(nodes: I) -> ClientBuilder {
        let nodes = nodes.into_iter().map(Into::into).collect();
        let tls = Tls::default();
        ClientBuilder { nodes, credential: None, secret: None, deadline: DEADLINE, attempt: ATTEMPT, tls }
    }

    /// The final answer, of any status.
    pub(crate) async fn ask(&self, call: &Call) -> Result<Answer, Error> {
        retry::send(&self.0, call).await
    }

    /// The answer, if it is a success.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        self.ask(call).await?.accepted()
    }

    /// A call about what this client holds: nobody else knows what it shows.
    pub(crate) fn shows_secret(&self, call: Call) -> Call {
        call.header(SECRET, self.0.secret.clone())
    }

    /// The same of a process.
    pub(crate) fn shows_secret_of_process(&self, call: Call) -> Call {
        if self.1 { self.shows_secret(call) } else { call }
    }

    /// For processes whose names were drawn: no other life comes back under them.
    pub(crate) fn showing_secret(self) -> Client {
        Client(self.0, true)
    }

    pub(crate) fn http(&self) -> &Http {
        &self.0
    }

    /// How long one attempt may take whose answer is about a lease as long as this: several must fit into it.
    pub(crate) fn attempt_within(&self, ttl: Duration) -> Duration {
        self.0.attempt.min(ttl / 6)
    }

    /// An answer without an end, from one node: the one that is called now.
    pub(crate) async fn open(&self, path: &str) -> Result<Lines, Error> {
        let url = self.http().nodes.current();
        let opened = self.open_at(&url, &Call::get(path.to_string())).await;
        if let Err(Error::Unavailable { .. } | Error::Indeterminate { .. }) = &opened {
            self.http().nodes.failed(&url);
        }
        opened.map_err(|error| match error {
            // Nothing happens by listening.
            Error::Indeterminate { tried } => Error::Unavailable { tried },
            error => error,
        })
    }

    /// An answer without an end, from this node.
    pub(crate) async fn open_at(&self, url: &Url, call: &Call) -> Result<Lines, Error> {
        let Http { client, credential, attempt, .. } = self.http();
        let tried = |why: String| vec![Tried { url: url.to_string(), why }];
        let unavailable = |why: String| Error::Unavailable { tried: tried(why) };
        let indeterminate = |why: &str| Error::Indeterminate { tried: tried(why.to_string()) };
        let address = url.join(&call.path).map_err(|error| unavailable(error.to_string()))?;
        let request = prepared(client, credential.as_deref(), &call.method, address, &call.headers, &None);
        let response = match timeout(*attempt, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(match Broken::of(&error) {
                    Broken::NotSent { why } => unavailable(why),
                    Broken::NoAnswer { why } | Broken::TooLarge { why } => indeterminate(&why),
                });
            }
            Err(_) => return Err(indeterminate("no answer in time")),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(Lines::new(url.to_string(), response));
        }
        let body = timeout(*attempt, whole(response)).await.ok().and_then(Result::ok);
        let problem = body.and_then(|(_, _, body)| serde_json::from_slice(&body).ok());
        let problem: Problem = problem.unwrap_or_default();
        match (status.as_u16(), problem.code.is_empty()) {
            (400..=499, false) if !matches!(status.as_u16(), 421 | 429) => {
                Err(Error::from(Problem { status: status.as_u16(), ..problem }))
            }
            (_, false) => Err(unavailable(problem.to_string())),
            (_, true) => Err(unavailable(format!("status {status}"))),
        }
    }

    /// A stream from this node has ended: the next call goes elsewhere.
    pub(crate) fn passed_over(&self, url: &str) {
        if let Ok(url) = reqwest::Url::parse(url) {
            self.http().nodes.failed(&url);
        }
    }
}
