//! Replaces all data by a document, in steps. The parts are staged, invisible to readers, and the last step puts all of them in
//! place at once. Applying a part takes a few milliseconds, however large the whole document is.
//!
//! ```text
//! 113|{"restore":7,"part":0,"data":{"users":[…]}}    113|{"restore":7,"part":1,"data":{"docs":[…]}}    114|{"restore":7,"parts":2}
//! ```
//!
//! The last step of a backup from another cluster, or from an earlier time, may also have `"token":N`, after which no token
//! up to N is granted (P57), and `"history":"5f3a9c01"`, the history that begins with it (P60).
//!
//! In available mode a document can also be added to the existing data (`union`). The last step is then
//! `109|{"merge":7,"parts":2}`.
//!
//! Staged parts do not belong to the state: no digest and no snapshot includes them. So no snapshot may be taken while parts
//! are staged, and a change of leader, after which the steps cannot be finished, clears them.

use std::fmt::Write;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::BadDocument;
use crate::protocol::mutant::{self, Mutant};
use crate::store::command::{ENDINGS, Ending, FOREIGN, Reason, Rejection, Reply, Unreadable};
use crate::store::encoding::{Fields, Problem, TOKEN_FLOOR_MOST, compact, fields};
use crate::store::state::{Loader, Staged, Store};
use crate::store::tables::Key;
use crate::types::{Format, History, Payload, Position, Record, Stamp, WallTime};

const PART: u16 = 113;
const END: u16 = 114;
const MERGE: u16 = 109;

/// The size of a part: small enough to apply between two heartbeats, and large enough that the cost of a record does not
/// matter. A larger item is a separate part.
const PART_BYTES: usize = 256 << 10;
/// The size limit of an item: a record must fit into a message between nodes.
pub(super) const ITEM_BYTES_MOST: usize = 8 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part<'a> {
    restore: u64,
    part: u32,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End<'a> {
    restore: u64,
    parts: u32,
    /// The last token becomes this one, unless it is already greater.
    token: Option<u64>,
    #[serde(borrow)]
    history: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeEnd {
    merge: u64,
    parts: u32,
}

/// A document as the records that restore it.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    pub steps: Vec<Payload>,
    /// The size of its rows, if they replace all data (P55).
    pub replaces_with: Option<u64>,
    pub guard: Guard,
}

/// The conditions for restoring it (P57).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The greatest token that the restored state has granted. The next token here must be greater.
    pub token: u64,
    /// The time when the backup was written, by the clock of its node. The clocks of its cluster had reached that time, so
    /// tokens up to it may have been granted after the backup.
    pub time: WallTime,
    /// The operator asserts that no token was ever granted above this one.
    pub floor: Option<u64>,
    /// The backup is of this same cluster: the log here has its grants, and those that came later.
    pub is_own: bool,
    /// The backup is of another cluster: a history begins with it (P60).
    pub is_foreign: bool,
    /// The backup comes from another cluster, and must not replace data.
    pub only_if_empty: bool,
}

impl Guard {
    /// The token up to which no token may be granted any more.
    pub fn last_token(&self) -> u64 {
        self.token.max(self.floor.unwrap_or_default())
    }
}

/// The steps alone, without the size of their rows.
impl From<Vec<Payload>> for Steps {
    fn from(steps: Vec<Payload>) -> Steps {
        Steps { steps, ..Steps::default() }
    }
}

/// The records that restore a document, in order; the last one puts it in place. A document that could not be restored is
/// refused before any record is written. `restore` is the number that identifies this restore.
pub fn restore_steps(text: &str, restore: u64) -> Result<Steps, BadDocument> {
    let (mut steps, parts, bytes) = staging_steps(text, restore)?;
    steps.push(end(restore, parts));
    Ok(Steps { steps, replaces_with: Some(bytes), ..Steps::default() })
}

