//! Explains a role: who holds it and how, who waits for it, and what became of it (P58).
//!
//! The leader knows the callers that wait. By which stream a client holds the role is known only to the node of that stream, so the leader
//! asks all others.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::explain::ask;
use crate::chronicle::turn_shown;
use crate::driver::handle::{Level, View};
use crate::http::answer::{self, Answer, CallFailure};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context, HoldingStream};
use crate::http::url::name_after;
use crate::store;
use crate::types::{LeaseName, Text};

const ROLES: &str = "/v1/explain/roles/";

/// The first callers in the waiter queue; `waiting` has the number of all.
const WAITERS_SHOWN: usize = 100;

/// The answer of another node: the streams that it serves for the role.
#[derive(Deserialize)]
struct There {
    node: u32,
    streams: Vec<HoldingStream>,
}

pub async fn role(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let query = request.query(&["level", "forward"])?;
    let name = store::lease_name("role", &name_after(request.path(), ROLES, "role")?)?;
    match query.level() {
        Level::Local => {
            let view = context.handle.read(Level::Local).await?;
            Ok(answer::data(&shown(&context, &view, &name).await))
        }
        level => {
            let by_leader = async || by_leader(&context, &request, level, &name).await;
            dispatch::at_leader(&context, &request, CallKind::Read, query.no_forward, by_leader).await
        }
    }
}

async fn by_leader(
    context: &Context,
    request: &ClientRequest,
    level: Level,
    name: &Text,
) -> Result<Response<Body>, CallFailure> {
    let view = context.handle.read(level).await?;
    let times = context.handle.lease_times(vec![LeaseName::Role(name.clone())]).await;
    let Some(time) = times.and_then(|times| times.times.first().copied()) else {
        // This node leads no longer: it knows only what each node does.
        return Ok(answer::data(&shown(context, &view, name).await));
    };
    let mut told = shown(context, &view, name).await;
    let waiters = context.handle.waiters(name.clone(), WAITERS_SHOWN).await;
    let waiter = |(instance, priority): &(Text, i64)| json!({"instance_id": instance, "priority": priority});
    told["waiting"] = time.waiting.into();
    told["waiters"] = waiters.map(|waiters| waiters.iter().map(waiter).collect::<Vec<_>>()).into();
    if let Some(role) = view.store.role(name) {
        told["held_by"] = held_by(context, request, name, role.token, time.tie).await;
    }
    Ok(answer::data(&told))
}

/// The part of the answer that every node can give.
async fn shown(context: &Context, view: &View, name: &Text) -> Value {
    let turns = context.handle.turns(name.clone()).await;
    let turns: Vec<Value> = turns.iter().map(|line| turn_shown(line)).collect();
    let holder =
        view.store.role(name).map(|role| json!({"instance_id": role.claim.instance, "token": role.token}));
    json!({
        "role": name, "node": context.me().0, "holder": holder, "held_by": null, "streams": context.holders.of(name),
        "waiting": null, "waiters": null, "turns": turns,
    })
}

/// Returns how the holder holds its role, and at which node. Null if that cannot be known: a node that does not answer, or that is older,
/// may serve the stream.
async fn held_by(
    context: &Context,
    request: &ClientRequest,
    name: &Text,
    token: u64,
    tie: Option<u64>,
) -> Value {
    let way = |streams: &[HoldingStream]| {
        let ours = || streams.iter().filter(|stream| stream.token == token);
        match () {
            () if ours().any(|stream| stream.tie.is_none()) => Some("stream"),
            // The leader knows the newest connection: the lease ends with no other.
            () if tie.is_some() && ours().any(|stream| stream.tie == tie) => Some("tie"),
            () => None,
        }
    };
    let me = context.me();
    if let Some(by) = way(&context.holders.of(name)) {
        let name = context.setup.member(me).map(|member| member.name);
        return json!({"by": by, "node": {"id": me.0, "name": name}});
    }
    let target = format!("{}?level=local", request.path());
    let mut is_known = true;
    for (id, name, there) in ask::<There>(context, request, &target).await {
        match there.ok().filter(|there| there.node == id).map(|there| way(&there.streams)) {
            Some(Some(by)) => return json!({"by": by, "node": {"id": id, "name": name}}),
            Some(None) => {}
            None => is_known = false,
        }
    }
    if is_known { json!({"by": "calls", "node": null}) } else { Value::Null }
}
