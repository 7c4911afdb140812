//! What is wrong with the cluster, as far as this node learns from all others: the findings of `eldest doctor` (P58).
//!
//! The node asks each other node twice, and itself, with the credentials of the caller. So an answer takes a second longer than the
//! slowest node, and only a caller that may see the status of all nodes learns of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use tokio::time::{Instant, sleep};

use super::explain::{question, unreadable};
use super::health;
use crate::doctor::{Node, NodeLook, Sample, Seen, SeenEnding, SeenSilence, json, judge};
use crate::driver::handle::Level;
use crate::driver::{Member, wall_time};
use crate::http::answer::{self, Answer, CallFailure};
use crate::http::dispatch::{Said, SilenceKind, ask_others};
use crate::http::request::{ClientRequest, Context};
use crate::store::TokenView;
use crate::types::WallTime;

/// Long enough to show the rate of a clock, and for a follower to catch up.
const BETWEEN: Duration = Duration::from_secs(1);

/// The time for an answer, once the node is reached.
const WITHIN: Duration = Duration::from_secs(1);

/// With very long timings a node that takes no connection is left out before it is known whether it would.
const WITHIN_MOST: Duration = Duration::from_secs(3);

type Looks = BTreeMap<u32, Result<NodeLook, SeenSilence>>;

pub async fn health(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    let clock = AskerClock { began: Instant::now(), wall: wall_time() };
    let mut first = look(&context, &request, &clock).await?;
    sleep(BETWEEN).await;
    let mut second = look(&context, &request, &clock).await?;
    let known = context.setup.known();
    let nodes = known.members.iter().filter_map(|member| {
        let Member { id, name, votes, .. } = member;
        // A node that joins or leaves between the two looks is not judged.
        let looks = match (first.remove(&id.0)?, second.remove(&id.0)?) {
            (Ok(first), Ok(second)) => Ok([first, second]),
            (Err(silence), _) | (_, Err(silence)) => Err(silence),
        };
        Some(Node { id: id.0, name: name.clone(), url: context.setup.url(member), votes: *votes, looks })
    });
    let nodes = nodes.collect();
    let seen = Seen { asker: Some(context.me().0), nodes, tokens: tokens(&context, &request).await? };
    Ok(answer::data(&json(&seen, &judge(&seen))))
}

/// Asks all nodes at the same time.
async fn look(context: &Context, request: &ClientRequest, clock: &AskerClock) -> Result<Looks, CallFailure> {
    let within = (context.dial_timeout() + WITHIN).min(WITHIN_MOST);
    let question = question(request, "/v1/diagnostics", within);
    let sent_us = clock.now_us();
    let (own, others) = tokio::join!(own(context, request, clock), ask_others(context, &question, |_, _| ()));
    let others = others.into_iter().map(|Said { member, answer, took }| {
        let answer = answer.map_err(|silence| {
            let why = silence.why;
            match silence.kind {
                SilenceKind::NotReached => SeenSilence::NotReached { why },
                SilenceKind::NoAnswer => SeenSilence::NoAnswer { why },
                SilenceKind::Refused(StatusCode::NOT_FOUND) => SeenSilence::Older,
                SilenceKind::Refused(status) => SeenSilence::Refused { code: code(status), why },
                SilenceKind::Unusable => SeenSilence::Strange { why },
            }
        });
        let look = answer.and_then(|bytes| {
            let said = serde_json::from_slice(&bytes);
            let said = said.map_err(|error| SeenSilence::Strange { why: unreadable(&error).to_string() })?;
            Ok(NodeLook { said, sent_us, heard_us: sent_us.saturating_add(micros(took)) })
        });
        (member.id.0, look)
    });
    let mut looks: Looks = others.collect();
    looks.insert(context.me().0, own?);
    Ok(looks)
}

async fn own(
    context: &Context,
    request: &ClientRequest,
    clock: &AskerClock,
) -> Result<Result<NodeLook, SeenSilence>, CallFailure> {
    let sent_us = clock.now_us();
    let said = serde_json::to_value(health::own(context, request).await?);
    let heard_us = clock.now_us();
    let said = said.and_then(serde_json::from_value::<Sample>);
    let look = said.map(|said| NodeLook { said, sent_us, heard_us });
    Ok(look.map_err(|error| SeenSilence::Strange { why: error.to_string() }))
}

/// The codes of refusals for want of a grant, as in the answers.
fn code(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized".to_string(),
        StatusCode::FORBIDDEN => "forbidden".to_string(),
        status => status.as_u16().to_string(),
    }
}

/// The tokens that expire, for a caller that may list them.
async fn tokens(context: &Context, request: &ClientRequest) -> Result<Vec<SeenEnding>, CallFailure> {
    if !request.principal().may_order() {
        return Ok(Vec::new());
    }
    let view = request.in_time(context.handle.read(Level::Local)).await??;
    let ending = |TokenView { id, token }: TokenView| {
        let (name, ends_us) = (token.name().to_string(), token.ends_at()?.0);
        Some(SeenEnding { id: id.to_string(), name, made_us: token.made_at.0, ends_us })
    };
    Ok(view.store.tokens(None, usize::MAX).items.into_iter().filter_map(ending).collect())
}

/// The wall clock at the beginning plus the monotonic clock since then, so that it never jumps.
struct AskerClock {
    began: Instant,
    wall: WallTime,
}

impl AskerClock {
    fn now_us(&self) -> u64 {
        self.wall.0.saturating_add(micros(self.began.elapsed()))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
