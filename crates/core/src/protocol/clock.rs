//! Records carry stamps: wall time for people, and cluster time for every ttl (P17).

use super::mutant::{self, Mutant};
use crate::types::{Now, Span, Stamp, Time, WallTime};

/// The most by which a wall clock may differ from the newest stamp plus the time that the monotonic clock has counted since. A
/// clock that is off by more has been set wrong, and is not believed.
const STEP_MOST: Span = Span::millis(24 * 3_600 * 1_000);

/// The same bound after a start, when the age of the newest stamp is unknown: the cluster may have been down for this long.
const REST_MOST: Span = Span::millis(10 * 365 * 24 * 3_600 * 1_000);

/// A clock that shows less has never been set. After a stamp below this, any later time up to `WallTime::MOST` is believed.
const EVER_SET: WallTime = WallTime(1_735_689_600_000_000);

/// Cluster time as a leader counts it: it goes on from the newest record by the leader's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClusterClock {
    newest: Stamp,
    newest_at: Time,
    /// The time at which this process added that record. `None`: the record was there when the process started.
    taken_at: Option<Time>,
}

impl ClusterClock {
    pub fn continue_from(newest: Stamp, taken_at: Option<Time>, now: Time) -> ClusterClock {
        let newest = match mutant::is_on(Mutant::ClusterTimeRestarts) {
            true => Stamp { cluster: Span::ZERO, ..newest },
            false => newest,
        };
        ClusterClock { newest, newest_at: now, taken_at }
    }

    pub fn now(&self, now: Time) -> Span {
        self.newest.cluster + now.since(self.newest_at)
    }

    /// The next record's stamp. A wall clock that was set back a little has to catch up first. A wall clock that has leapt, in either
    /// direction, is ignored, and time goes on by the monotonic clock.
    pub fn stamp(&self, now: Now) -> Stamp {
        let wall = match () {
            () if mutant::is_on(Mutant::WallTimeGoesBack) => now.wall,
            () if mutant::is_on(Mutant::WallTimeLeaps) => now.wall.max(self.newest.wall),
            () => self.wall(now).min(WallTime::MOST).max(self.newest.wall),
        };
        let cluster = self.now(now.mono);
        Stamp { wall, cluster }
    }

    /// The wall time for a stamp: the clock's if it is within the bounds around `due`, which the newest stamp
    /// and the monotonic clock add up to; otherwise `due`. A clock that shows the year 9999 for a moment must
    /// not get into a stamp: stamps never go back, so every later one, and every token, would be as far off
    /// (P17, P30).
    fn wall(&self, now: Now) -> WallTime {
        let newest = self.newest.wall;
        let due = newest + self.taken_at.map_or(Span::ZERO, |at| now.mono.since(at));
        let ahead = match self.taken_at {
            _ if newest < EVER_SET => Span(WallTime::MOST.0),
            Some(_) => STEP_MOST,
            None => REST_MOST,
        };
        let is_believed =
            now.wall <= WallTime::MOST && now.wall <= due + ahead && now.wall + STEP_MOST >= due;
        if is_believed { now.wall } else { due }
    }

    pub fn stamped(&mut self, stamp: Stamp, now: Time) {
        *self = ClusterClock { newest: stamp, newest_at: now, taken_at: Some(now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_US: u64 = 365 * 24 * 3_600 * 1_000_000;
    const HOUR_US: u64 = 3_600 * 1_000_000;
    const NEW: WallTime = WallTime(1_800_000_000_000_000);

    /// The stamp of a leader `passed` after a record of `newest`, if its wall clock shows `shown`.
    fn stamped(newest: WallTime, passed: u64, shown: u64) -> u64 {
        let stamp = Stamp { wall: newest, cluster: Span(70) };
        let clock = ClusterClock::continue_from(stamp, Some(Time(1_000)), Time(1_000));
        let stamp = clock.stamp(Now { mono: Time(1_000 + passed), wall: WallTime(shown) });
        assert_eq!(stamp.cluster, Span(70 + passed));
        stamp.wall.0
    }

    #[test]
    fn a_clock_set_back_stamps_nothing_earlier() {
        assert_eq!(stamped(NEW, 30, NEW.0 - HOUR_US), NEW.0);
        assert_eq!(stamped(NEW, 2 * HOUR_US, NEW.0 + HOUR_US), NEW.0 + HOUR_US);
    }

    #[test]
    fn a_clock_that_has_leapt_is_not_believed() {
        let year_9999 = 253_402_300_799_000_000;
        for shown in [0, NEW.0 - YEAR_US, NEW.0 + YEAR_US, year_9999, 1 << 53, u64::MAX] {
            assert_eq!(stamped(NEW, 30, shown), NEW.0 + 30, "{shown}");
        }
        assert_eq!(stamped(NEW, 30, NEW.0 + HOUR_US), NEW.0 + HOUR_US);
    }

    #[test]
    fn a_clock_that_was_never_set_is_set_at_once() {
        assert_eq!(stamped(WallTime(HOUR_US), 30, NEW.0), NEW.0);
        assert_eq!(stamped(WallTime(HOUR_US), 30, u64::MAX), HOUR_US + 30);
    }

    #[test]
    fn after_a_start_the_newest_record_may_be_years_old() {
        let stamp = |shown| {
            let clock = ClusterClock::continue_from(Stamp { wall: NEW, cluster: Span(70) }, None, Time(5));
            clock.stamp(Now { mono: Time(9), wall: WallTime(shown) }).wall.0
        };
        assert_eq!(stamp(NEW.0 + 9 * YEAR_US), NEW.0 + 9 * YEAR_US);
        assert_eq!(stamp(NEW.0 + 11 * YEAR_US), NEW.0);
        assert_eq!(stamp(NEW.0 - 9 * YEAR_US), NEW.0);
    }

    #[test]
    fn no_stamp_reaches_the_end_of_numbers() {
        assert_eq!(stamped(WallTime::MOST, HOUR_US, WallTime::MOST.0 + HOUR_US), WallTime::MOST.0);
        assert_eq!(stamped(WallTime(u64::MAX), 30, NEW.0), u64::MAX, "never back, whatever stands there");
    }
}
