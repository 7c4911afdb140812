//! One hop to the leader, and calls during a change of leadership.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::access::token;
use super::node::{Control, Node, Options, TOKEN};
use super::request;
use crate::driver::handle::Denied;
use crate::types::NodeId;

const LEADER: Control = Control::Show(Some(NodeId(1)));

async fn two() -> (Node, Node) {
    let mut nodes = Node::several(2, Options::default()).await.into_iter();
    (nodes.next().expect("there are two"), nodes.next().expect("there are two"))
}

#[tokio::test]
async fn a_follower_passes_calls_on() {
    let (mut leader, follower) = two().await;
    let _serving = leader.serve();
    let answer = follower.call("PUT /v1/docs/a/b%20c", &[("x-request-id", "mine")], "1").await;
    assert_eq!((answer.status.as_u16(), answer.header("etag")), (201, "\"1\""));
    for (name, value) in
        [("eldest-node", "1"), ("eldest-acks", "2/3"), ("eldest-index", "1"), ("x-request-id", "mine")]
    {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(leader.seen(), ["write 101|{\"key\":\"a/b c\",\"value\":1}"]);
    assert!(follower.seen().is_empty());
    assert_eq!(follower.call("GET /v1/docs/a/b%20c", &[], "").await.text, "1");
    let known = follower.call("GET /v1/docs/a/b%20c?level=leader", &[("if-none-match", "\"1\"")], "").await;
    assert_eq!((known.status.as_u16(), known.header("etag")), (304, "\"1\""));
    let failed = follower.call("PUT /v1/docs/a/b%20c", &[("if-match", "\"9\"")], "2").await;
    assert_eq!(failed.problem(), (412, "precondition_failed".to_string()));
    assert_eq!(follower.call("GET /v1/docs/a/b%20c?level=local", &[], "").await.problem().0, 404);
    assert_eq!(follower.call("GET /readyz", &[], "").await.header("eldest-node"), "1");
}

#[tokio::test]
async fn a_name_is_the_same_through_a_follower() {
    let (mut leader, follower) = two().await;
    let _serving = leader.serve();
    for (number, key) in
        ["a%5Cb", "a|b", "a%2Fb%3Fc%23d", "%25", "a//b", "a%20+b", "{x}", "'q'"].into_iter().enumerate()
    {
        let line = format!("PUT /v1/docs/{key}");
        let mark = [("idempotency-key", key)];
        let first = follower.call(&line, &mark, &number.to_string()).await;
        assert_eq!(first.status, 201, "{key}: {first:?}");
        let direct = leader.call(&line, &mark, &number.to_string()).await;
        assert_eq!((&direct.text, direct.header("idempotency-replayed")), (&first.text, "true"), "{key}");
    }
}

#[tokio::test]
async fn controls_are_passed_on_with_their_credential() {
    let options = Options { token: Some(TOKEN), ..Options::default() };
    let mut nodes = Node::several(2, options).await;
    let _serving = nodes[0].serve();
    let right = format!("Bearer {TOKEN}");
    let answer = nodes[1].call("POST /elect", &[("authorization", &right)], "{\"node_idx\":2}").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "{\"leader\":2}"));
    assert_eq!(nodes[0].seen(), ["hand over to Some(NodeId(2)) by admin"]);
}

#[tokio::test]
async fn a_leader_that_cannot_be_dialled_has_not_been_asked() {
    let (_, follower) = two().await;
    follower.control(Control::Show(Some(NodeId(3)))).await;
    for line in ["PUT /v1/docs/a", "GET /v1/docs/a"] {
        assert_eq!(follower.call(line, &[], "1").await.problem(), (503, "no_leader".to_string()), "{line}");
    }
}

#[tokio::test]
async fn a_leader_behind_a_wall_has_not_been_asked() {
    let (mut leader, follower) = two().await;
    let _serving = leader.serve();
    follower.context.setup.wall.set([NodeId(1)].into());
    for line in ["PUT /v1/docs/a", "GET /v1/docs/a"] {
        assert_eq!(follower.call(line, &[], "1").await.problem(), (503, "no_leader".to_string()), "{line}");
    }
    assert!(leader.seen().is_empty());
    follower.context.setup.wall.set(Default::default());
    assert_eq!(follower.call("PUT /v1/docs/a", &[], "1").await.status, 201);
}

/// Takes requests and closes without an answer.
async fn swallow(listener: TcpListener, taken: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = [0; 4096];
        if stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        let _ = stream.shutdown().await;
    }
}

