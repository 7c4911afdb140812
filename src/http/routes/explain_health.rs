//! The findings of `eldest doctor`, as this node sees the others (P58).
//!
//! The node asks each other node twice, and itself, with the credentials of the caller. So an answer takes a second longer than the
//! slowest node, and only a caller that may see the status of all nodes learns of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures_util::future::join_all;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::explain::{question, unreadable};
use super::health;
use crate::doctor::{Node, NodeLook, Sample, Seen, SeenEnding, SeenSilence, json, judge};
use crate::driver::handle::Level;
use crate::driver::{Member, wall_time};
use crate::http::answer::{self, Answer, CallFailure, Code};
use crate::http::dispatch::{Said, Silence, SilenceKind, ask_others};
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
    let _place = context.examinations.take(request.sharers())?;
    let clock = AskerClock { began: Instant::now(), wall: wall_time() };
    let mut first = look(&context, &request, &clock).await?;
    sleep(BETWEEN).await;
    let mut second = look(&context, &request, &clock).await?;
    // The token may have been revoked meanwhile.
    context.is_still_let_in(request.principal())?;
    let known = context.setup.known();
    let nodes = known.members.iter().filter_map(|member| {
        let Member { id, name, votes, .. } = member;
        // A node that joins or leaves between the two looks is not judged.
        let looks = match (first.remove(&id.0)?, second.remove(&id.0)?) {
            (Ok(first), Ok(second)) => Ok([first, second]),
            // The second look is newer, and its connection too.
            (_, Err(silence)) | (Err(silence), _) => Err(silence),
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
    let others = others.into_iter().map(async |Said { member, answer, at }| {
        let look = match answer {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(|said| NodeLook { said, sent_us, heard_us: clock.us_at(at) })
                .map_err(|error| SeenSilence::Strange { why: unreadable(&error).to_string() }),
            Err(silence) => Err(silent(context, &member, silence).await),
        };
        (member.id.0, look)
    });
    let mut looks: Looks = join_all(others).await.into_iter().collect();
    looks.insert(context.me().0, own?);
    Ok(looks)
}

async fn silent(context: &Context, member: &Member, silence: Silence) -> SeenSilence {
    let why = silence.why;
    match silence.kind {
        SilenceKind::NotReached => SeenSilence::NotReached { why },
        SilenceKind::NoAnswer => match takes_connections(context, member).await {
            true => SeenSilence::NoAnswer { why },
            false => SeenSilence::NotReached { why },
        },
        SilenceKind::Refused { code, .. } if code == Code::NotFound.name() => SeenSilence::Older,
        SilenceKind::Refused { code, detail } => SeenSilence::Refused { code, why: detail },
        SilenceKind::Unusable => SeenSilence::Strange { why },
    }
}

/// Whether a process still listens there. A call without an answer does not tell: its connection may have been opened long ago.
async fn takes_connections(context: &Context, member: &Member) -> bool {
    let dial = TcpStream::connect((member.host.as_str(), member.port));
    let dialled = context.setup.wall.pass(member.id, context.dial_timeout(), dial);
    timeout(context.dial_timeout().min(WITHIN_MOST), dialled)
        .await
        .is_ok_and(|dialled| dialled.is_some_and(|done| done.is_ok()))
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
        self.us_at(Instant::now())
    }

    fn us_at(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.began).as_micros();
        self.wall.0.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}
