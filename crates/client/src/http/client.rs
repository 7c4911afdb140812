//! A client of a cluster: its nodes and its time limits.

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

/// The default deadline of a call: longer than a cluster takes to elect a leader, with every attempt that fails
/// meanwhile.
const DEADLINE: Duration = Duration::from_secs(10);

/// The default limit of one attempt. If a node takes longer for an answer, the next node is tried.
const ATTEMPT: Duration = Duration::from_secs(3);

/// The limit for connecting, which takes a millisecond in the same room and half a second across the world.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// The header with the secret, which proves that a role or process belongs to the caller.
pub const SECRET: &str = "eldest-secret";

/// A client of a cluster. A clone shares the connections and the known leader.
///
/// The client shows its secret for processes only if [`ClientBuilder::secret`] has set it, or if the name of the
/// process is random. Otherwise a process that registers under the same name in its next life would be refused: it
/// does not know the random secret of its earlier life.
// The flag says whether this clone shows the secret for processes.
#[derive(Clone, Debug)]
pub struct Client(Arc<Http>, bool);

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    nodes: Vec<String>,
    credential: Option<String>,
    secret: Option<String>,
    deadline: Duration,
    attempt: Duration,
    tls: Tls,
    cluster_id: Option<String>,
}

impl ClientBuilder {
    /// The time limit of one call with all its attempts. Default: 10 s.
    pub fn deadline(mut self, deadline: Duration) -> ClientBuilder {
        self.deadline = deadline;
        self
    }

    /// The time limit of one attempt. Default: 3 s.
    pub fn attempt_timeout(mut self, attempt: Duration) -> ClientBuilder {
        self.attempt = attempt;
        self
    }

    /// The identity of the cluster, as `GET /v1/members` shows it. A node of another cluster then refuses each call, and the
    /// next node is tried. Default: none.
    pub fn cluster_id(mut self, id: impl Into<String>) -> ClientBuilder {
        self.cluster_id = Some(id.into());
        self
    }

    /// The token of this client, if the cluster requires tokens. Its grants must cover what the client does.
    pub fn token(mut self, token: impl Into<String>) -> ClientBuilder {
        self.credential = Some(token.into());
        self
    }

    /// The admin token, for administrative calls if the cluster requires it. It also permits everything else.
    pub fn admin_token(self, token: impl Into<String>) -> ClientBuilder {
        self.token(token)
    }

    /// The secret that this client shows for what it holds, such as roles: 1 to 256 ASCII characters that are known
    /// to this client only. Default: a new random secret for each client. A process that continues under the names of
    /// an earlier life needs the same secret.
    pub fn secret(mut self, secret: impl Into<String>) -> ClientBuilder {
        self.secret = Some(secret.into());
        self
    }

    /// The TLS files, if the nodes use TLS: the trusted certificates, and the client's own certificate. The files are
    /// read once.
    pub fn tls(mut self, tls: Tls) -> ClientBuilder {
        self.tls = tls;
        self
    }

    /// Makes the client. Sends nothing. Fails with [`Error::NoClient`] if the HTTP client cannot be set up, with
    /// [`Error::BadNode`] if a URL is not valid, and with [`Error::BadOption`] if no node is named.
    pub fn build(self) -> Result<Client, Error> {
        let ClientBuilder { nodes, credential, secret, deadline, attempt, tls, cluster_id } = self;
        let client =
            connections(CONNECT_MAX, &tls, cluster_id.as_deref()).map_err(|why| Error::NoClient { why })?;
        let (nodes, names_itself) = (Nodes::new(nodes)?, secret.is_some());
        let secret = secret.unwrap_or_else(random::id);
        let clock = Clock::Boottime;
        let http = Arc::new(Http { client, nodes, clock, credential, secret, deadline, attempt });
        Ok(Client(http, names_itself))
    }
}

impl Client {
    /// A client of the cluster with these nodes. Each URL is `http://host:port` or `https://host:port`. Name all
    /// nodes.
    pub fn new<I: IntoIterator<Item = S>, S: Into<String>>(nodes: I) -> Result<Client, Error> {
        Client::builder(nodes).build()
    }

    /// Begins the options of a client of the cluster with these nodes.
    pub fn builder<I: IntoIterator<Item = S>, S: Into<String>>(nodes: I) -> ClientBuilder {
        let nodes = nodes.into_iter().map(Into::into).collect();
        let (deadline, attempt, tls) = (DEADLINE, ATTEMPT, Tls::default());
        ClientBuilder { nodes, credential: None, secret: None, deadline, attempt, tls, cluster_id: None }
    }

    /// The final answer, with any status.
    pub(crate) async fn ask(&self, call: &Call) -> Result<Answer, Error> {
        retry::send(&self.0, call).await
    }

    /// The answer, if it is a success. Any other status is an error.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        self.ask(call).await?.accepted()
    }

    /// Adds the secret to a call about something that this client holds. Only this client knows the secret.
    pub(crate) fn shows_secret(&self, call: Call) -> Call {
        call.header(SECRET, self.0.secret.clone())
    }

    /// Adds the secret to a call about a process, if this client shows it there.
    pub(crate) fn shows_secret_of_process(&self, call: Call) -> Call {
        if self.1 { self.shows_secret(call) } else { call }
    }

    /// Shows the secret for processes as well. This is for processes with random names: no later life uses the same
    /// name.
    pub(crate) fn showing_secret(self) -> Client {
        Client(self.0, true)
    }

    pub(crate) fn http(&self) -> &Http {
        &self.0
    }

    /// The limit of one attempt for a call about a lease of this ttl: several attempts must fit into the lease.
    pub(crate) fn attempt_within(&self, ttl: Duration) -> Duration {
        self.0.attempt.min(ttl / 6)
    }

    /// Opens a stream at the node that calls go to now.
    pub(crate) async fn open(&self, path: &str) -> Result<Lines, Error> {
        let url = self.http().nodes.current();
        let opened = self.open_at(&url, &Call::get(path.to_string())).await;
        if let Err(Error::Unavailable { .. } | Error::Indeterminate { .. }) = &opened {
            self.http().nodes.failed(&url);
        }
        opened.map_err(|error| match error {
            // Opening a stream for reading changes nothing, so an unknown outcome counts as unavailable.
            Error::Indeterminate { tried } => Error::Unavailable { tried },
            error => error,
        })
    }

    /// Opens a stream at this node.
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

    /// Notes that a stream from this node has ended: the next call goes to another node.
    pub(crate) fn passed_over(&self, url: &str) {
        if let Ok(url) = reqwest::Url::parse(url) {
            self.http().nodes.failed(&url);
        }
    }
}
