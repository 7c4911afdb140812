//! Calls of peers in a cluster with a secret: which reach the loop, and how the response proves itself.

use std::convert::Infallible;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use tokio::time::{Instant, timeout};

use super::Answer;
use super::meeting::temp_dir;
use super::peers::{Node, TERM, envelope, merge, node, packet, vector, with_desk};
use crate::driver::handle::{PeerState, channel};
use crate::protocol::{Message, Mode, SnapshotMeta};
use crate::storage::Boundary;
use crate::storage::files::Files;
use crate::storage::snapshot::{Change, Snapshots};
use crate::types::{Epoch, NodeId, Position};
use crate::wire::{CallProof, Challenge, Hello, Packet, ProofSecret, Session, header};

fn secret() -> ProofSecret {
    ProofSecret::new("correct horse battery staple")
}

/// Returns the status and code of a refusal to a peer. Peers send no request id, so the response has none.
pub fn refusal(answer: &Answer) -> (u16, String) {
    assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
    (answer.status.as_u16(), answer.json()["code"].as_str().unwrap_or_default().to_string())
}

/// A node's session with the node under test, and the cluster header of its calls.
struct Caller {
    session: Session,
    cluster: String,
}

/// Returns the proof that a text belongs to one call.
type Tag<'a> = &'a dyn Fn(&[u8]) -> [u8; 32];
/// Builds a stream with such proofs.
type Stream<'a> = &'a dyn Fn(Tag<'_>) -> Vec<u8>;

impl Caller {
    async fn meets(node: &mut Node) -> Caller {
        let resigned = packet(Message::Resigned { epoch: TERM.epoch });
        let refused = node.send(node.request(&resigned, "", Body::empty())).await;
        assert_eq!(refusal(&refused), (401, "unauthorized".to_string()));
        let challenge = Challenge::decode(refused.header(header::CHALLENGE)).expect("it asks for a proof");
        let session = Session::new(&secret(), NodeId(1), NodeId(2), challenge, 42);
        Caller { session, cluster: node.setup.cluster.encode() }
    }

    /// Returns the proof of a call, and the counter that its response must name. A stream's body is not part of it.
    fn prove(&self, packet: &Packet, body: &[u8]) -> (String, u64) {
        let (path, from) = (packet.route.path(), packet.sender.encode());
        let message = packet.message.as_str();
        let hello = Hello { path, cluster: &self.cluster, from: &from, message, body };
        let CallProof { proof, counter, .. } = self.session.prove(&hello);
        (proof, counter)
    }

    /// Builds a call with a stream. `body` makes the stream, and gets the function that proves a text for this call.
    fn streamed(&self, node: &Node, packet: &Packet, body: Stream<'_>) -> Request<Body> {
        let (request, mac) = self.proved(node, packet, Body::empty(), b"");
        request.map(|_| Body::from(body(&|text| *mac.clone().update(text).finalize().as_bytes())))
    }

    /// Builds a call with its own proof of the head, and the hasher that proves a stream in its body.
    fn proved(
        &self,
        node: &Node,
        packet: &Packet,
        body: Body,
        hashed: &[u8],
    ) -> (Request<Body>, blake3::Hasher) {
        let (path, from) = (packet.route.path(), packet.sender.encode());
        let message = packet.message.as_str();
        let call =
            self.session.prove(&Hello { path, cluster: &self.cluster, from: &from, message, body: hashed });
        let mut request = node.request(packet, &call.proof, body);
        let head = call.head.parse().expect("it is a header");
        request.headers_mut().insert(header::HEAD_PROOF, head);
        (request, self.session.stream_mac(call.counter))
    }
}

pub fn poll() -> Packet {
    packet(Message::Poll { term: TERM, vector: vector() })
}

fn side() -> Packet {
    let side = Message::Side { epoch: TERM.epoch, leader: Some(NodeId(2)), vector: vector() };
    Packet::new(&envelope(2, 1, side), Bytes::new(), 0)
}

#[tokio::test]
async fn a_call_without_a_proof_of_its_own_reaches_nobody() {
    let mut node = node(Mode::Available, Some(secret()));
    let caller = Caller::meets(&mut node).await;
    let poll = poll();
    let (proof, _) = caller.prove(&poll, &poll.body);
    let meet = packet(Message::Meet { term: TERM, vector: vector() });
    for (what, request) in [
        ("no proof", node.request(&poll, "", poll.body.clone())),
        ("half a proof", node.request(&poll, &proof[..proof.len() - 1], poll.body.clone())),
        ("another body", node.request(&poll, &proof, "more")),
        ("another message", node.request(&meet, &proof, poll.body.clone())),
    ] {
        let answer = node.send(request).await;
        assert_eq!(refusal(&answer), (401, "unauthorized".to_string()), "{what}");
        assert!(Challenge::decode(answer.header(header::CHALLENGE)).is_some(), "{what}");
        assert_eq!(answer.header(header::PROOF), "", "{what}");
        assert!(node.nothing_came(), "{what}");
    }
    let request = node.request(&poll, &proof, poll.body.clone());
    assert_eq!(node.ask(request, None).await.0.status().as_u16(), 200);
    let replayed = node.send(node.request(&poll, &proof, poll.body.clone())).await;
    assert_eq!(refusal(&replayed), (401, "unauthorized".to_string()));
    assert!(node.nothing_came());
}

#[tokio::test]
async fn a_response_proves_itself_and_which_call_it_answers() {
    let mut node = node(Mode::Available, Some(secret()));
    let caller = Caller::meets(&mut node).await;
    let poll = poll();
    for said in [Some(side()), None] {
        let (proof, counter) = caller.prove(&poll, &poll.body);
        let request = node.request(&poll, &proof, poll.body.clone());
        let (response, _) = node.ask(request, said.clone()).await;
        let answer = Answer::of(response).await;
        assert_eq!(answer.header(header::CLUSTER), caller.cluster);
        let hello = Hello {
            path: poll.route.path(),
            cluster: answer.header(header::CLUSTER),
            from: answer.header(header::FROM),
            message: answer.header(header::MESSAGE),
            body: answer.text.as_bytes(),
        };
        assert_eq!(hello.message, said.as_ref().map_or("", |said| said.message.as_str()));
        let given = answer.header(header::PROOF);
        assert!(caller.session.checks(counter, &hello, given), "{said:?}");
        assert!(!caller.session.checks(counter + 1, &hello, given), "it answers another call");
        for changed in [
            Hello { path: "/heartbeat", ..hello },
            Hello { cluster: "other", ..hello },
            Hello { from: "3 to=1", ..hello },
            Hello { message: "appended", ..hello },
            Hello { body: b"maybe", ..hello },
        ] {
            assert!(!caller.session.checks(counter, &changed, given), "{changed:?}");
        }
    }
}

#[tokio::test]
async fn without_a_secret_nothing_is_proved() {
    let mut node = node(Mode::Available, None);
    let poll = poll();
    let request = node.request(&poll, "anything", poll.body.clone());
    let answer = Answer::of(node.ask(request, Some(side())).await.0).await;
    assert_eq!((answer.status.as_u16(), answer.header(header::PROOF)), (200, ""));
    assert_eq!(answer.header(header::MESSAGE), side().message);
    let silent = node.ask(node.request(&poll, "", poll.body.clone()), None).await.0;
    for name in [header::FROM, header::MESSAGE] {
        assert!(!silent.headers().contains_key(name), "{name} of an answer that says nothing");
    }
}

/// A response that may carry an answer waits for at most one heartbeat interval; any other response waits for the loop.
#[tokio::test(start_paused = true)]
async fn a_response_waits_for_a_beat_at_most() {
    let node = node(Mode::Available, None);
    let beat = Duration::from_micros(node.setup.settings.timing.heartbeat.0);
    let began = Instant::now();
    let poll = poll();
    let response = node.front.answer(None, node.request(&poll, "", poll.body.clone())).await;
    assert_eq!(response.status().as_u16(), 200);
    assert!((beat..2 * beat).contains(&began.elapsed()), "{:?}", began.elapsed());
    let resigned = packet(Message::Resigned { epoch: TERM.epoch });
    let response = node.front.answer(None, node.request(&resigned, "", Body::empty()));
    assert!(timeout(100 * beat, response).await.is_err(), "the loop has not taken it");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let mut node = node(Mode::Available, None);
    let began = Instant::now();
    let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    let answer = node.send(node.request(&poll(), "", endless)).await;
    assert_eq!(refusal(&answer), (408, "request_timeout".to_string()));
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_streams_proof_is_of_its_own_call() {
    let mut node = node(Mode::Available, Some(secret()));
    let (caller, other) = (Caller::meets(&mut node).await, Caller::meets(&mut node).await);
    let (packet, text) = merge();
    let (_, others) = other.proved(&node, &packet, Body::empty(), b"");
    let others = *others.clone().update(&text).finalize().as_bytes();
    let cases: [(&str, Stream<'_>); 4] = [
        ("another session's", &|_| [&text[..], &others].concat()),
        ("of another body", &|tag| [&text[..], &tag(b"")].concat()),
        ("cut short", &|tag| [&text[..], &tag(&text)[..31]].concat()),
        ("followed by more", &|tag| [&text[..], &tag(&text), b" "].concat()),
    ];
    for (what, body) in cases {
        let answer = node.send(caller.streamed(&node, &packet, body)).await;
        assert_eq!(refusal(&answer), (401, "unauthorized".to_string()), "{what}");
        assert!(node.nothing_came(), "{what}");
    }
    let whole: Stream<'_> = &|tag| [&text[..], &tag(&text)].concat();
    // The proof of a streamed call's head covers only the head, and no stream is accepted without its own.
    let (request, _) = caller.proved(&node, &packet, Body::from("the whole"), b"the whole");
    assert_eq!(refusal(&node.send(request).await), (401, "unauthorized".to_string()));
    let mut bare = caller.streamed(&node, &packet, whole);
    bare.headers_mut().remove(header::HEAD_PROOF);
    assert_eq!(refusal(&node.send(bare).await), (401, "unauthorized".to_string()), "as it once was sent");
    let request = caller.streamed(&node, &packet, whole);
    let proof = request.headers()[header::PROOF].to_str().expect("a text");
    let counter = proof.split(' ').nth(1).and_then(|counter| counter.parse().ok()).expect("a counter");
    let (response, ask) = node.ask(request, None).await;
    assert!(matches!(ask.call.brought, Some(PeerState::Difference(_))));
    let answer = Answer::of(response).await;
    let cluster = &caller.cluster;
    let hello = Hello { path: packet.route.path(), cluster, from: "", message: "", body: b"" };
    assert!(caller.session.checks(counter, &hello, answer.header(header::PROOF)));
}

/// A body that must not be read.
fn unread() -> Body {
    let piece: fn() -> Result<Bytes, Infallible> = || panic!("the body was read");
    Body::from_stream(stream::once(async move { piece() }))
}

#[tokio::test]
async fn a_body_is_not_read_before_its_head_is_proved() {
    let mut node = node(Mode::Available, Some(secret()));
    let caller = Caller::meets(&mut node).await;
    let poll = poll();
    let (mut wrong, _) = caller.proved(&node, &poll, unread(), b"");
    wrong.headers_mut().insert(header::HEAD_PROOF, "0".repeat(64).parse().expect("it is a header"));
    assert_eq!(refusal(&node.send(wrong).await), (401, "unauthorized".to_string()));
    let (right, _) = caller.proved(&node, &poll, Body::from("another"), b"one");
    assert_eq!(refusal(&node.send(right).await), (401, "unauthorized".to_string()), "another body");
    let (right, _) = caller.proved(&node, &poll, Body::from(poll.body.clone()), &poll.body);
    assert_eq!(node.ask(right, None).await.0.status().as_u16(), 200);
}

/// Calls without a secret, or of a caller that does not prove the head.
#[tokio::test]
async fn few_bodies_are_read_unproved_at_a_time() {
    const PLACES: usize = 8;
    for secret in [None, Some(secret())] {
        let mut node = node(Mode::Available, secret);
        let poll = poll();
        let endless = || Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let requests: Vec<_> = (0..PLACES).map(|_| node.request(&poll, "", endless())).collect();
        let mut waiting: Vec<_> =
            requests.into_iter().map(|request| Box::pin(node.front.answer(None, request))).collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        let answer = Answer::of(node.front.answer(None, node.request(&poll, "", unread())).await).await;
        assert_eq!(refusal(&answer), (429, "too_many_requests".to_string()));
        drop(waiting);
        let said = node.front.answer(None, node.request(&poll, "", endless())).now_or_never();
        assert!(said.is_none(), "there is room again");
        assert!(node.nothing_came());
    }
}

#[tokio::test]
async fn a_streams_proof_is_of_one_call_alone() {
    let mut node = node(Mode::Available, Some(secret()));
    let caller = Caller::meets(&mut node).await;
    let (packet, text) = merge();
    let tagged = |mac: blake3::Hasher| [&text[..], mac.clone().update(&text).finalize().as_bytes()].concat();
    let (_, another) = caller.proved(&node, &packet, Body::empty(), b"");
    let old =
        Session::new(&secret(), NodeId(1), NodeId(2), Challenge::decode("1.0").expect("a challenge"), 42);
    for (what, mac) in [("of another call", another), ("of no session", old.stream_mac(0))] {
        let (request, _) = caller.proved(&node, &packet, Body::from(tagged(mac)), b"");
        assert_eq!(refusal(&node.send(request).await), (401, "unauthorized".to_string()), "{what}");
        assert!(node.nothing_came(), "{what}");
    }
    let (request, mac) = caller.proved(&node, &packet, Body::empty(), b"");
    let request = request.map(|_| Body::from(tagged(mac)));
    let (response, ask) = node.ask(request, None).await;
    assert_eq!(response.status().as_u16(), 200);
    assert!(matches!(ask.call.brought, Some(PeerState::Difference(_))));
}

/// Returns a state on disk in its transfer form.
fn exported(dir: &Path) -> (Boundary, Vec<u8>) {
    let (mut snapshots, _) = Snapshots::open(&Files::default(), dir).expect("a folder can be made");
    let at = Position::new(Epoch::new(7, NodeId(1)), 12);
    let boundary = Boundary { meta: SnapshotMeta { at, ..SnapshotMeta::default() }, ..Boundary::default() };
    let none: [Change<'_>; 0] = [];
    snapshots.add(0, boundary.clone(), none).expect("it can be written");
    let mut text = Vec::new();
    let mut export = snapshots.export().expect("it can be read").expect("there is one");
    export.read_to_end(&mut text).expect("it can be read");
    (boundary, text)
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

#[tokio::test]
async fn a_snapshot_that_is_not_proved_whole_leaves_nothing_behind() {
    let (source, target) = (temp_dir(), temp_dir());
    let (boundary, text) = exported(&source);
    let (snapshots, _) = Snapshots::open(&Files::default(), &target).expect("a folder can be made");
    let ends = channel(64, Arc::new(Mutex::new(snapshots)));
    let mut node = with_desk(Mode::Safe, Some(secret()), ends);
    let caller = Caller::meets(&mut node).await;
    let packet = packet(Message::Snapshot { term: TERM, meta: SnapshotMeta::default() });
    let cases: [(&str, Stream<'_>, u16); 4] = [
        ("unproved", &|_| text.clone(), 401),
        ("cut", &|tag| [&text[..], &tag(&text)[..31]].concat(), 401),
        ("longer", &|tag| [&text[..], &tag(&text), b"\n"].concat(), 401),
        ("half, and proved", &|tag| [&text[..20], &tag(&text[..20])].concat(), 400),
    ];
    for (what, body, code) in cases {
        let answer = node.send(caller.streamed(&node, &packet, body)).await;
        assert_eq!(answer.status.as_u16(), code, "{what}: {}", answer.text);
        assert!(node.nothing_came(), "{what}");
        assert_eq!(entries(&target), Vec::<PathBuf>::new(), "{what}");
    }
    let request = caller.streamed(&node, &packet, &|tag| [&text[..], &tag(&text)].concat());
    let (response, ask) = node.ask(request, None).await;
    assert_eq!(response.status().as_u16(), 200);
    let Some(PeerState::Snapshot(brought)) = ask.call.brought else { panic!("no snapshot came") };
    assert_eq!(brought.0.boundary(), &boundary);
    drop(brought);
    for dir in [source, target] {
        std::fs::remove_dir_all(dir).expect("it is there");
    }
}
