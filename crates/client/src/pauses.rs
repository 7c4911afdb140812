//! The pauses between retries.

use std::time::Duration;

use super::random::jittered;

/// The first pause: about as long as a node needs to notice that its leader has failed.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

/// The longest pause. An election is over within a few of these.
const PAUSE_MOST: Duration = Duration::from_secs(1);

/// Pauses that double up to a bound, and that differ from client to client.
#[derive(Debug)]
pub struct Pauses(Option<Duration>);

impl Pauses {
    /// The pauses of a series of retries, from the shortest one on.
    pub fn new() -> Pauses {
        Pauses(None)
    }

    /// Whether there was no pause yet.
    pub fn is_fresh(&self) -> bool {
        self.0.is_none()
    }

    /// Returns no pause, and counts it as if it had been one.
    pub fn none(&mut self) -> Duration {
        self.next();
        Duration::ZERO
    }

    /// The next pause: at random between half of its span and all of it.
    pub fn next(&mut self) -> Duration {
        let span = self.0.map_or(PAUSE_FIRST, |last| (last * 2).min(PAUSE_MOST));
        self.0 = Some(span);
        jittered(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut pauses = Pauses::new();
        for most in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let (pause, most) = (pauses.next(), Duration::from_millis(most));
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
        }
    }
}
