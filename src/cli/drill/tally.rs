//! The figures of a drill: which writes were acknowledged and when, and which holders believed to hold the role.

use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Tally {
    began: Instant,
    last_acknowledged: Duration,
    pub acknowledged: u64,
    /// The longest time in which no write was acknowledged.
    pub silence: Duration,
    pub longest_write: Duration,
    last_held: Duration,
    pub held_by_nobody: Duration,
    pub held_by_several: Duration,
    pub hands: u64,
    holder: Option<usize>,
    sampled: Duration,
}

impl Tally {
    pub fn new() -> Tally {
        Tally {
            began: Instant::now(),
            last_acknowledged: Duration::ZERO,
            acknowledged: 0,
            silence: Duration::ZERO,
            longest_write: Duration::ZERO,
            last_held: Duration::ZERO,
            held_by_nobody: Duration::ZERO,
            held_by_several: Duration::ZERO,
            hands: 0,
            holder: None,
            sampled: Duration::ZERO,
        }
    }

    /// The time since the drill began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Counts an acknowledged write of a client that may ask any node.
    pub fn acknowledged(&mut self, now: Duration, took: Duration) {
        if self.acknowledged > 0 {
            self.silence = self.silence.max(now.saturating_sub(self.last_acknowledged));
        }
        self.acknowledged += 1;
        self.last_acknowledged = self.last_acknowledged.max(now);
        self.longest_write = self.longest_write.max(took);
    }

    /// Takes a sample: at this moment these holders believe that they hold the role.
    pub fn sampled(&mut self, now: Duration, holders: &[usize]) {
        if holders.len() > 1 {
            self.held_by_several += now.saturating_sub(self.sampled);
        }
        if let Some(holder) = holders.first() {
            if self.holder.is_some() {
                self.held_by_nobody = self.held_by_nobody.max(now.saturating_sub(self.last_held));
            }
            if self.holder.is_some_and(|before| !holders.contains(&before)) {
                self.hands += 1;
            }
            self.holder = Some(*holder);
            self.last_held = now;
        }
        self.sampled = now;
    }

    /// Ends the tally. A silence that lasts to the end counts as well.
    pub fn ends(&mut self) {
        let now = self.now();
        self.is_over(now);
    }

    fn is_over(&mut self, now: Duration) {
        if self.acknowledged > 0 {
            self.silence = self.silence.max(now.saturating_sub(self.last_acknowledged));
        }
        if self.holder.is_some() {
            self.held_by_nobody = self.held_by_nobody.max(now.saturating_sub(self.last_held));
        }
    }

    /// Whether the role has been held at all.
    pub fn is_held(&self) -> bool {
        self.holder.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_longest_silence_lies_between_two_answers() {
        let mut tally = Tally::new();
        for (now, took) in [(500, 3), (510, 4), (1_310, 790), (1_309, 2), (1_320, 1)] {
            tally.acknowledged(ms(now), ms(took));
        }
        assert_eq!((tally.acknowledged, tally.silence, tally.longest_write), (5, ms(800), ms(790)));
    }

    #[test]
    fn what_lasts_to_the_end_counts() {
        let mut tally = Tally::new();
        tally.acknowledged(ms(10), ms(1));
        tally.acknowledged(ms(20), ms(1));
        tally.sampled(ms(20), &[0]);
        tally.is_over(ms(520));
        assert_eq!((tally.silence, tally.held_by_nobody), (ms(500), ms(500)));
    }

    #[test]
    fn a_role_changes_hands_and_is_held_by_two() {
        let mut tally = Tally::new();
        let samples: [(u64, &[usize]); 7] =
            [(1, &[]), (2, &[0]), (3, &[0]), (53, &[]), (103, &[1]), (104, &[1, 2]), (105, &[2])];
        for (now, holders) in samples {
            tally.sampled(ms(now), holders);
        }
        assert_eq!((tally.held_by_nobody, tally.held_by_several, tally.hands), (ms(100), ms(1), 2));
    }
}