#[tokio::test]
async fn a_write_that_left_is_never_sent_again() {
    let (mut leader, follower) = two().await;
    let taken = Arc::new(AtomicUsize::new(0));
    tokio::spawn(swallow(leader.take_listener(), taken.clone()));
    let write = follower.call("PUT /v1/docs/a", &[], "1").await;
    assert_eq!(write.problem(), (504, "outcome_unknown".to_string()));
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    let read = follower.call("GET /v1/docs/a", &[], "").await;
    assert_eq!(read.problem(), (503, "no_leader".to_string()));
}

/// Takes requests and is silent, like a machine that hangs.
async fn stand_still(listener: TcpListener, taken: Arc<AtomicUsize>) {
    let mut streams = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = [0; 4096];
        if stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        streams.push(stream);
    }
}

/// Why a node does not know the outcome of a message that it has forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    StandsStill,
    BreaksOff,
    /// The caller disconnects.
    CallerLeaves,
}

/// Takes messages, answers none, and reports the stamp of each.
async fn tell_stamps(listener: TcpListener, unanswered: Unanswered, stamps: mpsc::UnboundedSender<String>) {
    let mut streams = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.unwrap_or_default();
        let head = String::from_utf8_lossy(&bytes[..read]);
        for stamp in head.lines().filter_map(|line| line.strip_prefix("eldest-stamp: ")) {
            let _ = stamps.send(stamp.to_string());
        }
        if unanswered != Unanswered::BreaksOff {
            streams.push(stream);
        }
    }
}

/// The first of two messages is still travelling to a node when its sender has finished with it.
async fn a_message_comes_in_time_or_never(unanswered: Unanswered) {
    let mut nodes = Node::several(2, Options::default()).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    tokio::spawn(tell_stamps(nodes[0].take_listener(), unanswered, tell));
    let mut stamps = Vec::new();
    // A busy machine may leave no time even for the head of a call.
    while stamps.len() < 2 {
        tokio::select! {
            stamp = told.recv(), if unanswered == Unanswered::CallerLeaves => stamps.extend(stamp),
            answer = nodes[1].call("POST /v1/channels/a", &[], "0") => {
                assert_eq!(answer.text, "{\"delivered\":0}");
            }
        }
        stamps.extend(std::iter::from_fn(|| told.try_recv().ok()));
    }
    let number = |stamp: &String| stamp.split(' ').nth(1).and_then(|number| number.parse::<u64>().ok());
    stamps.sort_by_key(number);
    let mut listener = nodes[0].context.handle.channels().listen("a").expect("the node goes on");
    let deliver = async |stamp: &str, body| {
        let headers = [("eldest-forwarded", "2"), ("eldest-stamp", stamp)];
        nodes[0].call("POST /v1/channels/a", &headers, body).await.text
    };
    assert_eq!(deliver(&stamps[1], "2").await, "{\"delivered\":1}", "{unanswered:?}");
    assert_eq!(deliver(&stamps[0], "1").await, "{\"delivered\":0}", "{unanswered:?}");
    assert_eq!(deliver("of another version", "3").await, "{\"delivered\":1}", "{unanswered:?}");
    for message in ["2", "3"] {
        assert_eq!(listener.next().await.as_deref(), Ok(message.as_bytes()), "{unanswered:?}");
    }
}

#[tokio::test]
async fn a_message_comes_before_the_next_one_or_never() {
    for unanswered in [Unanswered::StandsStill, Unanswered::BreaksOff, Unanswered::CallerLeaves] {
        a_message_comes_in_time_or_never(unanswered).await;
    }
}

async fn when_replaced(
    line: &str,
    headers: &[(&str, &str)],
    next_leads: bool,
) -> (super::Answer, Vec<String>) {
    let nodes = Node::several(3, Options::default()).await;
    when_replaced_among(nodes, line, headers, next_leads).await
}

/// Returns the answer to a call that n2 has forwarded to n1, which hangs, before n2 learns that n3 leads.
async fn when_replaced_among(
    mut nodes: Vec<Node>,
    line: &str,
    headers: &[(&str, &str)],
    next_leads: bool,
) -> (super::Answer, Vec<String>) {
    let taken = Arc::new(AtomicUsize::new(0));
    tokio::spawn(stand_still(nodes[0].take_listener(), taken.clone()));
    let _serving = nodes[2].serve();
    nodes[2].control(Control::Show(Some(NodeId(3)))).await;
    if !next_leads {
        nodes[2].deny(std::iter::repeat_n(Denied::NoQuorum, 10_000)).await;
    }
    let body = if line.starts_with("PUT") { "1" } else { "" };
    let call = nodes[1].front.answer(None, request(line, headers, body));
    let turn = async {
        while taken.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        nodes[1].control(Control::Show(Some(NodeId(3)))).await;
    };
    let (response, ()) = tokio::join!(call, turn);
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    (super::Answer::of(response).await, nodes[2].seen())
}

