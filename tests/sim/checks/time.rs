//! P17: along the log neither wall time nor cluster time goes back, and cluster time runs no faster
//! than the clocks may. Wall time does not follow a clock that leaps.

use eldest::types::{Record, Stamp, WallTime};

use super::{Check, ensure};

/// A clock that shows an earlier time has never been set, so its leaps are not checked.
const EVER_SET: WallTime = WallTime(1_735_689_600_000_000);

/// A cluster may have stood still for this long: ten years and a day.
const LEAP_MOST_US: u64 = 3_651 * 24 * 3_600 * 1_000_000;

#[derive(Debug, Default)]
pub struct Times {
    newest: Stamp,
}

impl Times {
    /// Sees each committed record once, in order.
    pub fn committed(&mut self, record: &Record) -> Check {
        let (before, stamp) = (self.newest, record.stamp);
        self.newest = stamp;
        let forward = stamp.wall >= before.wall && stamp.cluster >= before.cluster;
        let leap = stamp.wall.0.saturating_sub(before.wall.0);
        let sane = stamp.wall <= WallTime::MOST && (before.wall < EVER_SET || leap <= LEAP_MOST_US);
        ensure(sane, "P17 wall time does not leap", || {
            format!("{record} is stamped {stamp:?} after {before:?}")
        })?;
        ensure(forward, "P17 time does not go back", || {
            format!("{record} is stamped {stamp:?} after {before:?}")
        })
    }
}
