//! Instants and durations in the protocol. They are plain numbers: the driver reads the clocks.

use std::fmt;
use std::ops::{Add, Sub};

/// Microseconds on one node's monotonic clock, which continues while the machine is suspended. The value has no meaning on
/// another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// Microseconds since 1970, for people. No decision depends on it (P17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

/// The clocks when an input arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    pub mono: Time,
    pub wall: WallTime,
}

impl Time {
    pub const NEVER: Time = Time(u64::MAX);

    /// The time passed since `earlier`; zero if `earlier` is in the future.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn millis(ms: u64) -> Span {
        Span(ms.saturating_mul(1000))
    }

    pub const fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }

    /// This span less `percent` of it.
    /// A hundredth is rounded down to whole µs, so a span below 100 µs stays as it is. `percent` is at most
    /// 100.
    pub const fn shortened(self, percent: u64) -> Span {
        Span(self.0 - self.0 / 100 * percent)
    }
}

impl WallTime {
    /// The year 2200. Clocks that show more are not believed. Between this value and `NUMBER_MOST` there are enough numbers
    /// to grant one token a microsecond for another fifty years (P30).
    pub const MOST: WallTime = WallTime(7_258_118_400_000_000);
}

// Sums and differences saturate: `Time::NEVER` plus any span is still never, and no deadline wraps around into the
// past.
impl Add<Span> for WallTime {
    type Output = WallTime;
    fn add(self, span: Span) -> WallTime {
        WallTime(self.0.saturating_add(span.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us % 1000 == 0 => write!(f, "{}ms", us / 1000),
            us => write!(f, "{us}us"),
        }
    }
}
