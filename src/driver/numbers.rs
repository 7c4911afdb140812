//! Numbers that the loop counts for monitoring. No decision depends on them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::metrics::{Counter, Histogram};
use crate::protocol::{Cause, Event, Seq};
use crate::types::{NodeId, Span, Time, WallTime};

/// A reported maximum covers at least this time, and at most twice as much.
const WINDOW: Span = Span::millis(30_000);

/// The longest recent measurement. Old ones are dropped, so that one bad minute is not reported forever.
#[derive(Debug, Default)]
pub struct Longest {
    since: Time,
    current: Duration,
    before: Duration,
}

impl Longest {
    pub fn observe(&mut self, now: Time, took: Duration) {
        self.go_on(now);
        self.current = self.current.max(took);
    }

    pub fn get(&self, now: Time) -> Duration {
        match now.since(self.since).0 / WINDOW.0 {
            0 => self.current.max(self.before),
            1 => self.current,
            _ => Duration::ZERO,
        }
    }

    /// A window that has just ended is kept as `before`, so a maximum does not disappear at the moment at which a new window
    /// begins.
    fn go_on(&mut self, now: Time) {
        let windows = now.since(self.since).0 / WINDOW.0;
        if windows > 0 {
            self.before = if windows == 1 { self.current } else { Duration::ZERO };
            self.current = Duration::ZERO;
            self.since = now;
        }
    }
}

/// The maximum number of unsynced rounds that are timed. If the disk lags further behind, more of them tell nothing new.
const ROUNDS_MOST: usize = 1024;

/// Numbers that the loop counts for monitoring. No decision depends on them. Any thread may read them.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The time from a write's arrival at the leader's loop to its commit.
    pub commits: Histogram,
    /// The time from the moment a round goes to the disk until it is durable.
    pub syncs: Histogram,
    /// The time from a snapshot's order to its end.
    pub snapshots: Histogram,
    pub snapshot_failures: Counter,
    /// Changes of leadership that this node has seen, by the reason why it gave up the former leader.
    leader_changes: [Counter; Cause::ALL.len()],
    leaderless_us: Counter,
    pub diverged: Counter,
    pub merges: Counter,
    pub backups: Backups,
}

/// Counters of this node's scheduled backups. They are atomic because the thread of the backups writes them, and any thread reads
/// them.
#[derive(Debug, Default)]
pub struct Backups {
    pub failures: Counter,
    every_ms: AtomicU64,
    last_success_s: AtomicU64,
    bytes: AtomicU64,
}

impl Backups {
    /// Returns the interval. Zero means that no backups are scheduled.
    pub fn every(&self) -> Duration {
        Duration::from_millis(self.every_ms.load(Ordering::Relaxed))
    }

