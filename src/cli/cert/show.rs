//! The contents of a certificate, for people.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use eldest_tls::{Facts, certificates};

use crate::cli::exit::Failure;
use crate::cli::out::print;
use crate::cli::table::Table;

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

pub fn show(file: &Path) -> Result<(), Failure> {
    let read = certificates(file).map_err(|error| Failure::Certificate { why: error.to_string() })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let shown: Option<Vec<String>> =
        read.iter().map(|der| Facts::read(der).map(|facts| table(&facts, now).to_string())).collect();
    let shown = shown.ok_or_else(|| Failure::Certificate {
        why: format!("{} does not contain a valid certificate", file.display()),
    })?;
    print(&shown.join("\n"))
}

fn table(facts: &Facts, now: i64) -> Table {
    let mut table = Table::default();
    let mut fact = |name: &str, value: String| table.row([name.to_string(), value]);
    fact("subject", facts.subject.clone());
    fact("issuer", facts.issuer.clone());
    fact("serial", facts.serial.clone());
    fact("names", if facts.names().is_empty() { "none".to_string() } else { facts.names().join(", ") });
    fact("from", day(facts.not_before));
    fact("until", day(facts.not_after));
    let left = facts.days_left(now);
    fact("days left", if facts.not_after < now { "0: expired".to_string() } else { left.to_string() });
    table
}

fn day(seconds: i64) -> String {
    let (year, month, day) = date(seconds.div_euclid(SECONDS_A_DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The year, month and day of a day counted since 1970. Years begin in March here, so that a leap day is the last day
/// of its year.
pub fn date(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let in_era = days.rem_euclid(146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, u8::try_from(month).unwrap_or(1), u8::try_from(day).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        let dates = [0, 59, 11_016, 18_321, 29_645].map(date);
        assert_eq!(dates, [(1970, 1, 1), (1970, 3, 1), (2000, 2, 29), (2020, 2, 29), (2051, 3, 2)]);
    }

    #[test]
    fn what_has_ended_says_so() {
        let facts = Facts { subject: "x".to_string(), not_after: 1_582_934_400, ..Facts::default() };
        let shown = table(&facts, 1_582_934_400 - 86_400).to_string();
        assert!(shown.contains("2020-02-29") && shown.contains("days left"), "{shown}");
        assert!(table(&facts, 1_582_934_401).to_string().contains("0: expired"));
    }
}