/// The records that add a document to the existing data. They work in available mode only.
pub fn merge_steps(text: &str, merge: u64) -> Result<Steps, BadDocument> {
    let (mut steps, parts, _) = staging_steps(text, merge)?;
    steps.push(payload(MERGE, format!("{{\"merge\":{merge},\"parts\":{parts}}}")));
    Ok(steps.into())
}

/// All steps but the last, their number, and the size of their rows.
fn staging_steps(text: &str, restore: u64) -> Result<(Vec<Payload>, usize, u64), BadDocument> {
    let bytes = Store::from_document(text, Position::ZERO, Stamp::default())?.bytes();
    let document: &RawValue =
        serde_json::from_str(text).map_err(|_| BadDocument::new("", Problem::NotJson))?;
    let document = Fields::read(document)?;
    let mut parts = Parts::new(restore);
    for list in ["users", "elections", "docs"] {
        let items = document.given(list).map(fields::array).transpose()?.unwrap_or_default();
        for (number, item) in items.into_iter().enumerate() {
            let at = |problem| BadDocument::new("", problem).at(number).within(list);
            let item = compact(item).map_err(at)?;
            if item.len() > ITEM_BYTES_MOST {
                return Err(at(Problem::TooLarge { most: ITEM_BYTES_MOST }));
            }
            parts.add(list, &item);
        }
    }
    let (steps, parts) = parts.end();
    Ok((steps, parts, bytes))
}

/// Cancels a restore that cannot be finished: the staged parts are dropped.
pub fn give_up_restore(restore: u64) -> Payload {
    payload(END, format!("{{\"restore\":{restore},\"parts\":0}}"))
}

fn end(restore: u64, parts: usize) -> Payload {
    payload(END, format!("{{\"restore\":{restore},\"parts\":{parts}}}"))
}

/// The last step of a restore, with the token up to which no token is granted any more, or with the history that begins.
pub fn ending(last: &Payload, token: Option<u64>, begins: bool) -> Payload {
    let Ok(End { restore, parts, .. }) = serde_json::from_str(&last.text) else {
        return last.clone();
    };
    if last.kind != END || (token.is_none() && !begins) {
        return last.clone();
    }
    let token = token.map(|token| format!(",\"token\":{token}")).unwrap_or_default();
    let history = begins.then(|| format!(",\"history\":\"{}\"", History::begun_by(restore)));
    let history = history.unwrap_or_default();
    let text = format!("{{\"restore\":{restore},\"parts\":{parts}{token}{history}}}");
    Payload { format: FOREIGN, text: text.into(), ..last.clone() }
}

/// Collects items into parts.
#[derive(Debug)]
pub(super) struct Parts {
    restore: u64,
    pub(super) steps: Vec<Payload>,
    data: String,
    list: &'static str,
    /// The format that a reader of the part in progress needs (P23).
    format: Format,
}

impl Parts {
    pub(super) fn new(restore: u64) -> Parts {
        Parts { restore, steps: Vec::new(), data: String::new(), list: "", format: Format(1) }
    }

    pub(super) fn add(&mut self, list: &'static str, item: &str) {
        if !self.data.is_empty() && (self.list != list || self.data.len() + item.len() > PART_BYTES) {
            self.close();
        }
        self.list = list;
        self.data.push_str(if self.data.is_empty() { "" } else { "," });
        self.data.push_str(item);
        if list == "docs" && says_when_it_ends(item) {
            self.format = ENDINGS;
        }
    }

    fn close(&mut self) {
        let (restore, part, list) = (self.restore, self.steps.len(), self.list);
        let mut text = String::with_capacity(self.data.len() + 64);
        write!(text, "{{\"restore\":{restore},\"part\":{part},\"data\":{{\"{list}\":[{}]}}}}", self.data)
            .expect("writing to a String cannot fail");
        let format = std::mem::replace(&mut self.format, Format(1));
        self.steps.push(Payload { format, ..payload(PART, text) });
        self.data.clear();
    }

    fn end(mut self) -> (Vec<Payload>, usize) {
        self.close_last();
        let parts = self.steps.len();
        (self.steps, parts)
    }

