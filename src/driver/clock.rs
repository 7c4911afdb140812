//! Reads the clocks of this machine, for the core and for display.
//!
//! The wall clock may show anything, at any time. It stamps records (P17), ends clients' tokens (P56) and is shown to people;
//! a leader's lease and all time-outs use the monotonic clock alone.

use rustix::time::{ClockId, clock_gettime};

use crate::types::{Now, Time, WallTime};

/// Reads the monotonic clock that continues while the machine is suspended: a lease must not outlast a sleep (C5).
pub fn now() -> Now {
    Now { mono: Time(micros(ClockId::Boottime)), wall: WallTime(micros(ClockId::Realtime)) }
}

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64);
    // A clock may be set to any value.
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}
