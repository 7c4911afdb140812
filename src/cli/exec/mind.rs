//! Watches over a running command: freezes it while its lease is in doubt, and kills it before the lease ends.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use crate::cli::exec::end::ExecEnd;
use crate::cli::exec::group::Group;
use crate::cli::exec::signals::PassedSignals;
use crate::client::{Lock, LockGuard, Moment, Term};

/// The part of the lease's safe time after which the command is frozen: two renewals have been missed by then.
const FREEZE_AT: (u32, u32) = (2, 3);

/// The rest of the time is for the kernel to carry out the kill.
const KILL_AT: (u32, u32) = (9, 10);

/// The permission that the lease gives now, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    Proved { until: Moment },
    InDoubt { until: Moment },
    Over,
}

fn lease(term: Option<Term>, now: Moment) -> Lease {
    let Some(term) = term else {
        return Lease::Over;
    };
    let span = term.until.since(term.sent);
    let part = |(part, of): (u32, u32)| term.sent.plus(span * part / of);
    let (freeze, kill) = (part(FREEZE_AT), part(KILL_AT));
    match now {
        now if now < freeze => Lease::Proved { until: freeze },
        now if now < kill => Lease::InDoubt { until: kill },
        _ => Lease::Over,
    }
}

/// Watches until the command has ended or was killed.
pub async fn mind(guard: &LockGuard, group: &mut Group, signals: &mut PassedSignals) -> ExecEnd {
    let clock = guard.clock();
    let mut terms = guard.terms();
    let mut frozen = false;
    loop {
        if group.has_ended() {
            return group.end();
        }
        let term = *terms.borrow_and_update();
        let until = match lease(term, clock.now()) {
            Lease::Proved { until } => {
                if std::mem::take(&mut frozen) {
                    group.signal(Signal::CONT);
                }
                until
            }
            Lease::InDoubt { until } => {
                if !std::mem::replace(&mut frozen, true) {
                    group.signal(Signal::STOP);
                }
                until
            }
            Lease::Over => {
                group.signal(Signal::KILL);
                return ExecEnd::Lost { role: guard.role().to_string() };
            }
        };
        tokio::select! {
            biased;
            () = clock.sleep_until(until) => {}
            _ = terms.changed() => {}
            caught = signals.any() => pass_on(caught, group, frozen),
        }
    }
}

/// Passes a signal on. CONT is not passed to a frozen command: only a proof of the lease lets it go on.
fn pass_on(caught: Option<Signal>, group: &Group, frozen: bool) {
    match caught {
        Some(Signal::CONT) if frozen => {}
        Some(signal) => group.signal(signal),
        None => {}
    }
}

// Releasing the role at the end. This is optional, and must not delay the end.

/// The time for giving up a role when no node has answered.
const SOON: Duration = Duration::from_secs(1);

/// Longer than an election, so that the role is released even while the cluster elects. After this time it lapses by
/// itself.
const RELEASE_MOST: Duration = Duration::from_secs(5);

pub struct GiveUp;

impl GiveUp {
    /// Gives up the place in the queue, and releases what may have been granted meanwhile.
    pub async fn of(lock: Lock) {
        let _ = timeout(RELEASE_MOST, lock.abandon()).await;
    }

    /// The same where no node answers, so that it hardly helps to try for long.
    pub async fn soon(lock: Lock) {
        let _ = timeout(SOON, lock.abandon()).await;
    }

    pub async fn lapse(guard: LockGuard) {
        let _ = timeout(RELEASE_MOST, guard.lapse()).await;
    }

    pub async fn release(guard: LockGuard) {
        let _ = timeout(RELEASE_MOST, guard.release()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn frozen_at_two_thirds_and_killed_before_the_end() {
        let ttl = Duration::from_secs(30);
        let sent = Moment::default().plus(ttl);
        let term = Term::new(7, sent, ttl, ttl);
        let at = |seconds: f64| lease(Some(term), sent.plus(Duration::from_secs_f64(seconds)));
        assert!(matches!(at(0.0), Lease::Proved { .. }));
        assert!(matches!(at(19.7), Lease::Proved { .. }));
        let Lease::InDoubt { until } = at(19.9) else { panic!("two thirds are over") };
        assert!(until < term.until);
        assert_eq!(at(26.8), Lease::Over);
        assert_eq!(lease(None, sent), Lease::Over);
    }
}
