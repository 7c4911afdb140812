//! Times as a person reads them: local, to the millisecond.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The local time of a time of RFC 3339. A text that is no time is shown as it is.
pub fn local(text: &str) -> String {
    shown(text, &TimeZone::system())
}

fn shown(text: &str, zone: &TimeZone) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f %:z").to_string(),
        Err(_) => text.to_string(),
    }
}

/// A time between steps, in milliseconds.
pub fn after(micros: u64) -> String {
    format!("+{}.{} ms", micros / 1000, micros % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use jiff::tz::Offset;

    use super::*;

    #[test]
    fn times_are_local() {
        let zone = TimeZone::fixed(Offset::constant(-5));
        assert_eq!(shown("2026-11-28T18:03:25.0421Z", &zone), "2026-11-28 13:03:25.042 -05:00");
        assert_eq!(shown("2026-11-28T18:03:25Z", &TimeZone::UTC), "2026-11-28 18:03:25.000 +00:00");
        assert_eq!(shown("T1", &zone), "T1");
        assert_eq!([after(0), after(11_482)], ["+0.0 ms", "+11.4 ms"]);
    }
}
