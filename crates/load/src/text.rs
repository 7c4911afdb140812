//! Figures as people read them.

use std::time::Duration;

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
