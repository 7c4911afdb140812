//! Dates and times of RFC 3339, as microseconds since 1970 in UTC. A full date, a full time and an offset, nothing left out.

use crate::types::WallTime;

const DAY_S: i64 = 24 * 60 * 60;
const SECOND_US: i64 = 1_000_000;

/// 9999-12-31T23:59:59.999999Z: RFC 3339 has four digits for a year.
const LAST_US: u64 = 253_402_300_799_999_999;

/// Returns `None` for a text that does not have exactly this form or does not name a day. A leap second counts as the second
/// after it. Digits beyond microseconds are cut off.
pub fn micros(text: &str) -> Option<i64> {
    let (date, time) = text.split_at_checked(10)?;
    let time = time.strip_prefix(['T', 't'])?;
    let (clock, rest) = time.split_at_checked(8)?;
    let (fraction, offset) = fraction(rest)?;
    let seconds = day(date)? * DAY_S + second_of_day(clock)? - offset_s(offset)?;
    Some(seconds * SECOND_US + fraction)
}

/// A moment as `2026-11-30T18:00:00.5Z`, with as many decimals as needed. A later moment than this form can express is shown as the last
/// one: a node whose clock is wrong writes nothing that others cannot read.
pub fn text(moment: WallTime) -> String {
    let moment = moment.0.min(LAST_US);
    let (seconds, micros) = (moment / 1_000_000, moment % 1_000_000);
    let (days, second) = (seconds / DAY_S as u64, seconds % DAY_S as u64);
    let (year, month, day) = date_of(i64::try_from(days).unwrap_or(i64::MAX));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let decimals = format!(".{micros:06}");
    let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{decimals}Z")
}

/// Year, month and day of a number of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    // The estimate is never too late. Up to the year 2400 it is too early by at most one year.
    let mut year = 1970 + days / 366;
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12).rev().find(|month| days_before(year, *month) <= days).unwrap_or(1);
    (year, month, days - days_before(year, month) + 1)
}

/// Days since 1970 of `YYYY-MM-DD`.
fn day(date: &str) -> Option<i64> {
    let [year, month, day] = numbers(date, '-')?;
    let year = year.filter_len(4)?;
    let (month, day) = (month.filter_len(2)?, day.filter_len(2)?);
    let valid = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    valid.then(|| days_before(year, month) + day - 1)
}

fn second_of_day(clock: &str) -> Option<i64> {
    let [hour, minute, second] = numbers(clock, ':')?;
    let (hour, minute, second) = (hour.filter_len(2)?, minute.filter_len(2)?, second.filter_len(2)?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// `.123456789` in microseconds, and the rest of the text.
fn fraction(rest: &str) -> Option<(i64, &str)> {
    let Some(digits) = rest.strip_prefix('.') else {
        return Some((0, rest));
    };
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let (digits, offset) = digits.split_at(end);
    let micros = digits.bytes().chain([b'0'; 6]).take(6);
    let micros = micros.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (end > 0).then_some((micros, offset))
}

fn offset_s(offset: &str) -> Option<i64> {
    if matches!(offset, "Z" | "z") {
        return Some(0);
    }
    let (sign, offset) = match offset.strip_prefix('+') {
        Some(offset) => (1, offset),
        None => (-1, offset.strip_prefix('-')?),
    };
    let (hour, minute) = offset.split_once(':')?;
    let (hour, minute) = (Digits(hour).filter_len(2)?, Digits(minute).filter_len(2)?);
    (hour < 24 && minute < 60).then_some(sign * (hour * 3600 + minute * 60))
}

#[derive(Clone, Copy)]
struct Digits<'a>(&'a str);

impl Digits<'_> {
    /// The number, if it has exactly this many digits.
    fn filter_len(self, len: usize) -> Option<i64> {
        let sound = self.0.len() == len && self.0.bytes().all(|byte| byte.is_ascii_digit());
        if sound { self.0.parse().ok() } else { None }
    }
}

fn numbers(text: &str, between: char) -> Option<[Digits<'_>; 3]> {
    let mut parts = text.split(between).map(Digits);
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of this month.
fn days_before(year: i64, month: i64) -> i64 {
    // Counted from the first day of the year 1.
    const DAYS_TO_1970: i64 = 719_162;
    let whole = year - 1;
    // Year 0 has a year before it: division must round down.
    let leap_days = whole.div_euclid(4) - whole.div_euclid(100) + whole.div_euclid(400);
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    whole * 365 + leap_days + months - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        let known = [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.5z", -500_000),
            ("2000-02-29t12:00:00.000001Z", 951_825_600_000_001),
            ("2026-11-30T18:00:00+01:30", 1_796_056_200_000_000),
            ("2026-11-30T18:00:00-00:00", 1_796_061_600_000_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
            ("9999-12-31T23:59:59.9999999Z", 253_402_300_799_999_999),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
        ];
        for (text, expected) in known {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_moment_is_written_as_it_is_read() {
        let known = [
            (0, "1970-01-01T00:00:00Z"),
            (951_825_600_000_001, "2000-02-29T12:00:00.000001Z"),
            (1_796_061_600_500_000, "2026-11-30T18:00:00.5Z"),
            (LAST_US, "9999-12-31T23:59:59.999999Z"),
        ];
        for (moment, expected) in known {
            assert_eq!(text(WallTime(moment)), expected);
            assert_eq!(micros(expected), i64::try_from(moment).ok());
        }
        assert_eq!(text(WallTime(u64::MAX)), text(WallTime(LAST_US)));
    }

    #[test]
    fn nothing_but_the_full_form() {
        let wrong = [
            "",
            "2026-11-30",
            "2026-11-30T18:00:00",
            "2026-11-30 18:00:00Z",
            "2026-11-30T18:00Z",
            "2026-11-30T18:00:00.Z",
            "2026-11-30T18:00:00.1",
            "2026-11-30T18:00:00,1Z",
            "2026-11-30T18:00:00+01",
            "2026-11-30T18:00:00+0100",
            "2026-11-30T18:00:00+24:00",
            "2026-11-30T24:00:00Z",
            "2026-11-30T18:60:00Z",
            "2026-11-30T18:00:61Z",
            "2026-11-31T18:00:00Z",
            "2026-02-29T18:00:00Z",
            "1900-02-29T18:00:00Z",
            "2026-13-01T18:00:00Z",
            "2026-00-01T18:00:00Z",
            "2026-01-00T18:00:00Z",
            "26-11-30T18:00:00Z",
            "+026-11-30T18:00:00Z",
            "2026-11-30T18:00:00ZZ",
            " 2026-11-30T18:00:00Z",
            "2026-11-3éT18:00:00Z",
            "２０２６-11-30T18:00:00Z",
        ];
        for text in wrong {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn days_follow_each_other() {
        let mut expected = days_before(1600, 1);
        for year in 1600..2401 {
            for month in 1..=12 {
                assert_eq!(days_before(year, month), expected);
                expected += days_in(year, month);
            }
        }
    }
}
