//! Other nodes call the seed's routes with an envelope. A call reaches the loop only after its cluster, its sender and, if there is a
//! secret, its proof have been checked.
//!
//! ```text
//!   envelope ─► wall ─► cluster, sender, certificate, mode ─► proof of the head ─► body ─► proof of the whole ─► decoded ─► loop
//!                        └ 409, 403: what differs, in words                        └ a stream is checked as it arrives
//! ```
//!
//! Any caller can reach the steps before the proof. So they must be cheap, and must not touch the protocol. The words of a
//! refusal go to the operator of the other node, as that member's trouble: most such calls come from a node with a wrong
//! configuration.
//!
//! A message whose kind is not known passes all checks and is refused as unreadable afterwards.
//! `driver::greet` depends on that: it sends such a message to an address, and takes this very refusal as the
//! answer of a node that has checked the caller (P43).

mod transfer;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use eldest_tls::Caller as Certified;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as _;
use serde_json::Map;

use crate::driver::handle::{PeerCall, PeerState};
use crate::driver::{self, Handle, Setup, Wall};
use crate::http::admission::{Caller, Places, Sharers, Shares};
use crate::http::answer::{Code, Problem, Surroundings};
use crate::http::request::{Connection, Context};
use crate::protocol::{Message, Mode};
use crate::types::NodeId;
use crate::wire::{
    self, Attachment, ClusterHead, HeadProof, Hello, Packet, Proof, ProofVerifier, Route, Sender, WireError,
    header,
};

/// The maximum size of the lines of one append or pull: a batch (`limits.batch_bytes`), or one record of the largest kind.
const LINES_BYTES_MOST: usize = 16 << 20;
/// The maximum number of calls whose bodies are read before they are proved: all calls if there is no secret, and calls of nodes that do
/// not prove the head. This bounds the memory that such calls can fill; each is answered soon.
const UNPROVED_MOST: usize = 8;
/// The size up to which a body does not count, such as that of a heartbeat.
const UNPROVED_BYTES_FREE: u64 = 1024;
/// The time that a call from behind a wall is left without an answer: its sender has given it up by then.
const WALL_TIMEOUT: Duration = Duration::from_secs(10);
const OTHER_SETTINGS: &str = "mode or timings differ between the two nodes: all nodes need the same";
/// The time for a body to arrive: a slower peer gets a new one later.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The endpoint for calls of other nodes.
#[derive(Debug)]
pub struct PeerEndpoint {
    handle: Handle,
    cluster: ClusterHead,
    mode: Mode,
    me: NodeId,
    setup: Arc<Setup>,
    /// Missing if the cluster has no secret.
    verifier: Option<ProofVerifier>,
    /// Bodies of calls that are not proved yet.
    unproved: Arc<Places>,
    /// Differences of states that are arriving: each is held in memory.
    differences: Arc<Places>,
    /// The time that a response waits for the loop's answer: one heartbeat interval. After that the answer is sent as a separate call.
    /// So a beat is answered in its response if the loop is not delayed, and a response that is late holds no
    /// connection of the peer, unless the loop's own thread serves it and is busy.
    hold: Duration,
    wall: Arc<Wall>,
}

/// The envelope's headers as they arrived.
struct PeerRequest<'a> {
    path: &'a str,
    cluster: &'a str,
    from: &'a str,
    message: &'a str,
    proof: &'a str,
    /// Missing if the caller proves only whole calls.
    head_proof: Option<&'a str>,
    head: ClusterHead,
    sender: Sender,
    caller: Option<&'a Arc<Caller>>,
    /// The owner of the connection's certificate; None on a plain connection.
    certified: Option<Certified>,
}

impl PeerEndpoint {
    pub fn new(context: &Context) -> PeerEndpoint {
        let mut own = [0; 32];
        getrandom::fill(&mut own).expect("the boot id has been drawn from the same source of random numbers");
        let setup = &context.setup;
        let me = setup.settings.me;
        PeerEndpoint {
            handle: context.handle.clone(),
            cluster: setup.cluster.clone(),
            mode: setup.settings.mode,
            unproved: Places::new("bodies of calls that are not proved", UNPROVED_MOST, Shares::default()),
            differences: Places::new("differences of states at a time", 1, Shares::default()),
            me,
            setup: setup.clone(),
            verifier: setup.secret.clone().map(|secret| ProofVerifier::new(secret, me, own)),
            hold: Duration::from_micros(setup.settings.timing.heartbeat.0),
            wall: setup.wall.clone(),
        }
    }