    /// The steps, including the record that puts everything in place. Nothing can be added after `close_last`.
    pub(super) fn ended(self) -> Steps {
        let (restore, (mut steps, parts)) = (self.restore, self.end());
        steps.push(end(restore, parts));
        steps.into()
    }

    /// An empty document also needs a part, because an end without parts cancels the restore.
    pub(super) fn close_last(&mut self) {
        if !self.data.is_empty() || self.steps.is_empty() {
            self.list = if self.list.is_empty() { "docs" } else { self.list };
            self.close();
        }
    }
}

fn says_when_it_ends(item: &str) -> bool {
    let read = serde_json::from_str::<&RawValue>(item).ok().and_then(|item| Fields::read(item).ok());
    read.is_some_and(|fields| Ending::MEMBERS.iter().any(|name| fields.given(name).is_some()))
}

fn payload(kind: u16, text: String) -> Payload {
    Payload { kind, format: Format(1), call: None, text: text.into() }
}

/// Reports the number of new entries of a document, and the number of journal entries.
fn united(changes: &[Key]) -> String {
    let count = |wanted: fn(&Key) -> bool| changes.iter().filter(|key| wanted(key)).count();
    let conflicts = count(|key| matches!(key, Key::Conflict(_)));
    let added = count(|key| matches!(key, Key::User(_) | Key::Election(_) | Key::Vote(_) | Key::Doc(_)));
    format!("{{\"added\":{added},\"conflicts\":{conflicts}}}")
}

/// The result of a step.
pub struct Restored {
    pub outcome: Result<Reply, Rejection>,
    pub changes: Vec<Key>,
    /// All data has been replaced.
    pub restored: bool,
}

pub fn is_step(payload: &Payload) -> bool {
    matches!(payload.kind, PART | END | MERGE)
}

impl Store {
    /// Whether parts of a document are staged. Snapshots cannot contain staged parts.
    pub fn is_restoring(&self) -> bool {
        self.staged.is_some()
    }

    /// The state after a step that adds the staged document to it. The leader calls this before it writes the record (P48,
    /// P55). A record that is already in the log is applied anyway.
    pub fn united_by(&self, step: &Payload) -> Option<Store> {
        if step.kind != MERGE || !self.is_mergeable() {
            return None;
        }
        let (mut then, mut changes) = (self.clone(), Vec::new());
        let end: MergeEnd = serde_json::from_str(&step.text).ok()?;
        let staged = then.take_staged(end.merge, end.parts)?;
        then.unite(&staged.store, self.applied, self.stamp, &mut changes);
        Some(then)
    }

    pub(in crate::store) fn apply_restore(
        &mut self,
        record: &Record,
        step: &Payload,
    ) -> Result<Restored, Unreadable> {
        let mut changes = Vec::new();
        let mut outcome = Ok(Reply::none());
        let restored = match step.kind {
            PART => {
                let part: Part<'_> = serde_json::from_str(&step.text).map_err(|_| Unreadable::Kind(PART))?;
                let data = Store::from_document(part.data.get(), record.position, record.stamp);
                self.stage(part.restore, part.part, data.map_err(|_| Unreadable::Kind(PART))?);
                false
            }
            MERGE => {
                let end: MergeEnd = serde_json::from_str(&step.text).map_err(|_| Unreadable::Kind(MERGE))?;
                let staged = self.take_staged(end.merge, end.parts);
                outcome = match staged.filter(|_| self.is_mergeable()) {
                    Some(staged) => {
                        self.unite(&staged.store, record.position, record.stamp, &mut changes);
                        self.end_loose(record.position, &mut changes);
                        Ok(Reply { json: united(&changes).into(), ..Reply::none() })
                    }
                    None => Err(Reason::NotStaged.into()),
                };
                false
            }
            _ => {
                let end: End<'_> = serde_json::from_str(&step.text).map_err(|_| Unreadable::Kind(END))?;
                let history = end.history.map(str::parse).transpose().map_err(|()| Unreadable::Kind(END))?;
                if end.token.is_some_and(|token| !(1..=TOKEN_FLOOR_MOST).contains(&token)) {
                    return Err(Unreadable::Kind(END));
                }
                let restored = self.end_restore(&end, history, record.position);
                if !restored && end.parts > 0 {
                    outcome = Err(Reason::NotStaged.into());
                }
                restored
            }
        };
        Ok(Restored { outcome, changes, restored })
    }

