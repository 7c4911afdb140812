//! Single calls, and streams.

use serde_json::json;

use super::fake::{Fake, Reply, closed, problem};
use crate::{CallError, Caller, Request};

/// The calls to this node, without the question whether it is alive.
fn calls(node: &Fake) -> usize {
    node.seen().iter().filter(|seen| seen.path != "/livez").count()
}

#[tokio::test]
async fn a_closed_port_is_not_reached() {
    let (caller, nobody) = (Caller::new(None).expect("a client"), closed().await);
    let urls = [nobody.as_str(), nobody.as_str()];
    for error in [
        caller.call(&urls, &Request::get("/livez")).await.map(drop).expect_err("closed"),
        caller.open(&urls, "/v1/feed").await.map(drop).expect_err("closed"),
    ] {
        assert!(matches!(&error, CallError::NotReached { tried } if tried.len() == 2), "{error}");
        let said = format!("no node could be reached: {nobody} (");
        assert!(error.to_string().starts_with(&said), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_does_not_lead_points_to_the_one_that_does() {
    let leader = Fake::script(vec![Reply::Json(200, json!(7))]).await;
    let elsewhere = json!({"leader_node": {"id": 2, "url": leader.url.clone()}});
    let follower = Fake::script(vec![problem(421, "not_leader", elsewhere)]).await;
    let caller = Caller::new(Some("secret".into())).expect("a client");
    let urls = [closed().await, follower.url.clone()];
    let request = Request::post("/x", &json!({"a": 1})).header("if-match", "\"7\"");
    let answer = caller.call(&urls, &request).await.expect("an answer");
    assert_eq!((answer.url.as_str(), answer.body.as_slice()), (leader.url.as_str(), b"7".as_slice()));
    let seen = leader.seen().remove(0);
    assert_eq!(
        (seen.header("authorization"), seen.header("if-match")),
        (Some("Bearer secret"), Some("\"7\""))
    );
    assert_eq!((seen.body, calls(&follower)), (json!({"a": 1}), 1));
    // A redirect is followed once only, and only to the node that it names.
    let nowhere = Fake::script(vec![problem(421, "not_leader", json!({}))]).await;
    let answer = caller.call(&[nowhere.url.as_str()], &request).await.expect("an answer");
    assert_eq!(answer.status, 421);
}

#[tokio::test]
async fn what_was_sent_is_not_sent_again() {
    let live = || Reply::Json(200, json!({}));
    let (cut, other) =
        (Fake::script(vec![live(), Reply::Cut]).await, Fake::script(vec![live(), Reply::Cut]).await);
    let caller = Caller::new(None).expect("a client");
    let urls = [cut.url.as_str(), other.url.as_str()];
    let error = caller.call(&urls, &Request::post("/x", &json!({}))).await.expect_err("no answer");
    assert!(matches!(&error, CallError::NoAnswer { url, .. } if *url == cut.url), "{error}");
    assert_eq!((calls(&cut), calls(&other)), (1, 0));
}

#[tokio::test]
async fn only_a_read_has_no_unknown_outcome() {
    let cut = async || Fake::script(vec![Reply::Json(200, json!({})), Reply::Cut]).await;
    let caller = Caller::new(None).expect("a client");
    let is_open = |error: CallError| matches!(error, CallError::NoAnswer { is_open: true, .. });
    let node = Fake::script(vec![Reply::Cut]).await;
    assert!(!is_open(caller.at(&node.url, &Request::get("/x")).await.expect_err("cut")));
    let node = cut().await;
    let posted = caller.call(&[&node.url], &Request::post("/x", &json!({}))).await;
    assert!(is_open(posted.expect_err("cut")));
    let node = Fake::script(vec![Reply::Cut]).await;
    let (end, pieces) = tokio::sync::mpsc::channel(1);
    drop(end);
    let uploaded = caller.upload(&node.url, "/x", pieces, std::time::Duration::from_secs(60)).await;
    assert!(is_open(uploaded.expect_err("cut")), "a restore may have been carried out");
}

#[tokio::test]
async fn what_changes_something_goes_to_a_node_that_answers() {
    // A frozen node takes connections, and answers nothing.
    let frozen = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", frozen.local_addr().expect("an address"));
    let live = Fake::script(vec![Reply::Json(200, json!(7))]).await;
    let caller = Caller::new(None).expect("a client");
    let urls = [url.as_str(), live.url.as_str()];
    let answer = caller.call(&urls, &Request::post("/x", &json!({}))).await.expect("an answer");
    assert_eq!((answer.url.as_str(), calls(&live)), (live.url.as_str(), 1));
}

#[tokio::test]
async fn what_only_looks_is_asked_of_the_next_node() {
    let (cut, other) = (Fake::script(vec![Reply::Cut]).await, Fake::script(vec![Reply::Cut]).await);
    let caller = Caller::new(None).expect("a client");
    let urls = [cut.url.as_str(), other.url.as_str()];
    let error = caller.call(&urls, &Request::get("/x")).await.expect_err("no answer");
    assert!(matches!(&error, CallError::NoAnswer { url, .. } if *url == cut.url), "{error}");
    assert_eq!((cut.seen().len(), other.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_stream_that_is_refused_says_why() {
    let gone = problem(410, "feed_compacted", json!({"oldest": "70"}));
    let live = || Reply::Json(200, json!({}));
    let lines = Reply::Lines(vec![json!({"id": "1"})]);
    let node = Fake::script(vec![live(), gone, live(), lines]).await;
    let caller = Caller::new(None).expect("a client");
    let error = caller.open(&[&node.url], "/v1/feed").await.map(drop).expect_err("refused");
    assert!(matches!(&error, CallError::Refused(problem) if problem.code == "feed_compacted"), "{error}");
    let mut lines = caller.open(&[&node.url], "/v1/feed").await.expect("a stream");
    assert_eq!(lines.next().await.ok().as_deref(), Some("{\"id\":\"1\"}"));
    assert!(lines.next().await.is_err(), "it has ended");
    assert_eq!(lines.url(), node.url);
}