    /// `connection` is the connection of the call.
    pub async fn answer(
        &self,
        context: &Context,
        route: Route,
        connection: Option<&Connection>,
        parts: Parts,
        body: Body,
    ) -> Response<Body> {
        self.answer_or_problem(route, connection, &parts, body).await.unwrap_or_else(|problem| {
            let request_id = context.request_id();
            problem.render(Surroundings { request_id: &request_id, leader: None })
        })
    }

    async fn answer_or_problem(
        &self,
        route: Route,
        connection: Option<&Connection>,
        parts: &Parts,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        let request = PeerRequest::read(route, connection, parts)?;
        match self.wall.pass(request.sender.from, WALL_TIMEOUT, self.handle_checked(&request, body)).await {
            Some(answer) => answer,
            None => Err(Problem::new(Code::RequestTimeout, "there is a wall between caller and node")),
        }
    }

    async fn handle_checked(&self, request: &PeerRequest<'_>, body: Body) -> Result<Response<Body>, Problem> {
        self.check(request)?;
        match wire::attachment(request.message).map_err(unreadable)? {
            Attachment::Snapshot => self.receive_snapshot(request, body).await,
            Attachment::Difference => self.receive_difference(request, body).await,
            Attachment::Nothing | Attachment::Lines { .. } => self.receive_message(request, body).await,
        }
    }

