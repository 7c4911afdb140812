//! What these tests ask, over and over.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Events, Told, query};

/// A ttl that no test outlasts: whatever ends such a lease was no lack of renewals.
pub const LONG: u64 = 3_600_000;

/// Wants the role; `more` are further members of the body.
pub fn acquire(role: &str, instance: &str, more: Value) -> Call {
    let mut body = json!({"instance_id": instance, "ttl_ms": LONG});
    let more = more.as_object().cloned().unwrap_or_default();
    body.as_object_mut().expect("an object").extend(more);
    Call::post(format!("/v1/roles/{role}/acquire")).json(&body)
}

pub fn renew(role: &str, instance: &str, token: u64) -> Call {
    tenure(role, "renew", instance, token)
}

fn tenure(role: &str, order: &str, instance: &str, token: u64) -> Call {
    let body = json!({"instance_id": instance, "token": token});
    Call::post(format!("/v1/roles/{role}/{order}")).json(&body)
}

/// The token of a grant to somebody who did not have it.
#[track_caller]
pub fn grant(answer: Answer) -> u64 {
    let answer = answer.expect(200);
    let said = answer.json();
    assert_eq!(said["outcome"], "elected", "{}", answer.show());
    said["token"].as_u64().expect("a token")
}

/// How this node shows the role.
pub async fn role(cluster: &Cluster, node: u32, name: &str) -> Value {
    cluster.answer(node, Call::get(format!("/v1/roles/{name}"))).await.expect(200).json()
}

/// Everything that becomes of roles whose names begin so, from now on.
pub async fn role_events(cluster: &Cluster, node: u32, prefix: &str) -> Events {
    let prefix = query(prefix);
    let path = format!("/v1/feed?kinds=role_acquired,role_lost&prefix={prefix}");
    let mut events = cluster.events(node, &path).await.expect("a feed");
    assert_eq!(events.event().await["kind"], "bookmark", "it begins here");
    events
}

/// To fail by; bookmarks come for as long as there is no news.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads on until the role is granted to this one, or lost by it. Returns all that was told.
pub async fn until(events: &mut Events, kind: &str, instance: &str) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let event = match tokio::time::timeout(PATIENCE, events.next()).await {
            Ok(Told::Event(event)) => event,
            said => panic!("no {kind} of {instance} but {said:?}; told was {told:?}"),
        };
        let is_it = event["kind"] == kind && event["instance_id"] == instance;
        if event["kind"] != "bookmark" {
            told.push(event);
        }
        if is_it {
            return told;
        }
    }
}

/// The same through one node.
pub struct Asks<'a> {
    pub cluster: &'a Cluster,
    pub node: u32,
}

impl Asks<'_> {
    pub async fn acquire(&self, role: &str, instance: &str, more: Value) -> Answer {
        self.cluster.answer(self.node, acquire(role, instance, more)).await
    }

    pub async fn renew(&self, role: &str, instance: &str, token: u64) -> Answer {
        self.cluster.answer(self.node, renew(role, instance, token)).await
    }

    pub async fn release(&self, role: &str, instance: &str, token: u64) -> Answer {
        self.cluster.answer(self.node, tenure(role, "release", instance, token)).await
    }

    pub async fn elect(&self, role: &str, instance: &str) -> Answer {
        let body = json!({"instance_id": instance, "ttl_ms": LONG});
        self.cluster.answer(self.node, Call::post(format!("/v1/roles/{role}/elect")).json(&body)).await
    }

    pub async fn check(&self, role: &str, token: u64) -> Value {
        let call = Call::get(format!("/v1/roles/{role}/check?token={token}"));
        self.cluster.answer(self.node, call).await.expect(200).json()
    }
}
