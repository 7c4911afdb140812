//! Spans of time, as they are written everywhere on the command line: 500ms, 30s, 5m, 12h, 30d. A number alone is refused: some programs
//! mean seconds by it, and others milliseconds.

use std::time::Duration;

pub fn span(text: &str) -> Result<Duration, String> {
    const FORM: &str = "write a duration like 500ms, 30s, 5m, 12h or 30d";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "" if digits > 0 => return Err(format!("add a unit: {number}s or {number}ms")),
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(FORM.to_string()),
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    millis.map(Duration::from_millis).ok_or_else(|| FORM.to_string())
}

/// The time for which a lease stays valid without being renewed.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Ttl {
    /// Expire when not renewed for this long, such as 10s
    #[arg(long, value_name = "SPAN", value_parser = span)]
    ttl: Option<Duration>,
    #[arg(long, value_name = "MS", hide = true, conflicts_with = "ttl")]
    ttl_ms: Option<u64>,
}

impl Ttl {
    pub fn millis(&self) -> Option<u64> {
        self.ttl_ms.or(self.ttl.map(millis))
    }
}

pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_unit() {
        for (text, wanted) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("2d", 172_800_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(wanted)), "{text}");
        }
        for wrong in
            ["", "30", "s", "1w", "1.5s", "-1s", "1 s", "99999999999999999999s", "18446744073709551615d"]
        {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
