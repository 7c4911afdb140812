//! The common knowledge of the lanes: which lane writes, when the last write was acknowledged, and the gaps since
//! then.

use std::time::{Duration, Instant, SystemTime};

use super::super::session::Trouble;
use super::super::tally::{Errors, Kind};

/// Without an acknowledgement for this long, all lanes try. This is usually long enough for a write to a healthy
/// cluster under load. If it is not, the other nodes are asked in vain, which costs them little.
const STAND_BY: Duration = Duration::from_millis(10);

/// The interval at which this process checks whether it gets processor time.
pub const TICK: Duration = Duration::from_millis(5);

/// The bound of events that are not printed yet. They are printed after each event, so more only accumulate while the
/// output is blocked. Then the oldest ones are kept, and the totals at the end still count all.
const EVENTS_MAX: usize = 1024;

/// A longer text is not an epoch.
const EPOCH_BYTES_MAX: usize = 64;

/// One end of a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub at: Instant,
    pub lane: usize,
    pub epoch: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first write is acknowledged. Gaps count from here.
    Began {
        ack: Ack,
        wall: SystemTime,
    },
    Gap(Gap),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: Ack,
    /// `None` if the run ended first.
    pub to: Option<Ack>,
    pub length: Duration,
    /// When the gap began, for comparison with other records.
    pub wall: SystemTime,
    /// The longest time within the gap in which this process itself got no processor time.
    pub client_late: Duration,
}

#[derive(Debug)]
pub struct Watch {
    over: Duration,
    began: Option<Instant>,
    last: Option<Ack>,
    /// The lane whose turn it is to write.
    active: Option<usize>,
    last_tick: Instant,
    late: Duration,
    events: Vec<Event>,
    pub acknowledged: u64,
    pub gaps: u64,
    /// The longest time between two acknowledgements, whether or not it is reported as a gap.
    pub longest: Duration,
    /// The sum of the gaps.
    pub total: Duration,
    pub errors: Errors,
    /// The time from the first acknowledgement to the end.
    pub watched: Duration,
}

impl Watch {
    pub fn new(over: Duration, now: Instant) -> Watch {
        Watch {
            over,
            began: None,
            last: None,
            active: None,
            last_tick: now,
            late: Duration::ZERO,
            events: Vec::new(),
            acknowledged: 0,
            gaps: 0,
            longest: Duration::ZERO,
            total: Duration::ZERO,
            errors: Errors::default(),
            watched: Duration::ZERO,
        }
    }

    /// Whether the lane should write now.
    pub fn wants(&self, lane: usize, now: Instant) -> bool {
        !self.is_fresh(now) || self.active.is_none_or(|active| active == lane)
    }

    /// Counts an acknowledged write. Returns `true` if there are events to print.
    pub fn acknowledge(&mut self, lane: usize, epoch: Option<&str>, now: Instant) -> bool {
        self.tick(now);
        let told = self.events.len();
        let epoch = epoch.filter(|epoch| epoch.len() <= EPOCH_BYTES_MAX).map(str::to_string);
        let ack = Ack { at: now, lane, epoch };
        if self.active.is_none() || !self.is_fresh(now) {
            self.active = Some(lane);
        }
        let last = self.last.replace(ack.clone());
        self.longest =
            self.longest.max(last.as_ref().map_or(Duration::ZERO, |last| now.duration_since(last.at)));
        match last {
            None => {
                self.began = Some(now);
                self.tell(Event::Began { ack, wall: SystemTime::now() });
            }
            Some(from) if now.duration_since(from.at) > self.over => self.gap(from, Some(ack), now),
            Some(_) => (),
        }
        self.acknowledged += 1;
        self.late = Duration::ZERO;
        self.events.len() > told
    }

    /// Counts a failed write. The lane of the node loses its turn.
    pub fn count(&mut self, lane: usize, trouble: &Trouble) {
        self.errors.count(Kind::Write, trouble, true);
        if self.active == Some(lane) {
            self.active = None;
        }
    }

    /// Must be called every `TICK`. A late call means that this process got no processor time.
    pub fn tick(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.last_tick).saturating_sub(TICK);
        self.late = self.late.max(late);
        self.last_tick = now;
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Ends the watch, and returns the last events. A gap that is still open is among them.
    pub fn finish(&mut self, now: Instant) -> Vec<Event> {
        self.tick(now);
        self.watched = self.began.map_or(Duration::ZERO, |began| now.duration_since(began));
        if let Some(from) = self.last.clone() {
            let length = now.duration_since(from.at);
            self.longest = self.longest.max(length);
            if length > self.over {
                self.gap(from, None, now);
            }
        }
        self.take_events()
    }

    /// The time since the first acknowledgement.
    pub fn offset(&self, at: Instant) -> Duration {
        self.began.map_or(Duration::ZERO, |began| at.saturating_duration_since(began))
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.last.as_ref().is_some_and(|ack| now.duration_since(ack.at) < STAND_BY)
    }

