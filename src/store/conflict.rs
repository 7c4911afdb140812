//! The journal of merges: every value that was overridden while nobody had seen both, and what overrode it.
//!
//! An entry is a row like any other, written by the record or the merge at its position: it travels, it can be dropped, and
//! that leaves a tomb. Its name says which value it is about (`lost_id`), so that two merges which come to the same are one entry.

use std::fmt::{self, Write};

use serde_json::value::RawValue;

use super::date;
use super::fields::Fields;
use super::hash::{Hash, Mix};
use super::held::Held;
use super::json::{Json, write_text};
use super::key::{Key, ballot_parts, lost_parts, written};
use super::state::Store;
use super::table::Row;
use super::views::Page;
use crate::types::{Position, Text, WallTime};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where the merge stands that wrote this.
    pub at: Position,
    pub lost: Held,
    pub kept: Held,
    pub wall: WallTime,
}

/// An entry of the journal as readers are shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictView {
    pub id: Text,
    pub key: Key,
    pub conflict: Conflict,
}

impl Conflict {
    /// Without where it stands.
    pub fn value(&self) -> String {
        let mut text = String::from("{\"lost\":");
        let written = self.lost.write(&mut text).and_then(|()| text.write_str(",\"kept\":"));
        let written = written.and_then(|()| self.kept.write(&mut text));
        written
            .and_then(|()| write!(text, ",\"wall_us\":{}}}", self.wall.0))
            .expect("a string takes everything");
        text
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn read(at: Position, value: &str) -> Option<Conflict> {
        let value: &RawValue = serde_json::from_str(value).ok()?;
        let fields = Fields::read(value).ok()?;
        fields.only(&["lost", "kept", "wall_us"]).ok()?;
        let held = |name| Held::read(fields.member(name)?);
        let wall = fields.member("wall_us")?.get().parse().ok()?;
        Some(Conflict { at, lost: held("lost")?, kept: held("kept")?, wall: WallTime(wall) })
    }
}

impl Store {
    /// One entry of the journal.
    pub fn conflict(&self, id: &str) -> Option<ConflictView> {
        let conflict = self.sides.as_ref()?.conflicts.get(id)?;
        let (key, _) = lost_parts(id)?;
        Some(ConflictView { id: id.into(), key, conflict: conflict.clone() })
    }

    /// The journal in the order of its names, of which `prefix` takes a part: `doc:`, `doc:conf/`. Empty where sides are not
    /// told apart.
    pub fn conflicts(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<ConflictView> {
        let Some(sides) = &self.sides else {
            return Page { items: Vec::new(), next: None };
        };
        let size = |id: &Text, conflict: &Conflict| {
            let held = [&conflict.lost, &conflict.kept];
            id.len()
                + held.iter().filter_map(|held| held.value.as_ref()).map(|value| value.len()).sum::<usize>()
        };
        let (rows, next) = sides.conflicts.page(prefix, after, limit, size);
        let view = |(id, conflict): (Text, Conflict)| {
            let (key, _) = lost_parts(&id)?;
            Some(ConflictView { id, key, conflict })
        };
        Page { items: rows.into_iter().filter_map(view).collect(), next }
    }

    /// How many entries the journal has.
    pub fn conflict_count(&self) -> usize {
        self.sides.as_ref().map_or(0, |sides| sides.conflicts.len())
    }
}

/// `{"id","kind","key"|"election","voter","lost":{…},"kept":{…},"merged_at","at"}`
impl Json for ConflictView {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"id\":")?;
        write_text(out, &self.id)?;
        write!(out, ",\"kind\":\"{}\"", self.key.table())?;
        match &self.key {
            Key::Vote(name) => {
                let (election, voter) = ballot_parts(name).unwrap_or_default();
                write_member(out, "election", &election)?;
                write_member(out, "voter", &voter)?;
            }
            key => write_member(out, "key", &key.name())?,
        }
        let Conflict { at, lost, kept, wall } = &self.conflict;
        for (name, held) in [("lost", lost), ("kept", kept)] {
            let (epoch, value) = (held.at.epoch, held.value.as_deref().unwrap_or("null"));
            write!(
                out,
                ",\"{name}\":{{\"epoch\":\"{epoch}\",\"index\":{},\"node\":{}",
                held.at.index, epoch.leader.0
            )?;
            write!(out, ",\"value\":{value}}}")?;
        }
        write!(out, ",\"merged_at\":\"{at}\",\"at\":\"{}\"}}", date::text(*wall))
    }
}

fn write_member(out: &mut dyn Write, name: &str, text: &str) -> fmt::Result {
    write!(out, ",\"{name}\":")?;
    write_text(out, text)
}

impl Row for Conflict {
    const TABLE: &'static str = "conflict";
}

impl Mix for Conflict {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.lost.mix(hash);
        self.kept.mix(hash);
        hash.word(self.wall.0);
    }
}
