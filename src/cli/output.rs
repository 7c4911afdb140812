//! The output of an answer: as text for people, or as the cluster's answer in the form that a script reads.

use clap::{ArgMatches, ValueEnum};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::exit::Failure;
use super::out::print;
use super::yaml::yaml;
use crate::client::lenient;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Output {
    /// Format of the output: table for people; JSON, one JSON value a line, or YAML for scripts, which get a
    /// failure as one JSON object on stderr
    #[arg(
        long,
        short,
        value_enum,
        default_value = "table",
        hide_possible_values = true,
        value_name = "table|json|jsonl|yaml"
    )]
    output: Form,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    #[default]
    Table,
    Json,
    Jsonl,
    Yaml,
}

impl Output {
    /// Prints one thing. `text` makes the text for people.
    pub fn show(&self, said: &Value, text: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
        match self.form() {
            Form::Table => print(&text(said)),
            Form::Json | Form::Jsonl => print(&said.to_string()),
            Form::Yaml => print(&yaml(said)),
        }
    }

    /// Prints a list. `table` makes the table for people.
    pub fn list(&self, items: Vec<Value>, table: impl FnOnce(&[Value]) -> String) -> Result<(), Failure> {
        match self.form() {
            Form::Table => print(&table(&items)),
            Form::Jsonl if items.is_empty() => Ok(()),
            Form::Jsonl => print(&items.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")),
            Form::Json | Form::Yaml => self.show(&json!({ "items": items }), Value::to_string),
        }
    }

    /// Prints documents unchanged to the last digit, even if a reader could not represent a value.
    pub fn texts(
        &self,
        items: &[Box<RawValue>],
        table: impl FnOnce(&[Box<RawValue>]) -> String,
    ) -> Result<(), Failure> {
        let joined = |by: &str| items.iter().map(|item| item.get()).collect::<Vec<_>>().join(by);
        match self.form() {
            Form::Table => print(&table(items)),
            Form::Jsonl if items.is_empty() => Ok(()),
            Form::Jsonl => print(&joined("\n")),
            Form::Json => print(&format!("{{\"items\":[{}]}}", joined(","))),
            Form::Yaml => {
                self.list(items.iter().filter_map(|item| lenient(item.get())).collect(), |_| String::new())
            }
        }
    }

    /// Prints one JSON value, for people too. All forms but YAML keep each digit.
    pub fn text(&self, item: &RawValue) -> Result<(), Failure> {
        match self.form() {
            Form::Table | Form::Json | Form::Jsonl => print(item.get()),
            Form::Yaml => print(&yaml(&lenient(item.get()).unwrap_or_default())),
        }
    }

    /// Prints what was done. For people this is one sentence.
    pub fn done(&self, said: &Value, sentence: impl FnOnce() -> String) -> Result<(), Failure> {
        self.show(said, |_| sentence())
    }

    /// Prints one of several things that come one after the other. A document of YAML begins with `---`.
    pub fn next(&self, said: &Value, text: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
        match self.form() {
            Form::Yaml => print(&format!("---\n{}", yaml(said))),
            _ => self.show(said, text),
        }
    }

    pub fn is_for_scripts(&self) -> bool {
        self.form() != Form::Table
    }

    fn form(&self) -> Form {
        if self.json { Form::Json } else { self.output }
    }
}

/// Whether the output of this subcommand, or of one below it, is for scripts.
pub fn is_for_scripts(matches: &ArgMatches) -> bool {
    let json = matches.try_get_one::<bool>("json").ok().flatten().is_some_and(|json| *json);
    let form = matches.try_get_one::<Form>("output").ok().flatten();
    let here = json || form.is_some_and(|form| *form != Form::Table);
    here || matches.subcommand().is_some_and(|(_, matches)| is_for_scripts(matches))
}

/// The same question for arguments that could not be parsed.
pub fn are_for_scripts(words: &[String]) -> bool {
    let is_form = |form: &str| Form::from_str(form, false).is_ok_and(|form| form != Form::Table);
    words.iter().enumerate().any(|(place, word)| match word.as_str() {
        "--json" => true,
        "--output" | "-o" => words.get(place + 1).is_some_and(|form| is_form(form)),
        word => word.strip_prefix("--output=").or(word.strip_prefix("-o")).is_some_and(is_form),
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        output: Output,
    }

    #[test]
    fn scripts_are_told_from_people() {
        for (line, expected) in [
            ("x", false),
            ("x --output table", false),
            ("x --json", true),
            ("x --output json", true),
            ("x -o yaml", true),
            ("x -ojsonl", true),
            ("x --output=yaml", true),
        ] {
            let matches = Typed::command().try_get_matches_from(line.split(' ')).expect(line);
            assert_eq!(is_for_scripts(&matches), expected, "{line}");
            let words: Vec<String> = line.split(' ').map(str::to_string).collect();
            assert_eq!(are_for_scripts(&words), expected, "{line}");
        }
        assert!(Typed::try_parse_from(["x", "--json", "-o", "yaml"]).is_err());
        assert!(!are_for_scripts(&["x".to_string(), "-o".to_string()]));
    }
}
