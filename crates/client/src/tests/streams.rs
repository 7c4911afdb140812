//! The feed and channels, when nodes fail.

use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Reply, closed, problem};
use crate::{Client, Error, Feed, FeedOptions, Heard};

fn event(id: u64) -> Value {
    json!({"id": id.to_string(), "kind": "change", "table": "doc", "key": format!("k{id}")})
}

fn bookmark(id: u64) -> Value {
    json!({"id": id.to_string(), "kind": "bookmark"})
}

async fn ids(feed: &mut Feed, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(feed.next().await.expect("an event").id.expect("an id"));
    }
    ids
}

/// The feed goes on at the next node from the last id, which may be the id of a bookmark.
#[tokio::test]
async fn a_feed_goes_on_at_the_next_node() {
    let refusal = || problem(503, "catching_up", json!({}));
    let first = Fake::script(vec![Reply::Lines(vec![bookmark(3), event(4), bookmark(9)]), refusal()]).await;
    let stopping = json!({"kind": "error", "code": "stopping", "detail": "", "retryable": true});
    let second =
        Fake::script(vec![refusal(), Reply::Lines(vec![event(10), stopping]), Reply::Lines(vec![event(11)])])
            .await;
    let client = Client::new([first.url.clone(), closed().await, second.url.clone()]).expect("a client");
    let asked = FeedOptions { kinds: vec!["change".into()], prefix: Some("k".into()), since: None };
    let mut feed = client.feed(asked).await.expect("a node tells");
    assert_eq!(ids(&mut feed, 2).await, ["4", "10"]);
    assert_eq!(feed.position(), Some("10"));
    let paths: Vec<String> = second.seen().into_iter().map(|seen| seen.path).collect();
    assert!(
        paths.iter().all(|path| path == "/v1/feed?format=ndjson&kinds=change&prefix=k&since=9"),
        "{paths:?}"
    );
    assert!(first.seen()[0].path.ends_with("&prefix=k"), "from now on");
}

#[tokio::test]
async fn what_is_not_kept_any_more_is_said() {
    let gone = problem(410, "feed_compacted", json!({"oldest": "70"}));
    let node = Fake::script(vec![gone]).await;
    let client = Client::new([node.url.clone()]).expect("a client");
    let asked = FeedOptions { since: Some("7".into()), ..FeedOptions::default() };
    let error = client.feed(asked).await.map(drop).expect_err("gone");
    assert!(matches!(error, Error::FeedCompacted { oldest: Some(oldest) } if oldest == "70"));
}

#[tokio::test]
async fn an_outage_is_an_error_after_which_a_feed_goes_on() {
    let outage = vec![problem(503, "no_leader", json!({})); 12];
    let mut script = vec![Reply::Lines(vec![event(1)])];
    script.extend(outage);
    script.push(Reply::Lines(vec![event(2)]));
    let node = Fake::script(script).await;
    let deadline = Duration::from_millis(200);
    let client = Client::builder([node.url.clone()]).deadline(deadline).build().expect("a client");
    let mut feed = client.feed(FeedOptions::default()).await.expect("a node tells");
    assert_eq!(ids(&mut feed, 1).await, ["1"]);
    let mut outages = 0;
    let next = loop {
        match feed.next().await {
            Ok(event) => break event,
            Err(Error::Unavailable { .. }) => outages += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(outages > 0);
    assert_eq!(next.id.as_deref(), Some("2"));
    assert!(node.seen().last().is_some_and(|seen| seen.path.ends_with("&since=1")));
}

#[tokio::test]
async fn a_line_that_is_no_event_is_an_error() {
    let node = Fake::script(vec![Reply::Lines(vec![json!([1])]), Reply::Lines(vec![event(5)])]).await;
    let client = Client::new([node.url.clone()]).expect("a client");
    let mut feed = client.feed(FeedOptions::default()).await.expect("a node tells");
    let error = feed.next().await.expect_err("nonsense");
    assert!(matches!(error, Error::Strange { .. }), "{error}");
    assert_eq!(ids(&mut feed, 1).await, ["5"]);
}

#[tokio::test]
async fn a_listener_is_told_of_what_it_missed() {
    let node =
        Fake::script(vec![Reply::Lines(vec![json!(1), json!({"a": 2})]), Reply::Lines(vec![json!(3)])]).await;
    let client = Client::new([node.url.clone()]).expect("a client");
    let mut heard = client.subscribe("worker:slave:7").await.expect("a node passes on");
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(heard.next().await.expect("something"));
    }
    let message = Heard::Message;
    assert_eq!(all, [message(json!(1)), message(json!({"a": 2})), Heard::Gap, message(json!(3))]);
    assert_eq!(node.seen()[0].path, "/v1/channels/worker%3Aslave%3A7?format=ndjson");
}
