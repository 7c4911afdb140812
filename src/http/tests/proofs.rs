//! Calls of peers where the cluster has a secret: what reaches the loop, and how the response proves itself.

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
use crate::driver::api::{PeerAsk, PeerState, channel};
use crate::protocol::{Message, Mode, SnapshotMeta};
use crate::storage::Boundary;
use crate::storage::files::Files;
use crate::storage::snapshot::{Change, Snapshots};
use crate::types::{ClusterId, Epoch, NodeId, Position};
use crate::wire::{Challenge, Hello, Packet, Secret, Session, body_mac, header};

fn secret() -> Secret {
    Secret::new("correct horse battery staple")
}

/// What a peer is told; it has no request id of its own to be given back.
fn refusal(answer: &Answer) -> (u16, String) {
    assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
    (answer.status.as_u16(), answer.json()["code"].as_str().unwrap_or_default().to_string())
}

/// A node's session with the node under test, and the words that it is asked in.
struct Caller {
    session: Session,
    cluster: String,
}

impl Caller {
    async fn meets(node: &mut Node) -> Caller {
        let resigned = packet(Message::Resigned { epoch: TERM.epoch });
        let refused = node.send(node.request(&resigned, "", Body::empty())).await;
        assert_eq!(refusal(&refused), (401, "unauthorized".to_string()));
        let challenge = Challenge::decode(refused.header(header::CHALLENGE)).expect("it asks for a proof");
        let session = Session::new(&secret(), NodeId(1), NodeId(2), challenge, 42);
        Caller { session, cluster: node.setup.cluster.encode() }
    }

    /// The proof of a call, and the counter that its response must name. A stream's body is not part of it.
    fn prove(&self, packet: &Packet, body: &[u8]) -> (String, u64) {
        let (path, from) = (packet.route.path(), packet.sender.encode());
        let message = packet.message.as_str();
        self.session.prove(&Hello { path, cluster: &self.cluster, from: &from, message, body })
    }

    fn tag(&self, body: &[u8]) -> [u8; 32] {
        *body_mac(self.session.key()).update(body).finalize().as_bytes()
    }
}

fn poll() -> Packet {
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

/// A response waits for a beat where it may bring an answer, and for the loop where it only says that the message came.
#[tokio::test(start_paused = true)]
async fn a_response_waits_for_a_beat_at_most() {
    let node = node(Mode::Available, None);
    let beat = Duration::from_micros(node.setup.settings.timing.heartbeat.0);
    let began = Instant::now();
    let poll = poll();
    let response = node.front.answer(node.request(&poll, "", poll.body.clone())).await;
    assert_eq!(response.status().as_u16(), 200);
    assert!((beat..2 * beat).contains(&began.elapsed()), "{:?}", began.elapsed());
    let resigned = packet(Message::Resigned { epoch: TERM.epoch });
    let response = node.front.answer(node.request(&resigned, "", Body::empty()));
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
    for (what, tag) in [
        ("another session's", other.tag(&text).to_vec()),
        ("of another body", caller.tag(b"").to_vec()),
        ("cut short", caller.tag(&text)[..31].to_vec()),
        ("followed by more", [&caller.tag(&text)[..], b" "].concat()),
    ] {
        let body = [&text[..], &tag].concat();
        let answer = node.send(node.request(&packet, &caller.prove(&packet, &[]).0, body)).await;
        assert_eq!(refusal(&answer), (401, "unauthorized".to_string()), "{what}");
        assert!(node.nothing_came(), "{what}");
    }
    // The head of a streamed call proves the head alone.
    let body = [&text[..], &caller.tag(&text)].concat();
    let answer = node.send(node.request(&packet, &caller.prove(&packet, &body).0, body.clone())).await;
    assert_eq!(refusal(&answer), (401, "unauthorized".to_string()));
    let (proof, counter) = caller.prove(&packet, &[]);
    let (response, ask) = node.ask(node.request(&packet, &proof, body), None).await;
    assert!(matches!(ask.call.brought, Some(PeerState::Difference(_))));
    let answer = Answer::of(response).await;
    let cluster = &caller.cluster;
    let hello = Hello { path: packet.route.path(), cluster, from: "", message: "", body: b"" };
    assert!(caller.session.checks(counter, &hello, answer.header(header::PROOF)));
}

/// A state on disk, as it travels.
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
    let tag = caller.tag(&text);
    for (what, body, code) in [
        ("unproved", text.clone(), 401),
        ("cut", [&text[..], &tag[..31]].concat(), 401),
        ("longer", [&text[..], &tag, b"\n"].concat(), 401),
        ("half, and proved", [&text[..20], &caller.tag(&text[..20])].concat(), 400),
    ] {
        let answer = node.send(node.request(&packet, &caller.prove(&packet, &[]).0, body)).await;
        assert_eq!(answer.status.as_u16(), code, "{what}: {}", answer.text);
        assert!(node.nothing_came(), "{what}");
        assert_eq!(entries(&target), Vec::<PathBuf>::new(), "{what}");
    }
    let body = [&text[..], &tag].concat();
    let request = node.request(&packet, &caller.prove(&packet, &[]).0, body);
    let (response, ask) = node.ask(request, None).await;
    assert_eq!(response.status().as_u16(), 200);
    let Some(PeerState::Snapshot(brought)) = ask.call.brought else { panic!("no snapshot came") };
    assert_eq!(brought.0.boundary(), &boundary);
    drop(brought);
    for dir in [source, target] {
        std::fs::remove_dir_all(dir).expect("it is there");
    }
}

