//! Answers a call at this node or at the leader, after a wait if there is no leader.
//!
//! ```text
//!   ┌──► another node leads ──► forward ──► its answer
//!   │                              │ it could not be dialled, says that it does not lead (421), or was replaced before it answered
//!   │                              ▼
//!   ├──► no node leads, or leadership is being handed over ──► wait a little ─┐
//!   │                                                                         │
//!   └──► this node leads ──► here ──► the answer                              │
//!   ▲                                                                         │
//!   └─────────────────────────── judge again ◄────────────────────────────────┘
//! ```
//!
//! Judging again is no retry of something that may have happened: each path back to the start is one on which it is certain that nothing
//! of the call has reached a log (P15). Once a write was sent, or was taken here, no path leads back, except for a write with an
//! idempotency key, by which the next leader recognizes it. From then on no refusal says that the write surely was not applied.
//!
//! The refusals that end the wait say what was missing: 421 if the node that leads was not to be asked or said that it does not
//! lead, 503 `no_leader` or `no_quorum` if no leader was found in time. They are true of the whole call, because no earlier
//! attempt had an effect. If one was sent and not answered, the refusal becomes 504.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use tokio::time::{Duration, Instant, sleep, timeout_at};

use super::forward::{self, Forwarded, What};
use crate::driver::handle::Denied;
use crate::http::answer::{Answer, CallFailure, Problem, outcome_unknown};
use crate::http::request::{CallKind, ClientRequest, Context};
use crate::protocol::Mode;

/// The pause before looking again if no change of leadership is seen: a cancelled hand-over shows no change.
/// A change may also come between the look at the leader and the wait for a change; then this pause ends the
/// wait.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The node that has decided.
#[derive(Debug)]
pub enum Settled<T> {
    Here(T),
    /// The leader has decided, and this is its answer.
    Elsewhere(Response<Body>),
}

/// Answers by `local` if this node leads, or else by the leader. `no_forward` is a client's `forward=no`.
pub async fn at_leader<H, F>(
    context: &Context,
    request: &ClientRequest,
    kind: CallKind,
    no_forward: bool,
    local: H,
) -> Answer
where
    H: Fn() -> F,
    F: Future<Output = Result<Response<Body>, CallFailure>>,
{
    match settle(context, request, kind, no_forward, local).await? {
        Settled::Here(response) | Settled::Elsewhere(response) => Ok(response),
    }
}

/// Does the same if the result of `local` is not an answer yet.
/// `local` runs once for each attempt in which this node leads.
pub async fn settle<T, H, F>(
    context: &Context,
    request: &ClientRequest,
    kind: CallKind,
    no_forward: bool,
    local: H,
) -> Result<Settled<T>, Problem>
where
    H: Fn() -> F,
    F: Future<Output = Result<T, CallFailure>>,
{
    let mut unanswered = false;
    let unknown = || outcome_unknown("a former leader accepted the call and did not answer");
    match find(context, request, kind, no_forward, local, &mut unanswered).await {
        // The refusal is about the last attempt. An earlier one was sent and not answered, so it is unknown whether the call was
        // applied (P15, "another leader").
        Ok(Settled::Elsewhere(response)) if unanswered && is_refusal(response.status()) => Err(unknown()),
        Err(problem) if unanswered && is_refusal(problem.code().status()) => Err(unknown()),
        // An earlier call of the client with the same key may be in the log of this node, although this call
        // was refused.
        Err(problem) if kind != CallKind::Read => Err(Box::pin(doubted(context, request, problem)).await),
        settled => settled,
    }
}

/// Returns whether this attempt surely was not applied. A token may have been revoked between two attempts.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 421 | 429 | 503)
}

/// A refusal means that the call was surely not applied. This is true of the attempt, but not of the call if an earlier attempt
/// with the same key may still be applied (P15). A redirect is not a refusal. The loop is asked last, when the refusal is
/// certain: an earlier attempt may reach this node's log while this call waits.
async fn doubted(context: &Context, request: &ClientRequest, problem: Problem) -> Problem {
    let refused = matches!(problem.code().status().as_u16(), 429 | 503);
    let Ok(Some(call)) = request.idempotent_call() else { return problem };
    if !refused {
        return problem;
    }
    // If no answer comes in time, the outcome is unknown.
    match timeout_at(request.deadline, context.handle.may_have_been(call)).await.unwrap_or(true) {
        true => outcome_unknown("an earlier attempt of this call has reached a log"),
        false => problem,
    }
}

