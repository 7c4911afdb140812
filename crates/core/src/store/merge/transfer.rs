//! The difference between a state and a vector that another state is known to include. Sides transfer differences to each other
//! (P33, P34).
//!
//! A difference is a state with few entries. It has the entries that the other side's vector does not cover, all tombstones and
//! rivals, and for every key with rivals the current value, too. So the versions of a key in a difference are complete. A key
//! that is not in the difference is unchanged for the other side.
//!
//! The text form starts with a line `part` or `whole`, then has one line per entry, `table "key" value`, as in snapshots:
//!
//! ```text
//! part
//! doc "conf/a" {"at":"7.2@12","value":1}
//! side "bounds" {"settled":"7.1@4","untold":"0.0@0","calls_us":0,"calls_at":"0.0@0"}
//! tomb "doc:conf/b" {"at":"7.2@13","deleted":true}
//! ```
//!
//! The reader checks all of it: each entry passes the checks of a snapshot's entries.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::store::command::Unreadable;
use crate::store::encoding::write_text;
use crate::store::state::{Loader, Store};
use crate::store::tables::{Key, MergeMetadata, SIDE};
use crate::types::Vector;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The difference is the whole state: an entry that is not in it does not exist.
    pub(in crate::store) whole: bool,
    pub(in crate::store) part: Store,
}

impl Difference {
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Its entries, in the form and order of a snapshot.
    pub fn entries(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        self.part.entries()
    }

    /// A loader for such entries.
    pub fn loader() -> Loader {
        Loader::mergeable(Vector::default())
    }

    /// The difference of the loaded entries. Without its bounds it would be unknown what it leaves out.
    pub fn loaded(whole: bool, loader: Loader) -> Result<Difference, Unreadable> {
        match loader.has_bounds {
            true => Ok(Difference { whole, part: loader.finish_part() }),
            false => Err(Unreadable::Entry { table: "side", key: SIDE.to_string() }),
        }
    }

    /// Whether a state that includes `vector` can contain every entry of this difference.
    pub fn is_within(&self, vector: &Vector) -> bool {
        self.part.keys().all(|key| self.part.versions(&key).iter().all(|version| vector.covers(version.at)))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        let of_merging = |merging: &Arc<MergeMetadata>| {
            merging.tombstones.len() + merging.rivals.len() + merging.conflicts.len()
        };
        self.part.len() + self.part.merging.as_ref().map_or(0, of_merging)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// The entries that a state with the vector `base` lacks. Returns `None` if they cannot be determined: in safe mode, or if
    /// a part of the merge metadata was dropped that the difference needs.
    pub fn difference(&self, base: &Vector) -> Option<Difference> {
        let merging = self.merging.as_ref().filter(|merging| merging.can_compute_difference(base))?;
        let mut part = Store::mergeable();
        part.merging = Some(merging.for_difference().into());
        part.last_token = self.last_token;
        part.history = self.history;
        for key in merging.beyond(base).into_iter().chain(merging.contested()) {
            self.copy_row(&key, &mut part);
        }
        part.rebuild_index();
        Some(Difference { whole: false, part })
    }

    /// The whole state as a difference.
    pub fn whole(&self) -> Difference {
        let merging = self.merging.clone().unwrap_or_default();
        let (applied, stamp) = Default::default();
        Difference {
            whole: true,
            part: Store { applied, stamp, staged: None, merging: Some(merging), ..self.clone() },
        }
    }

    /// A key without a row is in the difference by its tombstone.
    fn copy_row(&self, key: &Key, part: &mut Store) {
        if let Key::Call(key) = key {
            if let Some(call) = self.idempotency_keys.get(*key) {
                part.idempotency_keys.add(*key, call.clone());
            }
        } else if let Some(row) = self.row(key) {
            part.put_row(key, &row);
        }
    }
}

/// The size limit of a line, in bytes: a journal entry has two values, and names.
const LINE_MOST: usize = 4 << 20;

const PART: &str = "part";
const WHOLE: &str = "whole";

impl Difference {
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        writeln!(out, "{}", if self.whole { WHOLE } else { PART })?;
        for (key, value) in self.part.entries() {
            write_entry(out, &key, &value)?;
        }
        Ok(())
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a String cannot fail");
        text
    }

    pub fn from_text(text: &str) -> Result<Difference, Unreadable> {
        let mut lines = text.split_inclusive('\n').zip(1..);
        let whole = match lines.next() {
            Some(("part\n", _)) => false,
            Some(("whole\n", _)) => true,
            _ => return Err(Unreadable::Line(1)),
        };
        let mut loader = Loader::mergeable(Vector::default());
        for (line, number) in lines {
            let line = Some(line).filter(|line| line.len() <= LINE_MOST).ok_or(Unreadable::Line(number))?;
            let text = line.strip_suffix('\n').ok_or(Unreadable::Line(number))?;
            let (table, key, value) = entry_in(text).ok_or(Unreadable::Line(number))?;
            loader.add(table, &key, value)?;
        }
        Difference::loaded(whole, loader)
    }
}

/// Writes an entry as a line.
pub fn write_entry(out: &mut dyn Write, key: &Key, value: &str) -> fmt::Result {
    write!(out, "{} ", key.table())?;
    write_text(out, &key.name())?;
    writeln!(out, " {value}")
}

/// Table, key and value of a line without its line end.
pub fn entry_in(line: &str) -> Option<(&str, String, &str)> {
    let (table, rest) = line.split_once(' ')?;
    let mut keys = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let key = keys.next()?.ok()?;
    let value = rest.get(keys.byte_offset()..)?.strip_prefix(' ')?;
    let plain = rest.starts_with('"') && !value.starts_with(' ') && !value.contains(char::is_control);
    plain.then_some((table, key, value))
}
