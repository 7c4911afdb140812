//! The journal of merges: every value that a merge overrode without a writer having seen both values, and the value that
//! overrode it.
//!
//! An entry is a row like any other, written by the record or the merge at its position: it is transferred between sides, and
//! it can be dropped, which leaves a tombstone. Its name says which value was lost (`lost_id`), so two merges with the same
//! result give one entry.

use std::fmt::{self, Write};

use crate::store::command::{Reason, Thing};
use crate::store::encoding::{Json, date, write_text};
use crate::store::state::Store;
use crate::store::tables::{Conflict, Key, Page, Tombstone, Version, ballot_parts, lost_parts};
use crate::types::{Position, Text};

/// An entry of the journal as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictView {
    pub id: Text,
    pub key: Key,
    pub conflict: Conflict,
}

impl Store {
    pub(in crate::store) fn check_conflict(&self, id: &Text) -> Result<(), Reason> {
        let there = self.merging.as_ref().is_some_and(|merging| merging.conflicts.get(id).is_some());
        if there { Ok(()) } else { Err(Reason::NotFound { thing: Thing::Conflict, name: id.clone() }) }
    }

    /// A document that was bound to a lease which has ended cannot be written again.
    pub(in crate::store) fn check_apply_conflict(&self, id: &Text) -> Result<(), Reason> {
        self.check_conflict(id)?;
        let Some(ConflictView { key, conflict, .. }) = self.conflict(id) else { return Ok(()) };
        match conflict.lost.lifetime.as_ref().and_then(|lifetime| lifetime.with.as_ref()) {
            Some(bond) => self.check_bond(&key.name(), &bond.lease, Some(bond.token)),
            None => Ok(()),
        }
    }

    /// Writes the lost value again, or deletes the key again if a deletion lost.
    pub(in crate::store) fn apply_conflict(&mut self, id: &Text, at: Position, changes: &mut Vec<Key>) {
        let Some(entry) = self.conflict(id) else { return };
        // The value is written like any other, at the position of this record. So it replaces every version of the key,
        // and no merge brings back what it replaced.
        let lost = Version { at, ..entry.conflict.lost };
        match &lost.value {
            Some(_) => self.write(&entry.key, &lost, changes),
            None => self.erase(&entry.key, Some(Tombstone::deleted(at)), changes),
        }
        self.erase(&Key::Conflict(id.clone()), Some(Tombstone::deleted(at)), changes);
    }

    pub(in crate::store) fn drop_conflict(&mut self, id: &Text, at: Position, changes: &mut Vec<Key>) {
        self.erase(&Key::Conflict(id.clone()), Some(Tombstone::deleted(at)), changes);
    }

    /// One entry of the journal.
    pub fn conflict(&self, id: &str) -> Option<ConflictView> {
        let conflict = self.merging.as_ref()?.conflicts.get(id)?;
        let (key, _) = lost_parts(id)?;
        Some(ConflictView { id: id.into(), key, conflict: conflict.clone() })
    }

    /// The journal in the order of its names. `prefix` selects a part of it: `doc:`, `doc:conf/`. It is empty in a state that
    /// is not mergeable.
    pub fn conflicts(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<ConflictView> {
        let Some(merging) = &self.merging else {
            return Page { items: Vec::new(), next: None };
        };
        let (rows, next) = merging.conflicts.page(prefix, after, limit, size);
        let view = |(id, conflict): (Text, Conflict)| {
            let (key, _) = lost_parts(&id)?;
            Some(ConflictView { id, key, conflict })
        };
        Page { items: rows.into_iter().filter_map(view).collect(), next }
    }

    /// The size of the journal's text: names, and the two values of each entry.
    pub fn conflict_bytes(&self) -> usize {
        let entries = self.merging.iter().flat_map(|merging| merging.conflicts.iter());
        entries.map(|(id, conflict)| size(id, conflict)).sum()
    }

    /// The number of entries in the journal.
    pub fn conflict_count(&self) -> usize {
        self.merging.as_ref().map_or(0, |merging| merging.conflicts.len())
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
        for (name, version) in [("lost", lost), ("kept", kept)] {
            let (epoch, value) = (version.at.epoch, version.value.as_deref().unwrap_or("null"));
            write!(
                out,
                ",\"{name}\":{{\"epoch\":\"{epoch}\",\"index\":{},\"node\":{}",
                version.at.index, epoch.leader.0
            )?;
            write!(out, ",\"value\":{value}")?;
            version.lifetime.iter().try_for_each(|lifetime| lifetime.write(out))?;
            out.write_char('}')?;
        }
        write!(out, ",\"merged_at\":\"{at}\",\"at\":\"{}\"}}", date::text(*wall))
    }
}

fn size(id: &Text, conflict: &Conflict) -> usize {
    let values = [&conflict.lost, &conflict.kept].into_iter().filter_map(|version| version.value.as_ref());
    id.len() + values.map(|value| value.len()).sum::<usize>()
}

fn write_member(out: &mut dyn Write, name: &str, text: &str) -> fmt::Result {
    write!(out, ",\"{name}\":")?;
    write_text(out, text)
}
