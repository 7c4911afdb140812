//! What an operator orders: who leads, whether clients may write, and that a cluster forms without some nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout_at;

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::operator::{Named, Nothing, member};
use super::problem::Problem;
use super::{answers, turn};
use crate::protocol::ServiceChange;
use crate::types::{NodeId, Owner, Span};

type Answer = Result<Response<Body>, Problem>;

/// Long enough for an operator's next step; a hold that is forgotten ends by itself.
const TTL_DEFAULT_MS: u64 = 60_000;
const TTL_MOST_MS: u64 = 60 * 60 * 1000;

/// For people, and part of a record.
const REASON_MOST: usize = 512;

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

pub async fn service_down(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    let Down { ttl_ms, reason } = asked.object()?;
    let (ttl_ms, reason) = (ttl_ms.unwrap_or(TTL_DEFAULT_MS), reason.unwrap_or_default());
    if !(1..=TTL_MOST_MS).contains(&ttl_ms) {
        return Err(Problem::field("ttl_ms", format!("ttl_ms is a number from 1 to {TTL_MOST_MS}")));
    }
    if reason.len() > REASON_MOST || reason.contains(char::is_control) {
        let detail = format!("reason is one line of at most {REASON_MOST} bytes");
        return Err(Problem::field("reason", detail));
    }
    let answer = json!({"service": "down", "ttl_ms": ttl_ms, "reason": reason});
    let reason: Arc<str> = reason.into();
    let change =
        || ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(ttl_ms), reason: reason.clone() };
    as_leader(&context, &asked, || async {
        context.handle.service(change()).await?;
        Ok(answers::data(&answer))
    })
    .await
}

pub async fn service_up(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    asked.object::<Nothing>()?;
    as_leader(&context, &asked, || async {
        context.handle.service(ServiceChange::Up { owner: Owner::Operator }).await?;
        Ok(answers::data(&json!({"service": "up"})))
    })
    .await
}

pub async fn elect(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    let heir = asked.object::<Named>()?.node(&context)?;
    hand_over(&context, &asked, Some(heir)).await
}

pub async fn handoff(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    asked.object::<Nothing>()?;
    hand_over(&context, &asked, None).await
}

async fn hand_over(context: &Context, asked: &Asked, to: Option<NodeId>) -> Answer {
    as_leader(context, asked, || async {
        context.handle.hand_over(to).await?;
        let leader = to.or_else(|| context.handle.pulse().leader());
        Ok(answers::data(&json!({"leader": leader.map(|leader| leader.0)})))
    })
    .await
}

/// Orders that the leader carries out go the way of writes.
async fn as_leader<H, F>(context: &Context, asked: &Asked, here: H) -> Answer
where
    H: Fn() -> F,
    F: Future<Output = Result<Response<Body>, Failure>>,
{
    let stay = asked.query(&["forward"])?.stay;
    turn::take(context, asked, turn::Kind::Write, stay, here).await
}

/// This node's own business: there is no leader yet.
pub async fn form(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    let without = asked.object::<Missing>()?.without.unwrap_or_default();
    let without = without.into_iter().map(|node| member(&context, "without", node));
    let without = without.collect::<Result<BTreeSet<_>, _>>()?;
    let ids: Vec<u32> = without.iter().map(|node| node.0).collect();
    match timeout_at(asked.deadline, context.handle.form(without)).await {
        Ok(formed) => formed?,
        Err(_) => return Err(turn::Kind::Write.late(asked.mode)),
    }
    Ok(answers::data(&json!({"formed": true, "without": ids})))
}
