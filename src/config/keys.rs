//! The check of one layer by itself: its keys must be known, and its values must have the types of the defaults.
//!
//! Values that pass are safe to merge. Other values are taken out and reported, so that a mistake in a lower layer is
//! found even if a higher layer overrules it.

use serde_json::Value as Json;

use super::mistakes::Findings;
use super::raw::RawTable;
use super::suggest::closest;
use super::wrong::{described, named};
use super::{Source, Want, WrongKey, WrongValue};

/// Keys whose values are never shown in messages.
const SECRETS: [&str; 2] = ["cluster_secret", "admin_token"];

/// The entries of `values` that `known` has too, with the same types. The others are reported.
pub fn sift(values: RawTable, known: &RawTable, source: &Source, findings: &mut Findings) -> RawTable {
    Sieve { known, source, findings }.table(values, known, "")
}

/// All keys below a table. Keys of inner tables have their path.
pub fn paths(known: &RawTable) -> Vec<String> {
    let mut paths = Vec::new();
    for (key, value) in known {
        match value {
            Json::Object(inner) => paths.extend(paths_below(key, inner)),
            _ => paths.push(key.clone()),
        }
    }
    paths
}

fn paths_below(key: &str, inner: &RawTable) -> Vec<String> {
    paths(inner).into_iter().map(|path| format!("{key}.{path}")).collect()
}

/// The value at a path.
pub fn at<'a>(table: &'a RawTable, path: &str) -> Option<&'a Json> {
    match path.split_once('.') {
        None => table.get(path),
        Some((inner, rest)) => at(table.get(inner)?.as_object()?, rest),
    }
}

/// The type that a value must have in the place of this default.
pub fn want(default: &Json) -> Want {
    match default {
        Json::Bool(_) => Want::YesNo,
        Json::Number(_) => Want::Whole,
        Json::Object(_) => Want::Table,
        Json::String(_) | Json::Null | Json::Array(_) => Want::Text,
    }
}

pub fn shown(path: &str, value: &Json) -> String {
    if SECRETS.contains(&path) { "this value".to_string() } else { described(value) }
}

struct Sieve<'a> {
    /// The whole table of known keys, whichever table is being checked.
    known: &'a RawTable,
    source: &'a Source,
    findings: &'a mut Findings,
}

impl Sieve<'_> {
    fn table(&mut self, values: RawTable, known: &RawTable, prefix: &str) -> RawTable {
        let mut good = RawTable::new();
        for (key, value) in values {
            let path = format!("{prefix}{key}");
            match known.get(&key) {
                None => self.unknown(&key, known, prefix),
                Some(default) => {
                    if let Some(value) = self.value(value, default, &path) {
                        good.insert(key, value);
                    }
                }
            }
        }
        good
    }

    fn value(&mut self, value: Json, default: &Json, path: &str) -> Option<Json> {
        match (default, value) {
            (Json::Object(known), Json::Object(inner)) => {
                Some(Json::Object(self.table(inner, known, &format!("{path}."))))
            }
            (Json::String(_), value @ Json::String(_)) | (Json::Bool(_), value @ Json::Bool(_)) => {
                Some(value)
            }
            (Json::Number(_), value) if value.is_u64() => Some(value),
            (default, value) => {
                let wrong = WrongValue::Type { found: shown(path, &value), want: want(default) };
                self.findings.spoil(self.source.clone().at(path), wrong);
                None
            }
        }
    }

    fn unknown(&mut self, key: &str, known: &RawTable, prefix: &str) {
        let beside = closest(key, known.keys().map(String::as_str));
        let close = beside.map(str::to_string).or_else(|| self.elsewhere(key));
        if let Some(close) = &close {
            let meant = if beside.is_some() { format!("{prefix}{close}") } else { close.clone() };
            self.findings.spoil_meant(self.source, &meant);
        }
        let known = known.keys().cloned().collect();
        let place = self.source.clone().at(format!("{prefix}{}", named(key)));
        self.findings.mistake(place, WrongKey::Unknown { close, known });
    }

    /// The right path of a key that is in the wrong table.
    fn elsewhere(&self, key: &str) -> Option<String> {
        let ends = |path: &String| path.rsplit('.').next() == Some(key);
        paths(self.known).into_iter().find(ends)
    }
}
