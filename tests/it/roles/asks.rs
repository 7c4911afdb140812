//! The calls that these tests make repeatedly.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Events, Told, query, wait_for};

/// A ttl that no test outlasts: such a lease never ends for lack of renewals.
pub const LONG: u64 = 3_600_000;

/// The longest wait that a call may have, in milliseconds: every wait here ends long before.
pub const WAIT: u64 = 60_000;

/// A client that gives up before the node does learns nothing.
const LONGER_THAN_WAIT: Duration = Duration::from_secs(75);

/// Acquires the role; `more` are further members of the body.
pub fn acquire(role: &str, instance: &str, more: Value) -> Call {
    let mut body = json!({"instance_id": instance, "ttl_ms": LONG});
    let more = more.as_object().cloned().unwrap_or_default();
    body.as_object_mut().expect("an object").extend(more);
    Call::post(format!("/v1/roles/{role}/acquire")).json(&body)
}

/// Acquires the role and waits for it: a busy machine takes its time to notice that it is free.
pub fn patient(role: &str, instance: &str, mut more: Value) -> Call {
    more["wait_ms"] = json!(WAIT);
    acquire(role, instance, more).timeout(LONGER_THAN_WAIT)
}

/// Waits until the leader says that this many wait for the role `r`.
pub async fn line_is(cluster: &Cluster, count: u64) {
    wait_for("the line is so long", async || (role(cluster, 1, "r").await["waiting"] == count).then_some(()))
        .await;
}

pub fn renew(role: &str, instance: &str, token: u64) -> Call {
    tenure(role, "renew", instance, token)
}

fn tenure(role: &str, order: &str, instance: &str, token: u64) -> Call {
    let body = json!({"instance_id": instance, "token": token});
    Call::post(format!("/v1/roles/{role}/{order}")).json(&body)
}

/// The token of a grant to an instance that did not hold the role.
#[track_caller]
pub fn grant(answer: Answer) -> u64 {
    let answer = answer.expect(200);
    let said = answer.json();
    assert_eq!(said["outcome"], "elected", "{}", answer.show());
    said["token"].as_u64().expect("a token")
}

/// The token of a grant that was requested repeatedly under one key: an attempt whose answer
/// was lost may have got it.
#[track_caller]
pub fn got(answer: Answer) -> u64 {
    let answer = answer.expect(200);
    let said = answer.json();
    let outcomes = [json!("elected"), json!("already_leader")];
    assert!(outcomes.contains(&said["outcome"]), "{}", answer.show());
    said["token"].as_u64().expect("a token")
}

/// The role as this node shows it.
pub async fn role(cluster: &Cluster, node: u32, name: &str) -> Value {
    cluster.answer(node, Call::get(format!("/v1/roles/{name}"))).await.expect(200).json()
}

/// All events of roles whose names begin with this prefix, from now on.
pub async fn role_events(cluster: &Cluster, node: u32, prefix: &str) -> Events {
    let prefix = query(prefix);
    let path = format!("/v1/feed?kinds=role_acquired,role_lost&prefix={prefix}");
    let mut events = cluster.events(node, &path).await.expect("a feed");
    assert_eq!(events.event().await["kind"], "bookmark", "it begins here");
    events
}

/// The bound for the whole wait, which only makes a test fail: bookmarks come for as long as there is no
/// event. It is longer than any ttl that a test waits for, counted twice.
const PATIENCE: Duration = Duration::from_secs(150);

/// Reads until this instance gets the role, or loses it. Returns all events.
pub async fn until(events: &mut Events, kind: &str, instance: &str) -> Vec<Value> {
    let mut told = Vec::new();
    let reading = read_until(events, kind, instance, &mut told);
    let end = tokio::time::timeout(PATIENCE, reading).await;
    assert!(matches!(end, Ok(None)), "no {kind} of {instance} but {end:?}; told was {told:?}");
    told
}

/// Returns what has ended the stream, if it ends before that.
async fn read_until(events: &mut Events, kind: &str, instance: &str, told: &mut Vec<Value>) -> Option<Told> {
    loop {
        let event = match events.next().await {
            Told::Event(event) => event,
            end => return Some(end),
        };
        let is_it = event["kind"] == kind && event["instance_id"] == instance;
        if event["kind"] != "bookmark" {
            told.push(event);
        }
        if is_it {
            return None;
        }
    }
}

/// The same calls through one node.
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
