//! Explains a role: who holds it and how, who waits for it, and what became of it (P58).
//!
//! The leader knows the callers that wait. By which stream a client holds the role is known only to the node of that stream, so the leader
//! asks all others.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::explain::ask;
use crate::chronicle::turn_shown;
use crate::driver::handle::Level;
use crate::http::answer::{self, Answer, CallFailure};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context, HeldBy};
use crate::http::url::name_after;
use crate::store;
use crate::types::{LeaseName, Text};

const ROLES: &str = "/v1/explain/roles/";

/// The first callers in the waiter queue; `waiting` has the number of all.
const WAITERS_SHOWN: usize = 100;

/// The part of another node's answer that says how the role is held there.
#[derive(Deserialize)]
struct There {
    held_here: Option<Held>,
}

#[derive(Clone, Copy, Deserialize)]
struct Held {
    by: HeldBy,
    token: u64,
}

pub async fn role(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let query = request.query(&["level", "forward"])?;
    let name = store::lease_name("role", &name_after(request.path(), ROLES, "role")?)?;
    match query.level() {
        Level::Local => Ok(answer::data(&here(&context, Level::Local, &name).await?)),
        level => {
            let all = async || {
                let mut told = here(&context, level, &name).await?;
                told["held_by"] = held_by(&context, &request, &told).await;
                Ok(answer::data(&told))
            };
            dispatch::at_leader(&context, &request, CallKind::Read, query.no_forward, all).await
        }
    }
}

/// Returns what this node knows of the role.
async fn here(context: &Context, level: Level, name: &Text) -> Result<Value, CallFailure> {
    let view = context.handle.read(level).await?;
    let (waiting, waiters) = match level {
        Level::Local => (None, None),
        Level::Linear | Level::Leader => {
            let times = context.handle.lease_times(vec![LeaseName::Role(name.clone())]).await;
            let waiting = times.and_then(|times| times.times.first().map(|(_, waiting)| *waiting));
            (waiting, context.handle.waiters(name.clone(), WAITERS_SHOWN).await)
        }
    };
    let shown = |(instance, priority): &(Text, i64)| json!({"instance_id": instance, "priority": priority});
    let waiters: Option<Vec<Value>> = waiters.map(|waiters| waiters.iter().map(shown).collect());
    let turns = context.handle.turns(name.clone()).await;
    let turns: Vec<Value> = turns.iter().map(|line| turn_shown(line)).collect();
    let role = view.store.role(name);
    let holder = role.map(|role| json!({"instance_id": role.claim.instance, "token": role.token}));
    // A node that applies later than the leader may not know the token of the lease yet.
    let held_here = context.holders.newest(name).map(|(token, by)| json!({"token": token, "by": by}));
    Ok(json!({
        "role": name, "holder": holder, "held_by": null, "held_here": held_here, "waiting": waiting, "waiters": waiters, "turns": turns,
    }))
}

/// Returns how the holder holds its role, and at which node. Null if it cannot be known: a node that does not answer may have the stream.
async fn held_by(context: &Context, request: &ClientRequest, told: &Value) -> Value {
    let Some(token) = told["holder"]["token"].as_u64() else { return Value::Null };
    let is_it = |held: &Option<Held>| held.filter(|held| held.token == token).map(|held| held.by);
    let own = serde_json::from_value(told["held_here"].clone()).ok();
    if let Some(by) = is_it(&own) {
        let me = context.me();
        let name = context.setup.member(me).map_or_else(String::new, |member| member.name);
        return json!({"by": by, "node": {"id": me.0, "name": name}});
    }
    let target = format!("{}?level=local", request.path());
    let mut is_known = true;
    for (id, name, there) in ask::<There>(context, request, &target).await {
        match there.map(|there| is_it(&there.held_here)) {
            Ok(Some(by)) => return json!({"by": by, "node": {"id": id, "name": name}}),
            Ok(None) => {}
            Err(_) => is_known = false,
        }
    }
    if is_known { json!({"by": HeldBy::Calls, "node": null}) } else { Value::Null }
}
