//! The contents of a certificate, for people and scripts.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use eldest_tls::{Facts, certificates};
use serde_json::{Value, json};

use crate::cli::exit::Failure;
use crate::cli::output::Output;
use crate::cli::table::Table;

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

pub fn show(file: &Path, output: &Output) -> Result<(), Failure> {
    let read = certificates(file).map_err(|error| Failure::Certificate { why: error.to_string() })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let all: Option<Vec<Facts>> = read.iter().map(|der| Facts::read(der)).collect();
    let all = all.ok_or_else(|| Failure::Certificate {
        why: format!("{} does not contain a valid certificate", file.display()),
    })?;
    let items = all.iter().map(|facts| json(facts, now)).collect();
    let tables =
        |_: &[Value]| all.iter().map(|facts| table(facts, now).to_string()).collect::<Vec<_>>().join("\n");
    output.list(items, tables)
}

/// The times are RFC 3339. An expired certificate has a negative number of days left.
fn json(facts: &Facts, now: i64) -> Value {
    json!({
        "subject": facts.subject,
        "issuer": facts.issuer,
        "serial": facts.serial,
        "names": facts.names(),
        "not_before": moment(facts.not_before),
        "not_after": moment(facts.not_after),
        "days_left": facts.days_left(now),
        "expired": facts.not_after < now,
    })
}

fn moment(seconds: i64) -> String {
    let of_day = seconds.rem_euclid(SECONDS_A_DAY);
    format!("{}T{:02}:{:02}:{:02}Z", day(seconds), of_day / 3_600, of_day / 60 % 60, of_day % 60)
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

    #[test]
    fn scripts_read_the_same() {
        let facts = Facts { subject: "x".to_string(), not_after: 1_582_934_400 + 3_661, ..Facts::default() };
        let expected = json!({"subject": "x", "issuer": "", "serial": "", "names": [],
            "not_before": "1970-01-01T00:00:00Z", "not_after": "2020-02-29T01:01:01Z", "days_left": 1, "expired": false});
        assert_eq!(json(&facts, 1_582_934_400 - 86_400), expected);
        let late = json(&facts, 1_582_934_400 + 3_662);
        assert_eq!((&late["days_left"], &late["expired"]), (&json!(-1), &json!(true)));
    }
}