async fn find<T, H, F>(
    context: &Context,
    request: &ClientRequest,
    kind: CallKind,
    no_forward: bool,
    local: H,
    unanswered: &mut bool,
) -> Result<Settled<T>, Problem>
where
    H: Fn() -> F,
    F: Future<Output = Result<T, CallFailure>>,
{
    let mut began = Instant::now();
    let what = What { request, kind, may_repeat: may_repeat(request, kind) };
    loop {
        let attempt = Instant::now();
        // The pulse is read without a call to the loop: a follower forwards without waking its loop.
        let denied = match context.other_leader() {
            Some(leader) => Denied::NotLeader { leader },
            None => match timeout_at(request.deadline, still_let_in(context, request, &local)).await {
                Ok(Ok(done)) => return Ok(Settled::Here(done)),
                Ok(Err(CallFailure::Denied(denied))) => denied,
                Ok(Err(CallFailure::Problem(problem))) => return Err(problem),
                Err(_) => return Err(kind.late(request.mode)),
            },
        };
        let (patience, denied) = match denied {
            Denied::NotLeader { .. } if no_forward || request.was_forwarded() => return Err(denied.into()),
            Denied::NotLeader { leader } => match Box::pin(forward::call(context, what, leader)).await? {
                Forwarded::Answered(response) => return Ok(Settled::Elsewhere(response)),
                Forwarded::NotSent => (context.leaderless_patience(), Denied::NoLeader),
                // That node leads no longer, or not yet: a hand-over may be under way there.
                Forwarded::NotLeader => (context.hand_over_patience(), denied),
                Forwarded::Unanswered => {
                    *unanswered |= kind != CallKind::Read;
                    (context.leaderless_patience(), Denied::NoLeader)
                }
            },
            Denied::HandingOver => (context.hand_over_patience(), denied),
            // `NoQuorum` waits, too: a node between two leaders has not heard from a majority yet.
            Denied::NoLeader | Denied::NoQuorum => (context.leaderless_patience(), denied),
            denied => return Err(denied.into()),
        };
        // The leader that this attempt waited for is gone: the wait for the next one begins now.
        if attempt.elapsed() > patience {
            began = Instant::now();
        }
        if Instant::now() >= request.deadline.min(began + patience) {
            return Err(denied.into());
        }
        // A waiting call holds its body. If there is no place, it gets the answer that waiting might have
        // avoided.
        let Ok(_place) = context.waiting.take(request.sharers()) else {
            return Err(denied.into());
        };
        Box::pin(leadership_change(context)).await;
    }
}

/// A call may have waited for a leader, so its caller is judged again before the call takes effect.
/// This is the last of the three looks at the token (P56). It runs where the call takes effect: a follower
/// that lags may not know that the token was revoked.
async fn still_let_in<T, H, F>(
    context: &Context,
    request: &ClientRequest,
    local: &H,
) -> Result<T, CallFailure>
where
    H: Fn() -> F,
    F: Future<Output = Result<T, CallFailure>>,
{
    context.is_still_let_in(request.principal())?;
    local().await
}

/// Returns whether another leader may be asked, too. In available mode the first leader may have taken the call on its own side, and
/// a call that two sides take is not recognized as the same.
/// An order is never sent twice: it has no key by which the next leader could recognize it.
fn may_repeat(request: &ClientRequest, kind: CallKind) -> bool {
    match kind {
        CallKind::Read => true,
        CallKind::Order => false,
        CallKind::Write => request.mode == Mode::Safe && matches!(request.idempotent_call(), Ok(Some(_))),
    }
}

/// Waits until leadership changes, or until it is time to look again anyway.
async fn leadership_change(context: &Context) {
    let mut leadership = context.handle.leadership();
    leadership.mark_unchanged();
    tokio::select! {
        Ok(()) = leadership.changed() => {}
        () = sleep(LOOK_AGAIN) => {}
    }
}
