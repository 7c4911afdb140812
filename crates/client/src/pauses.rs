//! How long to wait before something is tried again.

use std::time::Duration;

use super::random::jittered;

/// The first pause: about as long as a node needs to notice that its leader has gone.
const PAUSE_FIRST: Duration = Duration::from_millis(50);

/// An election is over within a few of these.
const PAUSE_MOST: Duration = Duration::from_secs(1);

/// Waits that double, up to a bound, and differ from client to client.
#[derive(Debug)]
pub struct Pauses(Option<Duration>);

impl Pauses {
    pub fn new() -> Pauses {
        Pauses(None)
    }

    pub fn is_fresh(&self) -> bool {
        self.0.is_none()
    }

    /// No pause this time; from the next one on as if there had been one.
    pub fn none(&mut self) -> Duration {
        self.next();
        Duration::ZERO
    }

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