    /// A part that does not follow the part before it belongs to a restore that was cancelled.
    fn stage(&mut self, restore: u64, part: u32, data: Store) {
        // A new restore takes the place of one that broke off: only one can be staged.
        if part == 0 {
            let store = if self.is_mergeable() { Store::mergeable() } else { Store::default() };
            self.staged = Some(Arc::new(Staged { restore, parts: 0, store }));
        }
        let follows = |staged: &Arc<Staged>| staged.restore == restore && staged.parts == part;
        let Some(staged) = self.staged.as_mut().filter(|staged| follows(staged)) else {
            self.staged = None;
            return;
        };
        let staged = Arc::make_mut(staged);
        staged.parts += 1;
        staged.store.take_in(data);
    }

    /// Puts the staged parts in place, if all of them have arrived.
    fn end_restore(&mut self, end: &End<'_>, begun: Option<History>, at: Position) -> bool {
        let Some(staged) = self.take_staged(end.restore, end.parts) else {
            return false;
        };
        let merging = self.merging.take();
        let now = staged.store.clone();
        // Live processes and their leases are not data, so a restore keeps them. It also keeps the calls that have been carried
        // out: a client that retries such a call has already been answered, and without the entry it would be carried out twice
        // (I7).
        let before = std::mem::take(self);
        let idempotency_keys = match mutant::is_on(Mutant::RestoreForgetsKeys) {
            true => now.idempotency_keys.clone(),
            false => before.idempotency_keys,
        };
        // A restore also keeps the clients' tokens: an older document would admit clients whose tokens were revoked since
        // (P56).
        let access = match mutant::is_on(Mutant::RestoreDropsTokens) {
            true => now.access.clone(),
            false => before.access,
        };
        let Store { roles, processes, mut last_token, history, .. } = before;
        if !mutant::is_on(Mutant::RestoreForgetsFloor) {
            last_token = last_token.max(end.token.unwrap_or_default());
        }
        let begun = begun.filter(|_| !mutant::is_on(Mutant::HistoryGoesOn));
        let history = begun.unwrap_or(history);
        *self = Store { roles, processes, access, idempotency_keys, last_token, history, ..now };
        // Every row is rewritten, and removed rows leave no tombstone.
        for key in self.loose_docs() {
            self.docs.remove(&key);
        }
        if let (Some(now), Some(before)) = (self.merging_mut(), merging) {
            now.restored_over(&before, at);
        }
        self.rebuild_index();
        true
    }

    /// The staged parts, if all of them have arrived.
    fn take_staged(&mut self, restore: u64, parts: u32) -> Option<Arc<Staged>> {
        // The staged parts are gone either way: a last step that does not fit them, or that gives up, ends that restore
        // as well.
        let staged = self.staged.take()?;
        (parts > 0 && staged.restore == restore && staged.parts == parts).then_some(staged)
    }

    /// Adds the entries of another part. No item is in two parts.
    fn take_in(&mut self, part: Store) {
        let at = part.applied;
        for (key, value) in part.entries() {
            self.take_in_entry(&key, &value);
            if let Some(merging) = self.merging_mut() {
                merging.note(key, at);
            }
        }
    }

    fn take_in_entry(&mut self, key: &Key, value: &str) {
        let mut loader = Loader::from(std::mem::take(self));
        let taken = loader.add(key.table(), &key.name(), value);
        debug_assert!(taken.is_ok(), "an entry of a document that was read");
        *self = loader.into_store();
    }
}
