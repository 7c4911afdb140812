//! The seed's routes as an operator calls them: without an envelope, and so without any effect on the protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::answers;
use super::asked::Asked;
use super::context::Context;
use super::problem::{Code, Problem};
use crate::driver::api::{CatchUp, Denied};
use crate::types::NodeId;

type Answer = Result<Response<Body>, Problem>;

/// For bodies that say nothing: empty or `{}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    node_idx: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Boundary {
    snapshot_id: Option<u64>,
}

impl Named {
    /// A node of the topology.
    pub fn node(&self, context: &Context) -> Result<NodeId, Problem> {
        let node = self.node_idx.ok_or_else(|| Problem::field("node_idx", "node_idx is missing"))?;
        member(context, "node_idx", node)
    }
}

pub fn member(context: &Context, field: &str, node: u32) -> Result<NodeId, Problem> {
    match context.url(NodeId(node)) {
        Some(_) => Ok(NodeId(node)),
        None => Err(Problem::field(field, format!("the topology has no node {node}"))),
    }
}

/// This node is alive.
pub async fn heartbeat(asked: Asked) -> Answer {
    asked.object::<Nothing>()?;
    Ok(answers::empty())
}

pub async fn writesync(State(context): State<Arc<Context>>) -> Answer {
    if context.handle.pulse().leader() == Some(context.me()) {
        let detail = "a leader sends this route and does not take it; write with POST /v1/commands";
        return Err(Problem::new(Code::LeaderDoesNotTakeWritesync, detail));
    }
    let detail = "only this node's leader writes to it this way; write with POST /v1/commands";
    Err(Problem::new(Code::NotTheLeaderCalling, detail))
}

/// Would this node approve that one now? An opinion; nothing changes.
pub async fn declare_capability(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    let candidate = asked.object::<Named>()?.node(&context)?;
    match asked.in_time(context.handle.opinion(candidate)).await? {
        Some(opinion) => Ok(answers::data(&json!({"approved": opinion.approved, "reason": opinion.reason}))),
        None => Err(Denied::Stopping.into()),
    }
}

pub async fn recv_elect() -> Problem {
    Problem::new(
        Code::EnvelopeRequired,
        "an approval binds a node of the cluster to its promise; nobody else can give one",
    )
}

/// The log from a boundary on. Not passed on: who reads logs says whose.
pub async fn catch_up(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    let boundary = asked.object::<Boundary>()?.snapshot_id;
    let boundary = boundary.ok_or_else(|| Problem::field("snapshot_id", "snapshot_id is missing"))?;
    let CatchUp { snapshot, lines } = asked.in_time(context.handle.catch_up(boundary)).await??;
    let logs = serde_json::to_string(&lines).unwrap_or_default();
    let mut json = String::with_capacity(logs.len() + 16);
    json.push('{');
    if let Some((id, store)) = snapshot {
        json.push_str(&format!("\"snapshot_id\":{id},\"snapshot\":"));
        store.to_document(&mut json).unwrap_or_default();
        json.push(',');
    }
    json.push_str("\"logs\":");
    json.push_str(&logs);
    json.push('}');
    Ok(answers::json(StatusCode::OK, json))
}

/// By the lease, at the moment of answering.
pub async fn is_leader(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    asked.object::<Nothing>()?;
    let leads = asked.in_time(context.handle.is_leader()).await?;
    Ok(answers::json(StatusCode::OK, if leads { "true" } else { "false" }))
}