    fn gap(&mut self, from: Ack, to: Option<Ack>, now: Instant) {
        let length = now.duration_since(from.at);
        self.gaps += 1;
        self.total += length;
        let wall = SystemTime::now().checked_sub(length).unwrap_or(SystemTime::UNIX_EPOCH);
        self.tell(Event::Gap(Gap { from, to, length, wall, client_late: self.late }));
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::session::Fate;
    use super::*;

    struct Stage {
        watch: Watch,
        start: Instant,
    }

    impl Stage {
        fn new() -> Stage {
            let start = Instant::now();
            Stage { watch: Watch::new(Duration::from_millis(20), start), start }
        }

        fn at(&self, millis: u64) -> Instant {
            self.start + Duration::from_millis(millis)
        }

        fn ack(&mut self, lane: usize, epoch: &str, millis: u64) -> bool {
            self.watch.acknowledge(lane, Some(epoch), self.at(millis))
        }

        fn refused(&mut self, lane: usize) {
            let trouble = Trouble { fate: Fate::NotApplied, code: "not_leader".into(), status: Some(421) };
            self.watch.count(lane, &trouble);
        }

        fn wanted(&self, millis: u64) -> Vec<usize> {
            (0..3).filter(|lane| self.watch.wants(*lane, self.at(millis))).collect()
        }
    }

    #[test]
    fn one_lane_writes_and_the_others_stand_by() {
        let mut stage = Stage::new();
        assert_eq!(stage.wanted(0), [0, 1, 2]);
        stage.ack(1, "1.1", 5);
        stage.refused(0);
        assert_eq!(stage.wanted(6), [1]);
        assert_eq!(stage.wanted(15), [0, 1, 2], "the last acknowledgement is old");
        stage.ack(1, "1.1", 16);
        stage.refused(1);
        assert_eq!(stage.wanted(17), [0, 1, 2], "the writer was refused");
    }

    #[test]
    fn a_lane_that_answers_late_does_not_take_the_turn() {
        let mut stage = Stage::new();
        stage.ack(0, "1.1", 0);
        stage.ack(2, "1.2", 30);
        assert_eq!(stage.wanted(31), [2]);
        stage.ack(0, "1.1", 32);
        assert_eq!(stage.wanted(33), [2]);
    }

    #[test]
    fn long_gaps_are_told_with_both_ends() {
        let mut stage = Stage::new();
        assert!(stage.ack(0, "1.1", 100));
        assert!(!stage.ack(0, "1.1", 120));
        assert!(stage.ack(2, "1.2", 420));
        let events = stage.watch.take_events();
        assert!(matches!(&events[0], Event::Began { ack, .. } if ack.at == stage.at(100)));
        let Event::Gap(gap) = &events[1] else { panic!("{events:?}") };
        assert_eq!(gap.from, Ack { at: stage.at(120), lane: 0, epoch: Some("1.1".into()) });
        assert_eq!(gap.to, Some(Ack { at: stage.at(420), lane: 2, epoch: Some("1.2".into()) }));
        assert_eq!(gap.length, Duration::from_millis(300));
        assert_eq!(stage.watch.offset(gap.from.at), Duration::from_millis(20));
        assert_eq!((stage.watch.gaps, stage.watch.acknowledged, events.len()), (1, 3, 2));
        assert_eq!((stage.watch.longest, stage.watch.total), (gap.length, gap.length));
    }

    #[test]
    fn the_longest_wait_need_not_be_a_gap() {
        let mut stage = Stage::new();
        stage.ack(0, "1.1", 0);
        stage.ack(0, "1.1", 7);
        stage.watch.finish(stage.at(10));
        assert_eq!((stage.watch.longest, stage.watch.gaps), (Duration::from_millis(7), 0));
    }

    #[test]
    fn a_gap_may_be_open_at_the_end() {
        let mut stage = Stage::new();
        assert_eq!(stage.watch.finish(stage.at(50)), [], "no gap before the first acknowledgement");
        stage.ack(0, "1.1", 100);
        let events = stage.watch.finish(stage.at(150));
        let Event::Gap(gap) = &events[1] else { panic!("{events:?}") };
        assert_eq!((gap.to.clone(), gap.length), (None, Duration::from_millis(50)));
        assert_eq!(stage.watch.watched, Duration::from_millis(50));
    }

    #[test]
    fn a_gap_of_our_own_making_shows() {
        let mut stage = Stage::new();
        stage.ack(0, "1.1", 0);
        stage.watch.tick(stage.at(5));
        stage.ack(0, "1.1", 105);
        stage.watch.tick(stage.at(110));
        stage.watch.tick(stage.at(115));
        stage.watch.tick(stage.at(120));
        stage.ack(0, "1.1", 126);
        let late = |event: &Event| match event {
            Event::Gap(gap) => Some(gap.client_late.as_millis()),
            Event::Began { .. } => None,
        };
        let late: Vec<_> = stage.watch.take_events().iter().filter_map(late).collect();
        assert_eq!(late, [95, 1]);
    }
}
