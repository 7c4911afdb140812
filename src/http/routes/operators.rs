//! Calls of operators: the seed's routes without an envelope, the leader, whether clients may write, and forming a cluster without some of
//! its nodes.
//!
//! Without an envelope a call of the seed's routes has no effect on the protocol.
//!
//! The seed's routes are kept for its programs. A peer calls the same paths with an envelope, and never comes
//! here (`server::front`).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout_at;

use crate::driver::handle::Denied;
use crate::http::answer::{self, Answer, CallFailure, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context, NoFields};
use crate::protocol::{HandOverReason, ServiceChange};
use crate::types::{NodeId, Owner, Span};

/// Long enough for an operator's next step; a forgotten hold ends by itself.
const TTL_DEFAULT_MS: u64 = 60_000;
const TTL_MOST_MS: u64 = 60 * 60 * 1000;

/// The reason is for people, and part of a record.
const REASON_MOST: usize = 512;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    node_idx: Option<NodeIdx>,
}

/// The seed writes the node's id in brackets, and some callers send it so.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "a node's id, such as 2 or [2]")]
enum NodeIdx {
    Plain(u32),
    InBrackets([u32; 1]),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Down {
    ttl_ms: Option<u64>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Missing {
    without: Option<Vec<u32>>,
}

impl Named {
    /// Returns the named node of the topology.
    fn node(&self, context: &Context) -> Result<NodeId, Problem> {
        match self.node_idx {
            Some(NodeIdx::Plain(node) | NodeIdx::InBrackets([node])) => member(context, "node_idx", node),
            None => Err(Problem::field("node_idx", "node_idx is missing")),
        }
    }
}

fn member(context: &Context, field: &str, node: u32) -> Result<NodeId, Problem> {
    match context.url(NodeId(node)) {
        Some(_) => Ok(NodeId(node)),
        None => Err(Problem::field(field, format!("the topology has no node {node}"))),
    }
}

/// Answers that this node is alive.
pub async fn heartbeat(request: ClientRequest) -> Answer {
    request.object::<NoFields>()?;
    Ok(answer::empty())
}

pub async fn writesync(State(context): State<Arc<Context>>) -> Answer {
    if context.handle.pulse().leader() == Some(context.me()) {
        let detail = "a leader sends this call and does not accept it; write with POST /v1/commands";
        return Err(Problem::new(Code::LeaderDoesNotTakeWritesync, detail));
    }
    let detail = "only this node's leader may call this; write with POST /v1/commands";
    Err(Problem::new(Code::NotTheLeaderCalling, detail))
}

/// Answers whether this node would approve that candidate now. It is an opinion; nothing changes.
/// The reason of the opinion goes to people and into no message (P58).
pub async fn declare_capability(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let candidate = request.object::<Named>()?.node(&context)?;
    match request.in_time(context.handle.opinion(candidate)).await? {
        Some(opinion) => Ok(answer::data(&json!({"approved": opinion.approved, "reason": opinion.reason}))),
        None => Err(Denied::Stopping.into()),
    }
}

pub async fn recv_elect() -> Problem {
    Problem::new(
        Code::EnvelopeRequired,
        "an approval binds a node to its promise, so only a node of the cluster can give one",
    )
}

/// Answers by the lease, at the moment of the answer.
pub async fn is_leader(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.object::<NoFields>()?;
    let leads = request.in_time(context.handle.is_leader()).await?;
    Ok(answer::json(StatusCode::OK, if leads { "true" } else { "false" }))
}

pub async fn service_down(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let Down { ttl_ms, reason } = request.object()?;
    let (ttl_ms, reason) = (ttl_ms.unwrap_or(TTL_DEFAULT_MS), reason.unwrap_or_default());
    if !(1..=TTL_MOST_MS).contains(&ttl_ms) {
        return Err(Problem::field("ttl_ms", format!("ttl_ms must be an integer from 1 to {TTL_MOST_MS}")));
    }
    if reason.len() > REASON_MOST || reason.contains(char::is_control) {
        let detail = format!("reason must be one line of at most {REASON_MOST} bytes");
        return Err(Problem::field("reason", detail));
    }
    let answer = json!({"service": "down", "ttl_ms": ttl_ms, "reason": reason});
    let reason: Arc<str> = reason.into();
    let change =
        || ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(ttl_ms), reason: reason.clone() };
    as_leader(&context, &request, || async {
        context.handle.service(change()).await?;
        Ok(answer::data(&answer))
    })
    .await
}

pub async fn service_up(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.object::<NoFields>()?;
    as_leader(&context, &request, || async {
        context.handle.service(ServiceChange::Up { owner: Owner::Operator }).await?;
        Ok(answer::data(&json!({"service": "up"})))
    })
    .await
}

pub async fn elect(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let heir = request.object::<Named>()?.node(&context)?;
    hand_over(&context, &request, Some(heir)).await
}

pub async fn handoff(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.object::<NoFields>()?;
    hand_over(&context, &request, None).await
}

/// If no heir was named, the answer shows the leader that this node sees by then, or none.
async fn hand_over(context: &Context, request: &ClientRequest, to: Option<NodeId>) -> Answer {
    as_leader(context, request, || async {
        let by = request.principal().who.to_string().into();
        context.handle.hand_over(to, HandOverReason::Ordered { by }).await?;
        let leader = to.or_else(|| context.handle.pulse().leader());
        Ok(answer::data(&json!({"leader": leader.map(|leader| leader.0)})))
    })
    .await
}

/// Orders for the leader are dispatched like writes.
/// But they are never sent twice: a hand-over that reached two leaders one after the other would happen
/// twice.
async fn as_leader<H, F>(context: &Context, request: &ClientRequest, here: H) -> Answer
where
    H: Fn() -> F,
    F: Future<Output = Result<Response<Body>, CallFailure>>,
{
    let no_forward = request.no_forward()?;
    dispatch::at_leader(context, request, CallKind::Order, no_forward, here).await
}

/// This order is carried out by this node: there is no leader yet.
/// It is not forwarded and not repeated: the node that is asked is the one that claims (P9). Without an
/// answer the outcome is unknown, because the cluster may be formed by then.
pub async fn form(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let without = request.object::<Missing>()?.without.unwrap_or_default();
    let without = without.into_iter().map(|node| member(&context, "without", node));
    let without = without.collect::<Result<BTreeSet<_>, _>>()?;
    let ids: Vec<u32> = without.iter().map(|node| node.0).collect();
    match timeout_at(request.deadline, context.handle.form(without)).await {
        Ok(formed) => formed?,
        Err(_) => return Err(CallKind::Order.late(request.mode)),
    }
    Ok(answer::data(&json!({"formed": true, "without": ids})))
}
