//! Records are stamped with wall time for people, and with cluster time for every ttl (P17).

use crate::protocol::mutant::{self, Mutant};
use crate::types::{Now, Span, Stamp, Time};

/// Cluster time as a leader keeps it: it goes on from the newest record by its monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClusterClock {
    newest: Stamp,
    newest_at: Time,
}

impl ClusterClock {
    pub fn continue_from(newest: Stamp, now: Time) -> ClusterClock {
        let newest = match mutant::is_on(Mutant::ClusterTimeRestarts) {
            true => Stamp { cluster: Span::ZERO, ..newest },
            false => newest,
        };
        ClusterClock { newest, newest_at: now }
    }

    pub fn now(&self, now: Time) -> Span {
        self.newest.cluster + now.since(self.newest_at)
    }

    /// The next record's stamp. A wall clock that was set back waits until it has caught up.
    pub fn stamp(&self, now: Now) -> Stamp {
        let wall = match mutant::is_on(Mutant::WallTimeGoesBack) {
            true => now.wall,
            false => now.wall.max(self.newest.wall),
        };
        let cluster = self.now(now.mono);
        Stamp { wall, cluster }
    }

    pub fn stamped(&mut self, stamp: Stamp, now: Time) {
        self.newest = stamp;
        self.newest_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::WallTime;

    #[test]
    fn a_clock_set_back_stamps_nothing_earlier() {
        let newest = Stamp { wall: WallTime(900), cluster: Span(70) };
        let clock = ClusterClock::continue_from(newest, Time(1_000));
        let stamp = clock.stamp(Now { mono: Time(1_030), wall: WallTime(5) });
        assert_eq!(stamp, Stamp { wall: WallTime(900), cluster: Span(100) });
    }
}
