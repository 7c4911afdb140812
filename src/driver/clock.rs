//! The clocks of this machine, read off in one place.

use rustix::time::{ClockId, clock_gettime};

use crate::types::{Now, Time, WallTime};

/// The monotonic clock is the one that goes on while the machine is suspended: a lease must not outlast a
/// sleep (C5).
pub fn now() -> Now {
    Now { mono: Time(micros(ClockId::Boottime)), wall: WallTime(micros(ClockId::Realtime)) }
}

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64);
    // A clock may be set to anything.
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}
