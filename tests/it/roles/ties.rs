//! A lease that ends with a connection, although its holder also renews it.

use std::time::Duration;

use eldest::client::{Client, Election};
use serde_json::{Value, json};

use super::{Asks, LONG, acquire, grant, role};
use crate::harness::{Answer, Call, Cluster, Events, problem, wait_for};

async fn calm() -> Cluster {
    Cluster::of(3).await
}

async fn tie(cluster: &Cluster, node: u32, token: u64, tie: u64, grace_ms: u64) -> Events {
    let query = format!("instance_id=held&token={token}&tie={tie}&ttl_ms={LONG}&grace_ms={grace_ms}");
    let mut events = cluster.posted(node, &format!("/v1/roles/r/tie?{query}")).await.expect("a stream");
    let first = events.event().await;
    assert_eq!((&first["kind"], &first["role"]), (&json!("tied"), &json!("r")), "{first}");
    assert_eq!((&first["token"], &first["tie"]), (&json!(token), &json!(tie)), "{first}");
    assert!(first["expires_in_ms"].as_u64() > Some(0), "{first}");
    events
}

async fn order(cluster: &Cluster, verb: &str, token: u64, tie: Option<u64>) -> Answer {
    let mut body = json!({"instance_id": "held", "token": token});
    body.as_object_mut().expect("an object").extend(tie.map(|tie| ("tie".to_string(), json!(tie))));
    cluster.answer(3, Call::post(format!("/v1/roles/r/{verb}")).json(&body)).await
}

async fn taken(cluster: &Cluster) -> u64 {
    grant(cluster.answer(1, acquire("r", "held", json!({"ttl_ms": LONG}))).await)
}

#[tokio::test]
async fn it_is_free_when_the_connection_is_closed() {
    let cluster = calm().await;
    for node in cluster.ids() {
        let token = taken(&cluster).await;
        let stream = tie(&cluster, node, token, 1, 0).await;
        problem(&cluster.answer(1, acquire("r", "other", json!({}))).await, 409, "role_held");
        drop(stream);
        // Its ttl is an hour.
        wait_for("it is free", async || role(&cluster, 3, "r").await["leader"].is_null().then_some(())).await;
        let next = grant(cluster.answer(2, acquire("r", "other", json!({}))).await);
        assert!(next > token);
        Asks { cluster: &cluster, node: 1 }.release("r", "other", next).await.expect(200);
    }
}

#[tokio::test]
async fn a_connection_that_was_replaced_ends_nothing() {
    let cluster = calm().await;
    let token = taken(&cluster).await;
    let old = tie(&cluster, 1, token, 1, 0).await;
    let new = tie(&cluster, 2, token, 2, 0).await;
    drop(old);
    // The node that served the old connection does the same; the greatest number counts, not the last call.
    problem(&order(&cluster, "untie", token, Some(1)).await, 410, "lease_lost");
    order(&cluster, "renew", token, Some(1)).await.expect(200);
    problem(&order(&cluster, "untie", token, Some(1)).await, 410, "lease_lost");
    assert_eq!(role(&cluster, 3, "r").await["token"], json!(token));
    // A holder that renews without a tie is tied to no connection.
    order(&cluster, "renew", token, None).await.expect(200);
    problem(&order(&cluster, "untie", token, Some(2)).await, 410, "lease_lost");
    order(&cluster, "renew", token, Some(3)).await.expect(200);
    drop(new);
    assert_eq!(role(&cluster, 3, "r").await["token"], json!(token));
    order(&cluster, "untie", token, Some(3)).await.expect(200);
    wait_for("it is free", async || role(&cluster, 3, "r").await["leader"].is_null().then_some(())).await;
}

#[tokio::test]
async fn what_cannot_be_tied() {
    let cluster = calm().await;
    let token = taken(&cluster).await;
    for (query, status) in [
        (format!("instance_id=held&token={token}"), 400),
        (format!("instance_id=held&token={token}&tie=-1"), 400),
        (format!("instance_id=held&token={token}&tie=1&grace_ms=60001"), 400),
        (format!("token={token}&tie=1"), 400),
        (format!("instance_id=held&token={token}&tie=1&word=1"), 400),
        (format!("instance_id=held&token={}&tie=1", token + 1), 410),
        (format!("instance_id=other&token={token}&tie=1"), 410),
    ] {
        let refused = cluster.posted(2, &format!("/v1/roles/r/tie?{query}")).await.map(drop);
        assert_eq!(refused, Err(Some(status)), "{query}");
    }
    problem(&order(&cluster, "untie", token, None).await, 400, "bad_field");
    assert_eq!(role(&cluster, 1, "r").await["token"], json!(token));
}

/// The token of the role, or None if this node has no answer at the moment.
async fn held(cluster: &Cluster, node: u32) -> Option<Value> {
    let answer = cluster.ask(node, &Call::get("/v1/roles/r")).await.ok()?;
    answer.ok().then(|| answer.json()["token"].clone())
}

/// Any node may serve the tie: all of them die, one after the other.
#[tokio::test]
async fn a_holder_outlives_the_node_that_it_is_tied_to() {
    let cluster = Cluster::of(3).await;
    let nodes = Client::new(cluster.ids().map(|id| cluster.node(id).url())).expect("a client");
    let ttl = Duration::from_millis(LONG);
    let election = Election::builder(nodes, "r").instance_id("held").ttl(ttl).build().expect("good options");
    election.start();
    assert!(election.wait_for_election(Duration::from_secs(60)).await);
    let token = wait_for("it has a token", async || election.token()).await;
    for node in cluster.ids() {
        cluster.kill9(node);
        let witness = cluster.others(node)[0];
        wait_for("it has what it had", async || {
            let told = held(&cluster, witness).await?;
            assert_eq!(told, json!(token), "the role was free in between");
            (election.token() == Some(token)).then_some(())
        })
        .await;
        cluster.start(node);
        cluster.ready().await;
    }
    wait_for("it has what it had", async || (election.token() == Some(token)).then_some(())).await;
    election.stop().await;
    assert_eq!(role(&cluster, 1, "r").await["leader"], Value::Null);
}
