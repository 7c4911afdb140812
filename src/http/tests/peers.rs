//! Messages between nodes of different sides at the endpoint: which reach the loop, and which never do.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::FutureExt;

use super::Answer;
use super::node::{guard, limits, web};
use super::setups::{desk, setup};
use crate::driver::Setup;
use crate::driver::handle::{Desk, Handle, PeerAsk, PeerState};
use crate::http::Context;
use crate::http::server::Front;
use crate::protocol::{Envelope, Message, Mode, SnapshotMeta, Term};
use crate::storage::Boundary;
use crate::storage::node::SentDifference;
use crate::store::Store;
use crate::types::{Boot, ClusterId, Digest, Epoch, Format, Incarnation, NodeId, Vector};
use crate::wire::{Challenge, Hello, Packet, ProofSecret, Secrets, Sender, Session, header};

pub const TERM: Term =
    Term { epoch: Epoch { counter: 7, leader: NodeId(1) }, claim: crate::types::ClaimId(5) };

/// The front of node 2, and the loop's end behind it.
pub struct Node {
    pub front: Front,
    pub desk: Desk,
    pub setup: Arc<Setup>,
}

pub fn node(mode: Mode, secret: Option<ProofSecret>) -> Node {
    with_desk(mode, secret, desk())
}

pub fn with_desk(mode: Mode, secret: Option<ProofSecret>, (handle, desk): (Handle, Desk)) -> Node {
    let addresses: Vec<_> = (1..=3).map(|id| ([127, 0, 0, id], 9000).into()).collect();
    let mut setup = setup(NodeId(2), &addresses, None);
    setup.settings.mode = mode;
    setup.secret = secret.map(|secret| Arc::new(Secrets::new(secret, None)));
    let setup = Arc::new(setup);
    let context = Context::new(handle, setup.clone(), limits(), guard(None, None), web());
    Node { front: Front::new(Arc::new(context.expect("a client can be made"))), desk, setup }
}

pub fn envelope(from: u32, to: u32, message: Message) -> Envelope {
    Envelope {
        from: NodeId(from),
        to: NodeId(to),
        boot: Boot(1),
        incarnation: Incarnation(2),
        admitted: true,
        cluster: ClusterId::NONE,
        format: Format(1),
        message,
    }
}

pub fn packet(message: Message) -> Packet {
    Packet::new(&envelope(1, 2, message), Bytes::new(), 0)
}

pub fn vector() -> Vector {
    "7.1@120;1-6.3@90".parse().expect("it is spelt as vectors are")
}

/// Returns a state's difference in its transfer form, and the message that goes before it.
pub fn merge() -> (Packet, Vec<u8>) {
    let mut boundary = Boundary { chain: 9, origin: 4, ..Boundary::default() };
    boundary.meta.vector = Some(vector());
    let handed =
        SentDifference { boundary, digest: Digest::new(0xfeed), difference: Store::mergeable().whole() };
    let mut text = Vec::new();
    handed.write(&mut text).expect("memory takes everything");
    let message =
        Message::Merge { epoch: TERM.epoch, base: Vector::default(), meta: SnapshotMeta::default() };
    (packet(message), text)
}

impl Node {
    pub fn request(&self, packet: &Packet, proof: &str, body: impl Into<Body>) -> Request<Body> {
        let builder = Request::builder().method("POST").uri(packet.route.path()).header("host", "x");
        let builder = builder.header(header::CLUSTER, self.setup.cluster.encode());
        let builder = builder.header(header::FROM, packet.sender.encode());
        let builder = builder.header(header::MESSAGE, &packet.message).header(header::PROOF, proof);
        builder.body(body.into()).expect("it is well formed")
    }

    /// Sends a request that must not reach the loop.
    pub async fn send(&mut self, request: Request<Body>) -> Answer {
        let response = tokio::select! {
            biased;
            response = self.front.answer(None, request) => response,
            Some(PeerAsk { call, .. }) = self.desk.peers.recv() => panic!("it reached the loop: {call:?}"),
        };
        Answer::of(response).await
    }

    /// Sends a request, and answers the message that reaches the loop.
    pub async fn ask(&mut self, request: Request<Body>, answer: Option<Packet>) -> (Response<Body>, PeerAsk) {
        let Node { front, desk, .. } = self;
        let looping = async {
            let PeerAsk { call, reply } = desk.peers.recv().await.expect("the door holds the other end");
            reply.send(answer).expect("the door waits");
            PeerAsk { call, reply: tokio::sync::oneshot::channel().0 }
        };
        tokio::join!(front.answer(None, request), looping)
    }

    pub fn nothing_came(&mut self) -> bool {
        self.desk.peers.try_recv().is_err()
    }
}