#[tokio::test]
async fn one_difference_is_taken_in_at_a_time() {
    let mut node = node(Mode::Available, None);
    let (packet, text) = merge();
    let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    let first = node.request(&packet, "", endless);
    let second = node.request(&packet, "", text.clone());
    let third = node.request(&packet, "", text);
    let mut waiting = Box::pin(node.front.answer(first));
    assert!((&mut waiting).now_or_never().is_none());
    let answer = Answer::of(node.front.answer(second).await).await;
    assert_eq!(refusal(&answer), (429, "too_many_requests".to_string()));
    drop(waiting);
    let (response, _) = node.ask(third, None).await;
    assert_eq!(response.status().as_u16(), 200);
}

#[tokio::test]
async fn only_other_nodes_of_this_cluster_are_heard() {
    let mut node = node(Mode::Available, None);
    let poll = |from, to| {
        let message = Message::Poll { term: TERM, vector: vector() };
        Packet::new(&envelope(from, to, message), Bytes::new(), 0)
    };
    let with_cluster = |node: &Node, packet: &Packet, cluster: &str| -> Request<Body> {
        let mut request = node.request(packet, "", packet.body.clone());
        request.headers_mut().insert(header::CLUSTER, cluster.parse().expect("it is a header"));
        request
    };
    let cluster = node.setup.cluster.encode();
    let other = cluster.replace("test", "toast");
    let timings = crate::wire::ClusterHead { settings: 2, ..node.setup.cluster.clone() }.encode();
    let mode = crate::wire::ClusterHead { mode: "other".into(), ..node.setup.cluster.clone() }.encode();
    for (what, request, code) in [
        ("another cluster", with_cluster(&node, &poll(1, 2), &other), "wrong_cluster"),
        ("meant for another", with_cluster(&node, &poll(1, 3), &cluster), "wrong_cluster"),
        ("from this node", with_cluster(&node, &poll(2, 2), &cluster), "wrong_cluster"),
        ("from a stranger", with_cluster(&node, &poll(4, 2), &cluster), "wrong_cluster"),
        ("other timings", with_cluster(&node, &poll(1, 2), &timings), "mode_mismatch"),
        ("another mode", with_cluster(&node, &poll(1, 2), &mode), "mode_mismatch"),
    ] {
        let answer = node.send(request).await;
        assert_eq!(refusal(&answer), (409, code.to_string()), "{what}");
        assert!(node.nothing_came(), "{what}");
    }
    // It is formed, and so is the caller's cluster of the same name.
    let members = node.setup.settings.members.clone();
    node.setup.directory.follow(ClusterId(7), &members);
    let mut old = poll(1, 2);
    old.sender.cluster = ClusterId(8);
    let answer = node.send(with_cluster(&node, &old, &cluster)).await;
    assert_eq!(refusal(&answer), (409, "wrong_cluster".to_string()), "an old data directory");
    for name in [header::CLUSTER, header::FROM] {
        let mut request = node.request(&poll(1, 2), "", "");
        request.headers_mut().remove(name);
        assert_eq!(refusal(&node.send(request).await), (400, "bad_field".to_string()), "{name}");
    }
    for from in [1, 3] {
        let PeerAsk { call, .. } = node.ask(with_cluster(&node, &poll(from, 2), &cluster), None).await.1;
        assert_eq!(call.envelope.from, NodeId(from));
    }
}

#[tokio::test]
async fn a_batch_has_a_bound() {
    const MOST: usize = 16 << 20;
    let mut node = node(Mode::Available, None);
    let poll = poll();
    let answer = node.send(node.request(&poll, "", vec![b'x'; MOST + 1])).await;
    assert_eq!(refusal(&answer), (413, "body_too_large".to_string()));
    let (response, _) = node.ask(node.request(&poll, "", vec![b'x'; MOST]), None).await;
    assert_eq!(response.status().as_u16(), 200);
}