#[tokio::test]
async fn what_a_replaced_leader_took_is_asked_of_the_next_one_under_its_key() {
    let key = [("idempotency-key", "k")];
    let (answer, seen) = when_replaced("PUT /v1/docs/a", &key, true).await;
    assert_eq!((answer.status.as_u16(), answer.header("eldest-node"), seen.len()), (201, "3", 1));
    let (answer, _) = when_replaced("GET /v1/docs/a", &[], true).await;
    assert_eq!((answer.status.as_u16(), answer.header("eldest-node")), (404, "3"));
    for (line, headers) in [("PUT /v1/docs/a", &[][..]), ("POST /handoff", &key)] {
        let (answer, seen) = when_replaced(line, headers, true).await;
        assert_eq!(answer.problem(), (504, "outcome_unknown".to_string()), "{line}");
        assert!(seen.is_empty(), "{line} was sent again");
    }
}

/// The leader that hangs may have written it, so no later refusal may say that the write was not applied.
#[tokio::test]
async fn a_refusal_of_the_next_leader_says_nothing_of_the_one_before() {
    let (answer, _) = when_replaced("PUT /v1/docs/a", &[("idempotency-key", "k")], false).await;
    assert_eq!(answer.problem(), (504, "outcome_unknown".to_string()));
    // The token has been revoked meanwhile: the next leader does not know it.
    let options = Options { token: Some(TOKEN), anonymous: Some(""), ..Options::default() };
    let nodes = Node::several(3, options).await;
    nodes[1].control(Control::Show(Some(NodeId(2)))).await;
    let (_, token) = token(&nodes[1], &["write docs"]).await;
    nodes[1].control(LEADER).await;
    let headers = [("idempotency-key", "k"), ("authorization", &*format!("Bearer {token}"))];
    let (answer, _) = when_replaced_among(nodes, "PUT /v1/docs/a", &headers, true).await;
    assert_eq!(answer.problem(), (504, "outcome_unknown".to_string()));
}

#[tokio::test]
async fn a_call_outwaits_a_hand_over_that_is_given_up() {
    let node = Node::leader().await;
    node.deny([Denied::HandingOver, Denied::HandingOver]).await;
    assert_eq!(node.call("PUT /v1/docs/a", &[], "1").await.status, 201);
    assert_eq!(node.seen().len(), 3);
}

#[tokio::test]
async fn a_call_follows_leadership() {
    let (mut heir, old) = two().await;
    let _serving = heir.serve();
    old.control(Control::Show(Some(NodeId(2)))).await;
    old.deny(std::iter::repeat_n(Denied::HandingOver, 10_000)).await;
    let call = old.front.answer(None, request("PUT /v1/docs/a", &[], "1"));
    let mut call = std::pin::pin!(call);
    while old.seen().is_empty() {
        assert!(call.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    old.control(LEADER).await;
    let answer = super::Answer::of(call.await).await;
    assert_eq!((answer.status.as_u16(), answer.header("eldest-node")), (201, "1"));
    assert_eq!(heir.seen().len(), 1);
}

#[tokio::test]
async fn who_is_told_that_the_leader_moved_asks_again() {
    let (mut leader, follower) = two().await;
    let _serving = leader.serve();
    leader.control(Control::Show(Some(NodeId(3)))).await;
    let call = follower.front.answer(None, request("PUT /v1/docs/a", &[], "1"));
    let turn = async {
        tokio::task::yield_now().await;
        leader.control(LEADER).await;
    };
    let (response, ()) = tokio::join!(call, turn);
    assert_eq!(response.status(), 201);
    assert_eq!(leader.seen().len(), 1);
}

#[tokio::test]
async fn a_call_outwaits_a_moment_without_a_leader() {
    let (mut leader, follower) = two().await;
    let _serving = leader.serve();
    follower.control(Control::Show(None)).await;
    follower.deny([Denied::NoLeader]).await;
    let call = follower.front.answer(None, request("PUT /v1/docs/a", &[], "1"));
    let turn = async {
        while follower.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        follower.control(LEADER).await;
    };
    let (response, ()) = tokio::join!(call, turn);
    assert_eq!(response.status(), 201);
}
