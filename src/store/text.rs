//! A difference as text: `part` or `whole`, then a line an entry, `table "key" value`, as snapshots have them.
//!
//! ```text
//! part
//! doc "conf/a" {"at":"7.2@12","value":1}
//! side "bounds" {"settled":"7.1@4","untold":"0.0@0","calls_us":0,"calls_at":"0.0@0"}
//! tomb "doc:conf/b" {"at":"7.2@13","deleted":true}
//! ```
//!
//! Read back, it is believed in nothing: each entry passes the checks of a snapshot's.

use std::fmt::{self, Write};

use super::difference::Difference;
use super::json::write_text;
use super::key::Key;
use super::load::Loader;
use super::parse::Unreadable;
use crate::types::Vector;

/// The longest line, in bytes: an entry of the journal has two values, and names.
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
        self.write(&mut text).expect("a string takes everything");
        text
    }

    pub fn from_text(text: &str) -> Result<Difference, Unreadable> {
        let mut lines = text.split_inclusive('\n').zip(1..);
        let whole = match lines.next() {
            Some(("part\n", _)) => false,
            Some(("whole\n", _)) => true,
            _ => return Err(Unreadable::Line(1)),
        };
        let mut loader = Loader::with_sides(Vector::default());
        for (line, number) in lines {
            let line = Some(line).filter(|line| line.len() <= LINE_MOST).ok_or(Unreadable::Line(number))?;
            let text = line.strip_suffix('\n').ok_or(Unreadable::Line(number))?;
            let (table, key, value) = entry_in(text).ok_or(Unreadable::Line(number))?;
            loader.add(table, &key, value)?;
        }
        Difference::loaded(whole, loader)
    }
}

/// An entry as a line of its own.
pub fn write_entry(out: &mut dyn Write, key: &Key, value: &str) -> fmt::Result {
    write!(out, "{} ", key.table())?;
    write_text(out, &key.name())?;
    writeln!(out, " {value}")
}

/// Table, key and value of a line, without its end.
pub fn entry_in(line: &str) -> Option<(&str, String, &str)> {
    let (table, rest) = line.split_once(' ')?;
    let mut keys = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let key = keys.next()?.ok()?;
    let value = rest.get(keys.byte_offset()..)?.strip_prefix(' ')?;
    let plain = rest.starts_with('"') && !value.starts_with(' ') && !value.contains(char::is_control);
    plain.then_some((table, key, value))
}
