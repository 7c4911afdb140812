//! Calls of other nodes: the seed's routes with an envelope. Nothing of a call reaches the loop before its cluster, its
//! sender and, where there is a secret, its proof have been checked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};

use super::admission::Admission;
use super::context::Context;
use super::problem::{Code, Problem, Surroundings};
use super::receive;
use crate::driver::api::{Brought, PeerCall};
use crate::driver::{self, Handle, Setup, Wall};
use crate::protocol::{Message, Mode};
use crate::types::NodeId;
use crate::wire::{
    self, Attachment, ClusterHead, Gate, Hello, Parcel, Proof, Route, Sender, WireError, header,
};

/// The lines of one append or pull: a batch (`limits.batch_bytes`), or one record of the largest kind.
const LINES_BYTES_MOST: usize = 16 << 20;
/// How long a call from behind a wall is left without an answer: its sender has given it up by then.
const SWALLOWED: Duration = Duration::from_secs(10);
/// What a body may take to arrive: a peer that is slower than this is sent a new one later.
const BODY_MOST: Duration = Duration::from_secs(10);

pub async fn answer(context: &Context, route: Route, parts: Parts, body: Body) -> Response<Body> {
    match context.door.answer(route, &parts, body).await {
        Ok(response) => response,
        Err(problem) => {
            let request_id = context.request_id();
            problem.render(Surroundings { request_id: &request_id, leader: None })
        }
    }
}

/// Where peers knock.
#[derive(Debug)]
pub struct Door {
    handle: Handle,
    cluster: ClusterHead,
    mode: Mode,
    me: NodeId,
    members: Vec<NodeId>,
    /// None: the cluster has no secret.
    gate: Option<Gate>,
    /// Differences of states on their way in: each is held in memory.
    differences: Admission,
    /// How long a response waits for what there is to say: a beat. Later the answer is a call of its own.
    hold: Duration,
    wall: Arc<Wall>,
}

/// The envelope's headers as they came.
struct Knock<'a> {
    path: &'a str,
    cluster: &'a str,
    from: &'a str,
    message: &'a str,
    proof: &'a str,
    sender: Sender,
}

impl Door {
    /// `own` is drawn at random at each start.
    pub fn new(handle: Handle, setup: &Setup, own: [u8; 32]) -> Door {
        let me = setup.settings.me;
        Door {
            handle,
            cluster: setup.cluster.clone(),
            mode: setup.settings.mode,
            differences: Admission::new(1),
            me,
            members: setup.settings.members.clone(),
            gate: setup.secret.clone().map(|secret| Gate::new(secret, me, own)),
            hold: Duration::from_micros(setup.settings.timing.heartbeat.0),
            wall: setup.wall.clone(),
        }
    }

    async fn answer(&self, route: Route, parts: &Parts, body: Body) -> Result<Response<Body>, Problem> {
        let knock = Knock::read(route, parts)?;
        match self.wall.pass(knock.sender.from, SWALLOWED, self.open(&knock, body)).await {
            Some(answer) => answer,
            None => Err(Problem::new(Code::RequestTimeout, "there is a wall between caller and node")),
        }
    }

    async fn open(&self, knock: &Knock<'_>, body: Body) -> Result<Response<Body>, Problem> {
        self.check(knock)?;
        match wire::attachment(knock.message).map_err(unreadable)? {
            Attachment::Snapshot => self.take_snapshot(knock, body).await,
            Attachment::Difference => self.take_difference(knock, body).await,
            Attachment::Nothing | Attachment::Lines { .. } => self.take(knock, body).await,
        }
    }