    /// A cause is checked before its effects: the mode of a call from another cluster is not compared, and a node at a wrong
    /// address learns which node it has reached.
    fn check(&self, request: &PeerRequest<'_>) -> Result<(), Problem> {
        let theirs = &request.head;
        if theirs.name != self.cluster.name {
            let detail = format!(
                "this node belongs to the cluster {:?}, the caller to {:?}",
                self.cluster.name, theirs.name
            );
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        let Sender { from, to, .. } = request.sender;
        check_certificate(request.certified, from)?;
        // The certificate has been compared with the sender, so this address is a peer's from here on.
        if let (Some(_), Some(caller)) = (request.certified, request.caller) {
            caller.has_proved_a_peer();
        }
        if to != self.me {
            let detail = format!("this is node {}; the call is meant for node {}", self.me.0, to.0);
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        // In safe mode the protocol itself informs a node that it is not a member, because it knows since when (P43).
        if self.mode == Mode::Available && self.setup.member(from).is_none() {
            let detail = format!("node {} is not another node of this topology", from.0);
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        if from == self.me {
            let detail = format!("this is node {} itself: another process runs under its id", from.0);
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        let (own, formed) = (self.setup.known().cluster, request.sender.cluster);
        if own.is_known() && formed.is_known() && own != formed {
            let detail = format!(
                "this node belongs to the cluster {own}, the caller to another one of the same name, {formed}, \
                    which was formed separately: one of the two has an old data directory; stop it, move the \
                    directory away and start it again"
            );
            return Err(Problem::new(Code::WrongCluster, detail));
        }
        if (&theirs.mode, theirs.settings) != (&self.cluster.mode, self.cluster.settings) {
            return Err(self.other_settings(request));
        }
        if self.mode == Mode::Safe && wire::needs_available_mode(request.message) {
            let detail = "in safe mode there are never two histories to merge";
            return Err(Problem::new(Code::ModeMismatch, detail));
        }
        // Once a log has the members of the cluster, the topology files do not count.
        let others = theirs.ids.is_some_and(|ids| Some(ids) != self.cluster.ids);
        // Before there is a log the files must agree: a blank candidate asks every node of its topology file
        // (P9).
        let by_file = self.mode == Mode::Available || (!own.is_known() && !formed.is_known());
        if others && by_file {
            let detail = "the topology files of the caller and of this node name different nodes, and no log \
                tells which is right";
            return Err(Problem::new(Code::ModeMismatch, detail));
        }
        Ok(())
    }

    /// Returns the refusal of a node with another mode or other timings. It has this node's own, which only nodes learn.
    fn other_settings(&self, request: &PeerRequest<'_>) -> Problem {
        match (self.check_head(request), &self.verifier) {
            (Err(problem), _) => return problem,
            (Ok(None), Some(verifier)) if request.proof.is_empty() => {
                return unproved(verifier, request.sender.from);
            }
            // A caller that proves only the whole of a call has not proved this one yet.
            (Ok(None), Some(_)) => return Problem::new(Code::ModeMismatch, OTHER_SETTINGS),
            (Ok(_), _) => {}
        }
        let timing = self.setup.settings.timing.named().into_iter();
        let timing: Map<_, _> = timing.map(|(name, number)| (name.to_string(), number.into())).collect();
        Problem::new(Code::ModeMismatch, OTHER_SETTINGS)
            .with("mode", self.cluster.mode.clone())
            .with("timing", timing)
    }

    async fn receive_message(
        &self,
        request: &PeerRequest<'_>,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        let (body, proof) = self.read_proved(request, body).await?;
        // After the proof: where there is a secret, only a node's own word about its address is noted (P51).
        self.setup.directory.meet(request.sender.from, &request.head.at);
        let call = driver::decode(request.sender, request.message, body).map_err(unreadable)?;
        let waits = Route::expects_answer(&call.envelope.message);
        let answer = match waits {
            true => tokio::time::timeout(self.hold, self.handle.peer(call)).await.unwrap_or(None),
            false => self.handle.peer(call).await,
        };
        Ok(self.respond(request, answer, proof.as_ref()))
    }

    async fn receive_snapshot(
        &self,
        request: &PeerRequest<'_>,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        let proof = self.check_stream(request)?;
        // After the proof of the head: where there is a secret, only a node can make this node open a file.
        let importer = self.handle.importer().await.map_err(|error| transfer::problem(&error))?;
        let mac = proof.as_ref().map(Proof::stream_mac);
        let (incoming, store) = transfer::snapshot(importer, body, mac, self.mode).await?;
        let meta = incoming.boundary().meta.clone();
        let message = wire::decode(request.message, wire::Attached::Snapshot(meta)).map_err(unreadable)?;
        self.deliver(request, message, PeerState::Snapshot(Box::new((incoming, store))), proof.as_ref()).await
    }

    async fn receive_difference(
        &self,
        request: &PeerRequest<'_>,
        body: Body,
    ) -> Result<Response<Body>, Problem> {
        let proof = self.check_stream(request)?;
        // Before the body is read: each difference may have as many bytes as `limits.merge_bytes`, in memory.
        let _place = self.differences.take(request.sharers())?;
        let (mac, most) = (proof.as_ref().map(Proof::stream_mac), self.setup.settings.limits.merge_bytes);
        let handed = transfer::difference(body, mac, most).await?;
        let attached = wire::Attached::Difference(handed.boundary.meta.clone());
        let message = wire::decode(request.message, attached).map_err(unreadable)?;
        self.deliver(request, message, PeerState::Difference(Box::new(handed)), proof.as_ref()).await
    }

    async fn deliver(
        &self,
        request: &PeerRequest<'_>,
        message: Message,
        brought: PeerState,
        proof: Option<&Proof>,
    ) -> Result<Response<Body>, Problem> {
        let envelope = request.sender.says(message);
        let call = PeerCall { envelope, lines: Default::default(), brought: Some(brought) };
        let answer = self.handle.peer(call).await;
        Ok(self.respond(request, answer, proof))
    }

    /// Reads and checks the call. A caller without a valid proof gets a challenge, and nothing else happens. If the head has its own
    /// proof, the body is only read after the head is checked.
    async fn read_proved(
        &self,
        request: &PeerRequest<'_>,
        body: Body,
    ) -> Result<(Bytes, Option<Proof>), Problem> {
        let head = self.check_head(request)?;
        let _place =
            match head.is_none() && body.size_hint().upper().is_none_or(|most| most > UNPROVED_BYTES_FREE) {
                true => Some(self.unproved.take(request.sharers())?),
                false => None,
            };
        let body = read(body).await?;
        let proof = self.check_whole(request, head, &body)?;
        Ok((body, proof))
    }

    /// Checks the head of a stream's call, and returns the proof by which its body is checked.
    /// The body comes later, so its own last bytes prove it. A caller that proves only whole calls gets a
    /// challenge: reading its stream first would let any caller fill the disk.
    fn check_stream(&self, request: &PeerRequest<'_>) -> Result<Option<Proof>, Problem> {
        match (self.check_head(request)?, &self.verifier) {
            (None, Some(verifier)) => Err(unproved(verifier, request.sender.from)),
            (head, _) => self.check_whole(request, head, &[]),
        }
    }

    /// Returns None if the head has no separate proof, or if no proof is needed.
    fn check_head(&self, request: &PeerRequest<'_>) -> Result<Option<HeadProof>, Problem> {
        let (Some(verifier), Some(head)) = (&self.verifier, request.head_proof) else {
            return Ok(None);
        };
        let checked = verifier.check_head(request.sender.from, &request.hello(&[]), request.proof, head);
        let Some(proved) = checked else {
            return Err(unproved(verifier, request.sender.from));
        };
        if let Some(caller) = request.caller {
            caller.has_proved_a_peer();
        }
        Ok(Some(proved))
    }

    fn check_whole(
        &self,
        request: &PeerRequest<'_>,
        head: Option<HeadProof>,
        body: &[u8],
    ) -> Result<Option<Proof>, Problem> {
        let (Some(verifier), hello) = (&self.verifier, request.hello(body)) else {
            return Ok(None);
        };
        let proof = match head {
            Some(head) => head.check_body(&hello),
            None => verifier.check(request.sender.from, &hello, request.proof),
        };
        proof.map(Some).ok_or_else(|| unproved(verifier, request.sender.from))
    }

    /// An empty answer is proved as well: otherwise a device in between could answer in this node's name, and
    /// the message would seem to have arrived.
    fn respond(
        &self,
        request: &PeerRequest<'_>,
        answer: Option<Packet>,
        proof: Option<&Proof>,
    ) -> Response<Body> {
        let (from, message, body) = match answer {
            Some(Packet { sender, message, body, .. }) => (sender.encode(), message, body),
            None => (String::new(), String::new(), Bytes::new()),
        };
        let cluster = self.cluster.encode();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::OK;
        let headers = response.headers_mut();
        if !message.is_empty() {
            insert(headers, header::FROM, &from);
            insert(headers, header::MESSAGE, &message);
        }
        if let Some(proof) = proof {
            let hello =
                Hello { path: request.path, cluster: &cluster, from: &from, message: &message, body: &body };
            insert(headers, header::PROOF, &proof.answer(&hello));
        }
        insert(headers, header::CLUSTER, &cluster);
        *response.body_mut() = Body::from(body);
        response
    }
}

impl<'a> PeerRequest<'a> {
    fn read(
        route: Route,
        connection: Option<&'a Connection>,
        parts: &'a Parts,
    ) -> Result<PeerRequest<'a>, Problem> {
        let text = |name: &'static str| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.ok_or_else(|| unreadable(WireError::Missing(name)))
        };
        let (from, cluster) = (text(header::FROM)?, text(header::CLUSTER)?);
        let head_proof = text(header::HEAD_PROOF).ok();
        Ok(PeerRequest {
            path: route.path(),
            cluster,
            from,
            message: text(header::MESSAGE)?,
            proof: text(header::PROOF).unwrap_or_default(),
            head_proof,
            caller: connection.map(|connection| &connection.caller),
            head: ClusterHead::decode(cluster).map_err(unreadable)?,
            sender: Sender::decode(from).map_err(unreadable)?,
            certified: connection.and_then(|connection| connection.certified),
        })
    }
}

impl PeerRequest<'_> {
    /// The caller is not authenticated yet: the call counts for its address.
    fn sharers(&self) -> Sharers {
        self.caller.map(|caller| Sharers::at(caller.origin)).unwrap_or_default()
    }

    fn hello<'a>(&'a self, body: &'a [u8]) -> Hello<'a> {
        let PeerRequest { path, cluster, from, message, .. } = *self;
        Hello { path, cluster, from, message, body }
    }
}

/// Returns the problem with the challenge for a proof.
fn unproved(verifier: &ProofVerifier, from: NodeId) -> Problem {
    let detail = "the call does not prove that its sender knows the cluster secret of the node that it was sent to: all \
        nodes need the same (cluster_secret or cluster_secret_file)";
    let problem = Problem::new(Code::Unauthorized, detail);
    let challenge = verifier.challenge(from).encode();
    let Ok(challenge) = HeaderValue::from_str(&challenge) else {
        return unreadable(WireError::Missing("challenge"));
    };
    problem.header(HeaderName::from_static(header::CHALLENGE), challenge)
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let reading = Limited::new(body, LINES_BYTES_MOST).collect();
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => {
            Err(Problem::new(Code::BodyTooLarge, "the batch is larger than any node sends, or it broke off"))
        }
        Err(_) => Err(Problem::new(Code::RequestTimeout, "the body did not arrive in time")),
    }
}

fn unreadable(error: WireError) -> Problem {
    Problem::field("envelope", error.to_string())
}

/// With TLS a node's certificate identifies it. Without TLS the sender in the call counts, together with the cluster's secret.
/// A client's certificate lets a connection in and names no node (`docs/security.md`).
fn check_certificate(caller: Option<Certified>, from: NodeId) -> Result<(), Problem> {
    let says = || format!("the call claims to come from node {}", from.0);
    let detail = match caller {
        None => return Ok(()),
        Some(Certified { node: Some(node) }) if node == from.0 => return Ok(()),
        Some(Certified { node: Some(node) }) => {
            format!("{}, but its certificate is that of node {node}", says())
        }
        Some(Certified { node: None }) => {
            format!("{}, but has no certificate of a node of this cluster", says())
        }
    };
    Err(Problem::new(Code::Forbidden, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_that_of_the_node_that_calls() {
        let taken = |caller: Option<Certified>| check_certificate(caller, NodeId(2)).is_ok();
        assert!(taken(None), "without TLS there is none");
        assert!(taken(Some(Certified { node: Some(2) })));
        assert!(!taken(Some(Certified { node: Some(3) })) && !taken(Some(Certified { node: None })));
    }
}
