//! A value that is typed: JSON itself, `@FILE` for the content of a file, or `-` for standard input.

use std::fs::read_to_string;

use serde_json::json;
use serde_json::value::RawValue;

use super::exit::Failure;

#[derive(Clone, Debug, clap::Args)]
pub struct ValueArgs {
    /// JSON; @FILE reads a file, - reads standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
    /// Take the value as text, whatever it looks like; @FILE and - are read all the same
    #[arg(long)]
    text: bool,
}

impl ValueArgs {
    /// The value as JSON, with all its digits.
    pub fn read(&self) -> Result<String, Failure> {
        value_of(&self.value, self.text)
    }
}

fn value_of(given: &str, is_text: bool) -> Result<String, Failure> {
    let (text, from) = match given.strip_prefix('@') {
        Some(path) => (read_to_string(path).map_err(Failure::file(path))?, Some(path)),
        None if given == "-" => {
            (std::io::read_to_string(std::io::stdin()).map_err(Failure::file("standard input"))?, None)
        }
        None => (given.to_string(), None),
    };
    if is_text {
        return Ok(json!(text).to_string());
    }
    match serde_json::from_str::<&RawValue>(&text) {
        Ok(value) => Ok(value.get().to_string()),
        Err(error) => Err(Failure::NotJson { what: not_json(&text, from, &error) }),
    }
}

fn not_json(text: &str, from: Option<&str>, error: &serde_json::Error) -> String {
    let is_word = !text.is_empty() && !text.starts_with(['{', '[', '"']);
    // The shell removes quotes that are not themselves quoted.
    let lost_quotes = text.starts_with(['{', '[']) && !text.contains('"');
    match from {
        Some(path) => format!("{path} is not valid JSON: {error}; add --text to take it as text"),
        None if is_word => {
            format!(
                "{text} is not valid JSON; to store text, quote it, as in '{}', or add --text",
                json!(text)
            )
        }
        None if lost_quotes => {
            format!("the value is not valid JSON: {error}; quote it for the shell, as in '{{\"a\": 1}}'")
        }
        None => format!("the value is not valid JSON: {error}"),
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    fn told(given: &str) -> String {
        value_of(given, false).expect_err(given).to_string()
    }

    #[test]
    fn a_value_keeps_its_digits_and_text_becomes_a_string() {
        assert_eq!(value_of(" 1.50 ", false).ok().as_deref(), Some("1.50"));
        assert_eq!(value_of("1.50", true).ok().as_deref(), Some("\"1.50\""));
    }

    #[test]
    fn a_mistake_is_told_with_what_to_type() {
        assert_eq!(
            told("hello"),
            "hello is not valid JSON; to store text, quote it, as in '\"hello\"', or add --text"
        );
        assert!(told("{a: 1}").ends_with("quote it for the shell, as in '{\"a\": 1}'"), "{}", told("{a: 1}"));
        let comma = told("{\"a\": 1,}");
        assert!(!comma.contains("shell"), "the quotes are there: {comma}");
        assert!(told("@/no/such/file").starts_with("/no/such/file: "));
    }
}
