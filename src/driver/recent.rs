//! The longest of what was measured lately. Old ones are forgotten, so that one bad minute is not told of for ever.

use std::time::Duration;

use crate::types::{Span, Time};

/// What is told is of this long at least, and of twice as long at most.
const WINDOW: Span = Span::millis(30_000);

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

    fn go_on(&mut self, now: Time) {
        let windows = now.since(self.since).0 / WINDOW.0;
        if windows > 0 {
            self.before = if windows == 1 { self.current } else { Duration::ZERO };
            self.current = Duration::ZERO;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
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
