//! The layer of the environment: `ELDEST_TIMING__LEASE_MS=500` sets `timing.lease_ms`.
//!
//! A variable is text. The type of its key decides how the text is read, so a secret that consists of digits stays a
//! text. Orchestrators set other variables that begin with the name of a service (`ELDEST_SERVICE_HOST`,
//! `ELDEST_PORT_9000_TCP`), so a variable that resembles no key is ignored with a remark.

use serde_json::Value as Json;

use super::keys;
use super::mistakes::Findings;
use super::place::{ChosenNode, INSIDE, PREFIX, Source, variable};
use super::raw::{Raw, RawTable};
use super::suggest::closest;
use super::wrong::{named, quoted};
use super::{ConfigRemark, Want, WrongKey, WrongValue};

const NODE: &str = "node";

/// Variables that the command line reads from the environment by itself.
const OF_THE_COMMAND_LINE: [&str; 2] = ["topology", "config"];

#[derive(Debug, Default)]
pub struct Environment {
    /// The values of known keys that have the right types.
    pub values: RawTable,
    node: Option<u64>,
}

impl Environment {
    pub fn read(env: impl IntoIterator<Item = (String, String)>, findings: &mut Findings) -> Environment {
        let known = Raw::default().table();
        let mut ours: Vec<(String, String)> = env.into_iter().filter_map(own).collect();
        // A process environment has no order, and reports should have one.
        ours.sort();
        let mut environment = Environment::default();
        let mut ignored = Vec::new();
        for (position, (path, text)) in ours.iter().enumerate() {
            if position > 0 && ours[position - 1].0 == *path {
                findings.spoil(Source::Environment.at(named(path)), WrongKey::Twice);
            } else if !environment.take(path, text, &known, findings) {
                ignored.push(variable(&named(path)));
            }
        }
        if !ignored.is_empty() {
            findings.remark(ConfigRemark::IgnoredVariables { names: ignored });
        }
        environment
    }

    pub fn chosen_node(&self) -> Option<ChosenNode> {
        self.node.map(|id| ChosenNode { id, source: Source::Environment })
    }

    /// Takes one variable. Returns `false` if it is not one of this program's variables.
    fn take(&mut self, path: &str, text: &str, known: &RawTable, findings: &mut Findings) -> bool {
        if path == NODE {
            self.node = value(path, text, &Json::from(0), findings).and_then(|value| value.as_u64());
        } else if let Some(default) = keys::at(known, path).filter(|default| !default.is_object()) {
            if let Some(value) = value(path, text, default, findings) {
                insert(&mut self.values, path, value);
            }
        } else if !OF_THE_COMMAND_LINE.contains(&path) {
            return unknown(path, known, findings);
        }
        true
    }
}

/// The key and the text of a variable that begins with the prefix.
fn own((name, text): (String, String)) -> Option<(String, String)> {
    let (prefix, path) = name.split_at_checked(PREFIX.len())?;
    // The case of the name does not matter: otherwise a name in lower case would be ignored silently.
    let is_ours = prefix.eq_ignore_ascii_case(PREFIX);
    is_ours.then(|| (path.to_lowercase().replace(INSIDE, "."), text))
}

fn insert(values: &mut RawTable, path: &str, value: Json) {
    match path.split_once('.') {
        None => {
            values.insert(path.to_string(), value);
        }
        Some((table, rest)) => {
            let inner = values.entry(table).or_insert_with(|| Json::Object(RawTable::new()));
            if let Json::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The text as a value of the default's type.
fn value(path: &str, text: &str, default: &Json, findings: &mut Findings) -> Option<Json> {
    let want = keys::want(default);
    let value = match want {
        Want::Whole => text.trim().parse::<u64>().ok().map(Json::from),
        Want::YesNo => text.trim().parse::<bool>().ok().map(Json::from),
        _ => Some(Json::from(text)),
    };
    if value.is_none() {
        let wrong = WrongValue::Type { found: quoted(text), want };
        findings.spoil(Source::Environment.at(path), wrong);
    }
    value
}

fn unknown(path: &str, known: &RawTable, findings: &mut Findings) -> bool {
    let paths = keys::paths(known);
    let close = closest(path, paths.iter().map(String::as_str));
    if close.is_none() && !path.contains('.') {
        return false;
    }
    if let Some(close) = close {
        findings.spoil_meant(&Source::Environment, close);
    }
    let known = paths.iter().map(|path| variable(path)).collect();
    let wrong = WrongKey::Unknown { close: close.map(variable), known };
    findings.mistake(Source::Environment.at(named(path)), wrong);
    true
}
