//! The clock that leases are counted by. It is read in this file only.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep, sleep_until};

/// The runtime's timers stand still while the machine is suspended. Waits read the clock at this interval, so that
/// they end soon after the machine wakes up.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A point in time, as one clock of this machine counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `span` later. Saturates at the greatest moment.
    pub fn plus(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(span))
    }

    /// The span since `earlier`. Zero if `earlier` is not earlier.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A clock that leases are counted by.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// Monotonic, and it goes on while the machine is suspended: a suspension must not prolong a lease.
    Boottime,
    /// The runtime's clock, for a store that lives in this process alone. A test may stop it.
    Runtime { origin: Instant },
}

impl Clock {
    /// The runtime's clock. It begins at zero now.
    pub fn runtime() -> Clock {
        Clock::Runtime { origin: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        match self {
            Clock::Boottime => {
                let time = clock_gettime(ClockId::Boottime);
                Moment(Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32))
            }
            Clock::Runtime { origin } => Moment(origin.elapsed()),
        }
    }

    /// The result of the work. Returns `None` if the moment comes first, or has passed already.
    pub async fn before<T>(&self, moment: Moment, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.sleep_until(moment) => None,
            done = work => Some(done),
        }
    }

    /// Returns at that moment, or at once if it has passed.
    pub async fn sleep_until(&self, at: Moment) {
        match self {
            Clock::Boottime => {
                while self.now() < at {
                    sleep(at.since(self.now()).min(LOOK_EVERY)).await;
                }
            }
            Clock::Runtime { origin } => match origin.checked_add(at.0) {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stopped_runtime_s_clock_moves_by_waiting_alone() {
        let clock = Clock::runtime();
        let then = clock.now().plus(Duration::from_secs(3600));
        clock.sleep_until(then).await;
        assert!(clock.now() >= then);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_too_long_comes_to_nothing() {
        let clock = Clock::runtime();
        let soon = clock.now().plus(Duration::from_secs(1));
        assert_eq!(clock.before(soon, async { 7 }).await, Some(7));
        assert_eq!(clock.before(soon, std::future::pending::<()>()).await, None);
        assert_eq!(clock.before(soon, async { 7 }).await, None, "it is over");
    }

    #[tokio::test]
    async fn waiting_for_the_past_takes_no_time() {
        let now = Clock::Boottime.now();
        Clock::Boottime.sleep_until(now).await;
        assert!(Clock::Boottime.now() >= now);
        assert_eq!(now.since(now.plus(Duration::from_secs(1))), Duration::ZERO);
    }
}