    /// Returns the time in seconds since 1970.
    pub fn last_success(&self) -> u64 {
        self.last_success_s.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn is_scheduled(&self, every: Duration) {
        let ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        self.every_ms.store(ms, Ordering::Relaxed);
    }

    /// Notes a success. `written` is None if no backup was written because the last one is up to date.
    pub fn succeeded(&self, now: WallTime, written: Option<u64>) {
        self.last_success_s.store(now.0 / 1_000_000, Ordering::Relaxed);
        if let Some(bytes) = written {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

impl Numbers {
    /// Returns how often leadership was given up, for each reason.
    pub fn leader_changes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Cause::ALL.iter().zip(&self.leader_changes).map(|(cause, count)| (cause.word(), count.get()))
    }

    /// Returns the total time for which this node knew no leader.
    pub fn leaderless(&self) -> Duration {
        Duration::from_micros(self.leaderless_us.get())
    }

    fn gave_up(&self, cause: Cause) {
        self.leader_changes[cause as usize].add(1);
    }
}

/// The state that the loop keeps in order to count.
#[derive(Debug)]
pub struct Counting {
    /// The time since which this node has known no leader.
    leaderless_since: Option<Time>,
    /// The last write of each round that is not durable yet, and when the round went to the disk.
    rounds: VecDeque<(Seq, Time)>,
    snapshot_began: Option<Time>,
    slowest_sync: Longest,
}

impl Counting {
    pub fn new(now: Time) -> Counting {
        Counting {
            leaderless_since: Some(now),
            rounds: VecDeque::new(),
            snapshot_began: None,
            slowest_sync: Longest::default(),
        }
    }

    pub fn event(&mut self, numbers: &Numbers, event: &Event) {
        match event {
            Event::Suspected { cause, .. } | Event::SteppedDown { cause, .. } => numbers.gave_up(*cause),
            Event::Diverged { .. } => numbers.diverged.add(1),
            Event::Merged { .. } => numbers.merges.add(1),
            _ => {}
        }
    }

    /// Counts up to now, so that a scrape in the middle of an election sees the time without a leader grow.
    pub fn leader(&mut self, numbers: &Numbers, now: Time, leader: Option<NodeId>) {
        if let Some(since) = self.leaderless_since {
            numbers.leaderless_us.add(now.since(since).0);
        }
        self.leaderless_since = leader.is_none().then_some(now);
    }

    pub fn on_write_started(&mut self, upto: Seq, now: Time) {
        if self.rounds.len() < ROUNDS_MOST {
            self.rounds.push_back((upto, now));
        }
    }

    /// A round is complete when its last write is durable: writes become durable in their order (P29).
    /// Returns the time that the longest of them took.
    pub fn durable(&mut self, numbers: &Numbers, upto: Seq, now: Time) -> Span {
        let mut longest = Span::ZERO;
        while let Some((_, began)) = self.rounds.front().copied().filter(|(seq, _)| *seq <= upto) {
            self.rounds.pop_front();
            longest = longest.max(now.since(began));
            let took = Duration::from_micros(now.since(began).0);
            numbers.syncs.observe(took);
            self.slowest_sync.observe(now, took);
        }
        longest
    }

    /// Returns how long the oldest round has waited for the disk. The time grows without end on a disk that hangs.
    pub fn disk_waits(&self, now: Time) -> Span {
        self.rounds.front().map_or(Span::ZERO, |(_, began)| now.since(*began))
    }

    pub fn slowest_sync(&self, now: Time) -> Duration {
        self.slowest_sync.get(now)
    }

    pub fn snapshot_begins(&mut self, now: Time) {
        self.snapshot_began = Some(now);
    }

    pub fn snapshot_ends(&mut self, numbers: &Numbers, now: Time, written: bool) {
        if !written {
            numbers.snapshot_failures.add(1);
        }
        if let Some(began) = self.snapshot_began.take().filter(|_| written) {
            numbers.snapshots.observe(Duration::from_micros(now.since(began).0));
        }
    }
}

#[cfg(test)]
mod recent_tests {
    use super::*;

    #[test]
    fn the_longest_is_told_for_a_window_and_forgotten_after_two() {
        let at = |seconds: u64| Time(seconds * 1_000_000);
        let mut longest = Longest::default();
        longest.observe(at(100), Duration::from_secs(3));
        longest.observe(at(110), Duration::from_secs(1));
        assert_eq!(longest.get(at(129)), Duration::from_secs(3));
        longest.observe(at(131), Duration::from_secs(1));
        assert_eq!(longest.get(at(140)), Duration::from_secs(3));
        assert_eq!(longest.get(at(162)), Duration::from_secs(1));
        assert_eq!(longest.get(at(191)), Duration::ZERO);
        longest.observe(at(1_000), Duration::from_millis(2));
        assert_eq!(longest.get(at(1_000)), Duration::from_millis(2));
    }
}

#[cfg(test)]
mod numbers_tests {
    use super::*;

    #[test]
    fn every_cause_has_a_reason_of_its_own() {
        let (numbers, mut counting) = (Numbers::default(), Counting::new(Time(10)));
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place, "the list has the order of the variants");
            let (silent, patience) = (Span::ZERO, Span::ZERO);
            counting.event(&numbers, &Event::Suspected { leader: NodeId(1), cause, silent, patience });
        }
        let counts: Vec<_> = numbers.leader_changes().collect();
        assert!(counts.iter().all(|(_, count)| *count == 1), "{counts:?}");
    }

    #[test]
    fn time_without_a_leader_is_counted_while_it_passes() {
        let (numbers, mut counting) = (Numbers::default(), Counting::new(Time(10)));
        counting.leader(&numbers, Time(30), None);
        assert_eq!(numbers.leaderless(), Duration::from_micros(20));
        counting.leader(&numbers, Time(50), Some(NodeId(1)));
        counting.leader(&numbers, Time(90), Some(NodeId(1)));
        counting.leader(&numbers, Time(95), None);
        counting.leader(&numbers, Time(100), Some(NodeId(2)));
        assert_eq!(numbers.leaderless(), Duration::from_micros(45));
    }

    #[test]
    fn a_round_ends_when_all_of_it_is_durable() {
        let (numbers, mut counting) = (Numbers::default(), Counting::new(Time(0)));
        counting.on_write_started(Seq(3), Time(100));
        counting.on_write_started(Seq(5), Time(200));
        counting.durable(&numbers, Seq(2), Time(300));
        assert_eq!(numbers.syncs.upto().1, 0);
        assert_eq!(counting.disk_waits(Time(300)), Span(200));
        counting.durable(&numbers, Seq(4), Time(400));
        assert_eq!(numbers.syncs.upto().1, 1);
        counting.durable(&numbers, Seq(9), Time(500));
        assert_eq!((numbers.syncs.upto().1, numbers.syncs.sum_seconds()), (2, 0.0006));
        assert_eq!(counting.disk_waits(Time(900)), Span::ZERO);
        assert_eq!(counting.slowest_sync(Time(900)), Duration::from_micros(300));
    }
}