#[tokio::test]
async fn a_poll_is_answered_in_the_seeds_words_and_the_envelopes() {
    let mut node = node(Mode::Available, None);
    for (leader, body) in [(None, "false"), (Some(NodeId(3)), "false"), (Some(NodeId(2)), "true")] {
        let side = Message::Side { epoch: TERM.epoch, leader, vector: vector() };
        let side = Packet::new(&envelope(2, 1, side), Bytes::new(), 0);
        let poll = packet(Message::Poll { term: TERM, vector: vector() });
        let request = node.request(&poll, "", poll.body.clone());
        let (response, ask) = node.ask(request, Some(side.clone())).await;
        assert_eq!(ask.call.envelope, envelope(1, 2, Message::Poll { term: TERM, vector: vector() }));
        let answer = Answer::of(response).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, body), "{leader:?}");
        assert_eq!(answer.header(header::MESSAGE), side.message);
        assert_eq!(Sender::decode(answer.header(header::FROM)), Ok(side.sender));
    }
}

#[tokio::test]
async fn a_difference_reaches_the_loop_whole_or_not_at_all() {
    let mut node = node(Mode::Available, None);
    let (packet, text) = merge();
    let request = node.request(&packet, "", text.clone());
    let (response, ask) = node.ask(request, None).await;
    assert_eq!(response.status().as_u16(), 200);
    let Some(PeerState::Difference(handed)) = ask.call.brought else { panic!("nothing came with it") };
    let Message::Merge { meta, .. } = ask.call.envelope.message else { panic!("another message came") };
    assert_eq!((handed.digest, handed.boundary.origin, handed.boundary.chain), (Digest::new(0xfeed), 4, 9));
    assert_eq!((&handed.boundary.meta, &meta.vector), (&meta, &Some(vector())));
    for (what, body) in [
        ("nothing", Vec::new()),
        ("cut", text[..text.len() - 1].to_vec()),
        ("twice", [&text[..], &text[..]].concat()),
        ("no difference", b"{\"users\": []}\n".to_vec()),
    ] {
        let answer = node.send(node.request(&packet, "", body)).await;
        let code = answer.json()["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (400, "bad_field".into()), "{what}");
        assert!(node.nothing_came(), "{what}");
    }
}

#[tokio::test]
async fn what_comes_through_a_wall_reaches_nobody() {
    let mut node = node(Mode::Available, None);
    let poll = packet(Message::Poll { term: TERM, vector: vector() });
    let arrives = |node: &mut Node| {
        let request = node.request(&poll, "", poll.body.clone());
        assert!(node.front.answer(None, request).now_or_never().is_none());
        !node.nothing_came()
    };
    assert!(arrives(&mut node));
    node.setup.wall.set([NodeId(1)].into());
    assert!(!arrives(&mut node));
    node.setup.wall.set([NodeId(3)].into());
    assert!(arrives(&mut node));
}

#[tokio::test]
async fn in_safe_mode_nobody_merges() {
    let mut node = node(Mode::Safe, None);
    let messages = [
        Message::Poll { term: TERM, vector: vector() },
        Message::Side { epoch: TERM.epoch, leader: None, vector: vector() },
        Message::Meet { term: TERM, vector: vector() },
        Message::Override { term: TERM, base: vector(), meta: SnapshotMeta::default() },
    ];
    let (merge, text) = merge();
    for packet in messages.into_iter().map(packet).chain([merge]) {
        let answer = node.send(node.request(&packet, "", text.clone())).await;
        let code = answer.json()["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (409, "mode_mismatch".into()), "{}", packet.message);
    }
    assert!(node.nothing_came());
}

#[tokio::test]
async fn a_stream_proves_itself_by_its_end() {
    let secret = ProofSecret::new("correct horse battery staple");
    let mut node = node(Mode::Available, Some(secret.clone()));
    let (packet, text) = merge();
    let answer = node.send(node.request(&packet, "", text.clone())).await;
    assert_eq!(answer.status.as_u16(), 401);
    let challenge = Challenge::decode(answer.header(header::CHALLENGE)).expect("it asks for a proof");
    let session = Session::new(&secret, NodeId(1), NodeId(2), challenge, 42);
    let (cluster, from) = (node.setup.cluster.encode(), packet.sender.encode());
    let (path, message) = (packet.route.path(), packet.message.as_str());
    let hello = Hello { path, cluster: &cluster, from: &from, message, body: &[] };
    let proved = |node: &Node, wrong: u8| {
        let call = session.prove(&hello);
        let mut end = *session.stream_mac(call.counter).update(&text).finalize().as_bytes();
        end[0] ^= wrong;
        let mut request = node.request(&packet, &call.proof, [&text[..], &end].concat());
        request.headers_mut().insert(header::HEAD_PROOF, call.head.parse().expect("it is a header"));
        request
    };
    let without = proved(&node, 0).map(|_| Body::from(text.clone()));
    for request in [without, proved(&node, 1)] {
        let answer = node.send(request).await;
        assert_eq!(answer.status.as_u16(), 401);
        assert!(node.nothing_came());
    }
    let request = proved(&node, 0);
    let (response, ask) = node.ask(request, None).await;
    assert_eq!(response.status().as_u16(), 200);
    assert!(matches!(ask.call.brought, Some(PeerState::Difference(_))));
}
