//! Where a call is answered: here, at the leader, or a moment later.
//!
//! ```text
//!   ┌──► another node leads ──► forward ──► its answer
//!   │                              │ it could not be dialled, or says that it does not lead (421)
//!   │                              ▼
//!   ├──► nobody leads, or leadership is being handed over ──► wait a little ──┐
//!   │                                                                         │
//!   └──► this node leads ──► here ──► the answer                              │
//!   ▲                                                                         │
//!   └─────────────────────────── judge anew ◄─────────────────────────────────┘
//! ```
//!
//! Judging anew is no retry of something that may have happened: each way back to the start is one on which it is
//! certain that nothing of the call has reached a log (P15). Once a write has left, or was taken here, there is none.

use axum::body::Body;
use axum::http::Response;
use tokio::time::{Duration, Instant, sleep, timeout_at};

use super::asked::Asked;
use super::context::Context;
use super::errors::{Failure, outcome_unknown};
use super::forward::{self, Sent};
use super::problem::{Code, Problem};
use crate::driver::api::Denied;
use crate::protocol::Mode;

/// How long to wait before looking again, if no change of leadership is seen: a hand-over that is given up shows none.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

impl Kind {
    /// What to say when the time is up and the call has left.
    pub fn late(self, mode: Mode) -> Problem {
        let code = match (self, mode) {
            (Kind::Write, _) => return outcome_unknown("the time is up and there is no verdict"),
            (Kind::Read, Mode::Safe) => Code::NoQuorum,
            // Nobody waits for a majority there.
            (Kind::Read, Mode::Available) => Code::NoLeader,
        };
        Problem::new(code, "the time is up and nothing was read")
    }
}

/// Answers by `here` if this node leads, or else by the leader. `stay` is a client's `forward=no`.
pub async fn take<H, F>(
    context: &Context,
    asked: &Asked,
    kind: Kind,
    stay: bool,
    here: H,
) -> Result<Response<Body>, Problem>
where
    H: Fn() -> F,
    F: Future<Output = Result<Response<Body>, Failure>>,
{
    let mut began = Instant::now();
    loop {
        let attempt = Instant::now();
        let denied = match context.elsewhere() {
            Some(leader) => Denied::NotLeader { leader },
            None => match timeout_at(asked.deadline, here()).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(Failure::Denied(denied))) => denied,
                Ok(Err(Failure::Problem(problem))) => return Err(problem),
                Err(_) => return Err(kind.late(asked.mode)),
            },
        };
        let (patience, denied) = match denied {
            Denied::NotLeader { .. } if stay || asked.was_forwarded() => return Err(denied.into()),
            Denied::NotLeader { leader } => match forward::call(context, asked, kind, leader).await? {
                Sent::Answer(response) => return Ok(response),
                Sent::NeverLeft => (context.leaderless_patience(), Denied::NoLeader),
                Sent::Moved => (context.hand_over_patience(), denied),
            },
            Denied::HandingOver => (context.hand_over_patience(), denied),
            // A node between two leaders has not heard a majority yet, either.
            Denied::NoLeader | Denied::NoQuorum => (context.leaderless_patience(), denied),
            denied => return Err(denied.into()),
        };
        // Whoever was waited for at a leader that is gone now is looked for anew.
        if attempt.elapsed() > patience {
            began = Instant::now();
        }
        if Instant::now() >= asked.deadline.min(began + patience) {
            return Err(denied.into());
        }
        let Some(_seat) = context.held.enter() else {
            return Err(denied.into());
        };
        change(context).await;
    }
}

/// Until leadership changes, or it is time to look again anyway.
async fn change(context: &Context) {
    let mut leadership = context.handle.leadership();
    leadership.mark_unchanged();
    tokio::select! {
        Ok(()) = leadership.changed() => {}
        () = sleep(LOOK_AGAIN) => {}
    }
}
