//! A line of the log for people, without the parts that only the program needs.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::types::{Entry, Record, WallTime};

/// Optional fields between the time stamps and the type.
const OPTIONAL: [&[u8]; 2] = [b"key=", b"fmt="];

/// Index, epoch, checksum, wall time, cluster time.
const FIELDS: usize = 5;

/// The seed's own form, which is the end of the line: `type|JSON`.
pub fn seed_form(line: &[u8]) -> &[u8] {
    let mut rest = line;
    for _ in 0..FIELDS {
        rest = after_blank(rest);
    }
    while OPTIONAL.iter().any(|name| rest.starts_with(name)) {
        rest = after_blank(rest);
    }
    rest
}

fn after_blank(text: &[u8]) -> &[u8] {
    let blank = text.iter().position(|byte| *byte == b' ');
    blank.map_or(&[], |blank| &text[blank + 1..])
}

/// Position, time, idempotency key and the seed's form.
pub fn long_form(record: &Record, line: &[u8]) -> Vec<u8> {
    let key = match &record.entry {
        Entry::Client(payload) => payload.call.map(|call| format!("{:032x}", call.key)),
        _ => None,
    };
    let key = key.unwrap_or_else(|| "-".to_string());
    let mut text = format!("{} {} {key} ", record.position, utc(record.stamp.wall)).into_bytes();
    text.extend_from_slice(seed_form(line));
    text
}

/// RFC 3339 in UTC, to the microsecond.
fn utc(WallTime(us): WallTime) -> String {
    const DAY: u64 = 86_400;
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let (days, second) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// The Gregorian date of a day counted from 1970-01-01. Years begin in March here, so that the leap day comes last.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    (year_of_era + 400 * era + u64::from(month <= 2), month, day)
}

// The argument that names the directory of the log.

#[derive(Clone, Debug, clap::Args)]
pub struct LogDirectory {
    /// The node's data directory, or the log directory in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl LogDirectory {
    /// The directory, if it exists. A missing directory holds no log, which is not the same as an empty log.
    pub fn existing(&self) -> Result<&Path, Failure> {
        match std::fs::metadata(&self.directory) {
            Ok(found) if found.is_dir() => Ok(&self.directory),
            Ok(_) => Err(Failure::file(&self.directory)(std::io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(Failure::file(&self.directory)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::line::encode;
    use crate::types::{Epoch, Format, KeyedCall, NodeId, Payload, Position, Span, Stamp};

    fn record(call: Option<KeyedCall>, format: u16) -> Record {
        let text = r#"{"name":"key=a b|c"}"#.into();
        Record {
            position: Position::new(Epoch::new(7, NodeId(1)), 12),
            stamp: Stamp { wall: WallTime(1_763_737_161_123_456), cluster: Span(5_000_000) },
            entry: Entry::Client(Payload { kind: 1, format: Format(format), call, text }),
        }
    }

    fn line(record: &Record) -> Vec<u8> {
        let mut line = Vec::new();
        encode(record, 0, &mut line);
        line.strip_suffix(b"\n").unwrap_or(&line).to_vec()
    }

    #[test]
    fn the_seed_form_is_what_follows_the_prefix() {
        let call = KeyedCall { key: 0xab, body: 1, who: 0 };
        for record in [record(None, 1), record(Some(call), 1), record(None, 2), record(Some(call), 2)] {
            let form = seed_form(&line(&record)).to_vec();
            assert_eq!(String::from_utf8_lossy(&form), r#"1|{"name":"key=a b|c"}"#);
        }
        assert_eq!(seed_form(b"no such line"), b"");
    }

    #[test]
    fn the_long_form() {
        let record = record(Some(KeyedCall { key: 0xab, body: 1, who: 0 }), 1);
        let text = String::from_utf8(long_form(&record, &line(&record))).expect("text");
        let expected =
            r#"7.1@12 2025-11-21T14:59:21.123456Z 000000000000000000000000000000ab 1|{"name":"key=a b|c"}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn dates() {
        assert_eq!(utc(WallTime(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc(WallTime(951_782_400_000_000)), "2000-02-29T00:00:00.000000Z");
        assert_eq!(utc(WallTime(4_107_542_399_999_999)), "2100-02-28T23:59:59.999999Z");
        assert_eq!(utc(WallTime(4_107_542_400_000_000)), "2100-03-01T00:00:00.000000Z");
    }
}
