//! Calls of peers that are accepted and calls that are refused, in a cluster without a secret.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures_util::{FutureExt, stream};

use super::Answer;
use super::peers::{Node, TERM, envelope, merge, node, vector};
use super::proofs::{poll, refusal};
use crate::driver::handle::PeerAsk;
use crate::protocol::{Message, Mode};
use crate::types::{ClusterId, NodeId};
use crate::wire::{Packet, header};

#[tokio::test]
async fn one_difference_is_taken_in_at_a_time() {
    let mut node = node(Mode::Available, None);
    let (packet, text) = merge();
    let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    let first = node.request(&packet, "", endless);
    let second = node.request(&packet, "", text.clone());
    let third = node.request(&packet, "", text);
    let mut waiting = Box::pin(node.front.answer(None, first));
    assert!((&mut waiting).now_or_never().is_none());
    let answer = Answer::of(node.front.answer(None, second).await).await;
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
    // This cluster is formed, and so is the caller's cluster of the same name.
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
