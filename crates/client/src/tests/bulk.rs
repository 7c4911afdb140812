//! Many commands in one request.

use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Reply};
use crate::{Client, Error};

fn applied(index: u64) -> Value {
    json!({"index": index, "epoch": "1.1", "result": {"key": "k"}})
}

fn refused(status: u16, code: &str) -> Value {
    json!({"status": status, "code": code, "line": 1})
}

fn commands(count: u64) -> Vec<(&'static str, Value)> {
    (0..count).map(|number| ("PutDoc", json!({"key": number.to_string(), "value": 1}))).collect()
}

async fn client(replies: Vec<Reply>) -> (Fake, Client) {
    let node = Fake::script(replies).await;
    let client = Client::builder([node.url.clone()]).deadline(Duration::from_millis(600)).build();
    (node, client.expect("a client"))
}

#[tokio::test]
async fn each_command_has_its_own_answer() {
    let lines = vec![applied(7), refused(409, "exists"), applied(8)];
    let (node, client) = client(vec![Reply::Lines(lines)]).await;
    let told = client.bulk(&commands(3)).await;
    assert_eq!(told[0].as_ref().map(|applied| applied.index).ok(), Some(7));
    assert!(matches!(&told[1], Err(Error::Problem(problem)) if problem.code == "exists"));
    assert_eq!(told[2].as_ref().map(|applied| applied.index).ok(), Some(8));
    let seen = node.seen();
    assert_eq!((seen.len(), seen[0].header("content-type")), (1, Some("application/x-ndjson")));
    assert!(client.bulk(&[]).await.is_empty());
}

#[tokio::test]
async fn only_lines_that_may_succeed_are_sent_again() {
    let first = vec![refused(503, "no_leader"), applied(7), refused(504, "outcome_unknown")];
    let (node, client) =
        client(vec![Reply::Cut, Reply::Lines(first), Reply::Lines(vec![applied(8), applied(9)])]).await;
    let told = client.bulk(&commands(3)).await;
    let indexes: Vec<_> = told.iter().map(|told| told.as_ref().map(|applied| applied.index).ok()).collect();
    assert_eq!(indexes, [Some(8), Some(7), Some(9)]);
    assert_eq!(node.seen().len(), 3);
}

#[tokio::test]
async fn doubt_stays() {
    let (_node, client) = client(vec![
        Reply::Lines(vec![refused(504, "outcome_unknown"), refused(503, "no_leader")]),
        Reply::Lines(vec![refused(503, "no_leader"), refused(503, "no_leader")]),
    ])
    .await;
    let told = client.bulk(&commands(2)).await;
    assert!(matches!(told[0], Err(Error::Indeterminate { .. })), "{told:?}");
    assert!(matches!(told[1], Err(Error::Unavailable { .. })), "{told:?}");
}

/// The token is revoked between two attempts. The first one may still be applied.
#[tokio::test]
async fn a_refusal_of_the_request_removes_no_doubt() {
    let first = Reply::Lines(vec![refused(504, "outcome_unknown"), refused(503, "no_leader")]);
    let (_node, client) = client(vec![first, Reply::Json(401, refused(401, "unauthorized"))]).await;
    let told = client.bulk(&commands(2)).await;
    assert!(matches!(told[0], Err(Error::Indeterminate { .. })), "{told:?}");
    assert!(matches!(&told[1], Err(Error::Problem(problem)) if problem.code == "unauthorized"), "{told:?}");
}

#[tokio::test]
async fn thousands_travel_a_thousand_at_a_time() {
    let answers = |count| Reply::Lines((0..count).map(applied).collect());
    let (node, client) = client(vec![answers(1024), answers(1024), answers(2)]).await;
    let told = client.bulk(&commands(2050)).await;
    assert!(told.iter().all(Result::is_ok));
    assert_eq!(node.seen().len(), 3);
}
