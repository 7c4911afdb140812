//! The output of a run for people: its progress on one line, and figures with their units.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// The interval of updates.
pub const EVERY: Duration = Duration::from_secs(1);

/// Returns to the start of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// The progress line. It is shown only on a terminal.
#[derive(Debug)]
pub struct Progress {
    watched: bool,
}

impl Progress {
    pub fn on_stderr() -> Progress {
        Progress { watched: std::io::stderr().is_terminal() }
    }

    /// Shows the line. An error in showing progress does not stop the run.
    pub fn show(&self, line: impl FnOnce() -> String) {
        if self.watched {
            let _ = write!(std::io::stderr(), "{CLEAR}{}", line());
        }
    }

    pub fn clear(&self) {
        self.show(String::new);
    }
}

/// Returns when the user interrupts the run. The result so far is then printed.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// A number with separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub fn per_second(count: u64, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { count as f64 / span.as_secs_f64() }
}

/// Milliseconds with whole microseconds: finer digits are noise.
pub fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_threes() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456"), (1_000_000, "1,000,000")];
        assert!(cases.iter().all(|(number, text)| grouped(*number) == *text));
    }

    #[test]
    fn figures_have_units() {
        assert_eq!(per_second(10, Duration::from_millis(500)), 20.0);
        assert_eq!(per_second(10, Duration::ZERO), 0.0);
        assert_eq!(millis(Duration::from_nanos(1_234_567)), 1.234);
    }
}