    fn check(&self, knock: &Knock<'_>) -> Result<(), Problem> {
        let theirs = ClusterHead::decode(knock.cluster).map_err(unreadable)?;
        if theirs.name != self.cluster.name {
            let detail = format!(
                "this node is of the cluster {:?}, the caller of {:?}",
                self.cluster.name, theirs.name
            );
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        let Sender { from, to, .. } = knock.sender;
        if to != self.me {
            let detail = format!("this is node {}; the call is meant for node {}", self.me.0, to.0);
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        if from == self.me || !self.members.contains(&from) {
            let detail = format!("node {} is no other node of this topology", from.0);
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        if self.mode == Mode::Safe && wire::is_of_sides(knock.message) {
            let detail = "in safe mode there are never two histories to merge";
            return Err(Problem::new(Code::ModeMismatch, detail));
        }
        if theirs != self.cluster {
            let detail = "ids, mode or timings differ between the caller's configuration and this node's";
            return Err(Problem::new(Code::ModeMismatch, detail));
        }
        Ok(())
    }

    async fn take(&self, knock: &Knock<'_>, body: Body) -> Result<Response<Body>, Problem> {
        let body = read(body).await?;
        let proof = self.prove(knock, &body)?;
        let call = driver::decode(knock.sender, knock.message, body).map_err(unreadable)?;
        let waits = Route::expects_answer(&call.envelope.message);
        let answer = match waits {
            true => tokio::time::timeout(self.hold, self.handle.peer(call)).await.unwrap_or(None),
            false => self.handle.peer(call).await,
        };
        Ok(self.respond(knock, answer, proof.as_ref()))
    }

    async fn take_snapshot(&self, knock: &Knock<'_>, body: Body) -> Result<Response<Body>, Problem> {
        let proof = self.prove(knock, &[])?;
        let importer = self.handle.importer().await.map_err(|error| receive::problem(&error))?;
        let key = proof.as_ref().map(|proof| *proof.key());
        let (incoming, store) = receive::snapshot(importer, body, key, self.mode).await?;
        let meta = incoming.boundary().meta.clone();
        let message = wire::decode(knock.message, wire::Attached::Snapshot(meta)).map_err(unreadable)?;
        self.pass_on(knock, message, Brought::Snapshot(Box::new((incoming, store))), proof.as_ref()).await
    }

    async fn take_difference(&self, knock: &Knock<'_>, body: Body) -> Result<Response<Body>, Problem> {
        let proof = self.prove(knock, &[])?;
        let Some(_seat) = self.differences.enter() else {
            let problem = Problem::new(Code::TooManyRequests, "another node's state is being taken in");
            return Err(problem.with("bound", "differences of states at a time"));
        };
        let handed = receive::difference(body, proof.as_ref().map(|proof| *proof.key())).await?;
        let attached = wire::Attached::Difference(handed.boundary.meta.clone());
        let message = wire::decode(knock.message, attached).map_err(unreadable)?;
        self.pass_on(knock, message, Brought::Difference(Box::new(handed)), proof.as_ref()).await
    }

    async fn pass_on(
        &self,
        knock: &Knock<'_>,
        message: Message,
        brought: Brought,
        proof: Option<&Proof>,
    ) -> Result<Response<Body>, Problem> {
        let envelope = knock.sender.says(message);
        let call = PeerCall { envelope, lines: Default::default(), brought: Some(brought) };
        let answer = self.handle.peer(call).await;
        Ok(self.respond(knock, answer, proof))
    }

    /// Without a proof that checks, a caller is told what to build one on, and nothing else happens.
    fn prove(&self, knock: &Knock<'_>, body: &[u8]) -> Result<Option<Proof>, Problem> {
        let Some(gate) = &self.gate else {
            return Ok(None);
        };
        let Knock { path, cluster, from, message, proof, sender } = *knock;
        let hello = Hello { path, cluster, from, message, body };
        if let Some(proof) = gate.check(sender.from, &hello, proof) {
            return Ok(Some(proof));
        }
        let challenge = gate.challenge(sender.from).encode();
        let challenge =
            HeaderValue::from_str(&challenge).map_err(|_| unreadable(WireError::Missing("challenge")))?;
        let problem = Problem::new(
            Code::Unauthorized,
            "the call does not prove that its sender knows the cluster's secret",
        );
        Err(problem.header(HeaderName::from_static(header::CHALLENGE), challenge))
    }

    fn respond(&self, knock: &Knock<'_>, answer: Option<Parcel>, proof: Option<&Proof>) -> Response<Body> {
        let (from, message, body) = match answer {
            Some(Parcel { sender, message, body, .. }) => (sender.encode(), message, body),
            None => (String::new(), String::new(), Bytes::new()),
        };
        let cluster = self.cluster.encode();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::OK;
        let headers = response.headers_mut();
        if !message.is_empty() {
            put(headers, header::FROM, &from);
            put(headers, header::MESSAGE, &message);
        }
        if let Some(proof) = proof {
            let hello =
                Hello { path: knock.path, cluster: &cluster, from: &from, message: &message, body: &body };
            put(headers, header::PROOF, &proof.answer(&hello));
        }
        put(headers, header::CLUSTER, &cluster);
        *response.body_mut() = Body::from(body);
        response
    }
}

impl<'a> Knock<'a> {
    fn read(route: Route, parts: &'a Parts) -> Result<Knock<'a>, Problem> {
        let text = |name: &'static str| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.ok_or_else(|| unreadable(WireError::Missing(name)))
        };
        let from = text(header::FROM)?;
        Ok(Knock {
            path: route.path(),
            cluster: text(header::CLUSTER)?,
            from,
            message: text(header::MESSAGE)?,
            proof: text(header::PROOF).unwrap_or_default(),
            sender: Sender::decode(from).map_err(unreadable)?,
        })
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let reading = Limited::new(body, LINES_BYTES_MOST).collect();
    match tokio::time::timeout(BODY_MOST, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => {
            Err(Problem::new(Code::BodyTooLarge, "no batch of ours is that large, or it broke off"))
        }
        Err(_) => Err(Problem::new(Code::RequestTimeout, "the body did not arrive in time")),
    }
}

fn unreadable(error: WireError) -> Problem {
    Problem::field("envelope", error.to_string())
}
