//! Checks that every JSON reader in our clients' languages can hold a value. RFC 8259 allows more: a number that is infinite as
//! a double, or half of a surrogate pair. Readers fail on such a value, or read something else.
//!
//! The check applies only to input from clients. Entries of a log, a snapshot or a backup were accepted by the rules of their
//! time, and every node must read them alike.

use serde_json::value::RawValue;

use super::fields::{BadField, Fields, Problem, printable};
use super::json::string_end;
use super::limits::NUMBER_MOST;

/// A number with at most this many digits and no exponent is below the greatest double, which has 309.
const SURELY_FINITE: usize = 300;

/// A name that serde_json reserves. If an object begins with it, serde_json fails unless the value is what it expects.
const RESERVED_BY_SERDE_JSON: &str = "$serde_json::private::";

/// Whether all of it can be read: each number, each string and each name, at any depth.
pub fn check_readable(json: &RawValue) -> Result<(), Problem> {
    let (json, mut at) = (json.get(), 0);
    let bytes = json.as_bytes();
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at, &mut false);
                check_string(&json[at..end], is_name(&bytes[end..]))?;
                end
            }
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                check_number(&json[at..end])?;
                end
            }
            _ => at + 1,
        };
        at = end;
    }
    Ok(())
}

impl<'a> Fields<'a> {
    /// The members of an object that a client has sent.
    pub fn of_client(object: &'a RawValue) -> Result<Fields<'a>, BadField> {
        let fields = Fields::read(object)?;
        for (name, value) in &fields.members {
            check_name(name).map_err(|problem| BadField::new("", problem))?;
            check_readable(value).map_err(|problem| BadField::new(printable(name), problem))?;
        }
        Ok(fields)
    }
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    at + bytes[at..].iter().take_while(|byte| is_of_number(byte)).count()
}

fn check_number(number: &str) -> Result<(), Problem> {
    if number.len() > NUMBER_MOST {
        return Err(Problem::NumberTooLong { most: NUMBER_MOST });
    }
    if number.len() <= SURELY_FINITE && !number.contains(['e', 'E']) {
        return Ok(());
    }
    // Just below the greatest double, readers round differently, so both parsers must find the number finite.
    let is_finite =
        number.parse::<f64>().is_ok_and(f64::is_finite) && serde_json::from_str::<f64>(number).is_ok();
    if is_finite { Ok(()) } else { Err(Problem::NumberTooLarge) }
}

/// The grammar has already been checked, so a string that cannot be read has an escape of half a surrogate pair.
fn check_string(quoted: &str, is_name: bool) -> Result<(), Problem> {
    if quoted.contains('\\') {
        let text = serde_json::from_str::<String>(quoted).map_err(|_| Problem::LoneSurrogate)?;
        return if is_name { check_name(&text) } else { Ok(()) };
    }
    if is_name { check_name(&quoted[1..]) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), Problem> {
    match name.starts_with(RESERVED_BY_SERDE_JSON) {
        true => Err(Problem::NameOfReader),
        false => Ok(()),
    }
}

/// Whether a colon comes next.
fn is_name(rest: &[u8]) -> bool {
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(json: &str) -> Result<(), Problem> {
        check_readable(serde_json::from_str(json).expect("JSON"))
    }

    #[test]
    fn what_readers_can_hold_passes() {
        let digits = "9".repeat(308);
        let fraction = format!("0.{}", "3".repeat(NUMBER_MOST - 2));
        for json in [
            "[1, -0, 1.50, 9007199254740993, 18446744073709551616, 1e308, -1.7976931348623157E+308, 1e-400]",
            "1.000000000000000000001",
            &digits,
            &fraction,
            r#"["", "1e400", "\\ud800", "\ud83d\ude00", "\u0000 \u20ac \"\\", "\\\\\"1e400", "$serde_json::private::RawValue"]"#,
            r#"{"a" : {"$serde_json" : [1], "\ud83d\ude00": null}, "1e400":0}"#,
        ] {
            assert_eq!(checked(json), Ok(()), "{json}");
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
        }
    }

    #[test]
    fn what_a_reader_stops_at_is_refused() {
        let (long, longer) = ("9".repeat(400), "9".repeat(5000));
        let fraction = format!("0.{}", "3".repeat(NUMBER_MOST - 1));
        let (infinite, half) = (Problem::NumberTooLarge, Problem::LoneSurrogate);
        let too_long = Problem::NumberTooLong { most: NUMBER_MOST };
        for (json, problem) in [
            ("1e400", infinite),
            ("-1e400", infinite),
            ("1.8E+308", infinite),
            (&long, infinite),
            (&longer, too_long),
            (&fraction, too_long),
            (r#""\ud800""#, half),
            (r#""\uDC00""#, half),
            (r#""\ud800x""#, half),
            (r#""\ud800\u0041""#, half),
            (r#""\ud800\ud800\udc00""#, half),
            (r#""\udc00\ud800""#, half),
            (r#""\\\ud800""#, half),
            (r#"{"\ud800": 1}"#, half),
            (r#"{"$serde_json::private::RawValue": 1}"#, Problem::NameOfReader),
            (r#"{"\u0024serde_json::private::Number" : "1"}"#, Problem::NameOfReader),
        ] {
            for nested in [json.to_string(), format!("[\"1\", {{\"a\": [0,{json} ]}}]")] {
                assert_eq!(checked(&nested), Err(problem), "{nested}");
            }
        }
    }
}
