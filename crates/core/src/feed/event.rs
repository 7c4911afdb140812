//! One event and its text.

use std::borrow::Cow;
use std::fmt::Write;

use super::mark::{Id, Mark};
use crate::replica::{Draft, Fact, Kind, quoted};
use crate::store::{Area, Key, date_text};
use crate::types::{Text, WallTime};

/// The most bytes of a new value that a change carries; readers fetch a larger value. If every event had a
/// value of this size, the ring would still hold some 500 of them.
pub const VALUE_MOST: usize = 64 << 10;

/// The approximate memory of an event and of the allocation for its text, without name and value.
const OVERHEAD: usize = 256;

/// The ring holds up to 100,000 of these, so the place and the id share their fields.
#[derive(Debug)]
pub struct RingEvent {
    draft: Draft,
    /// The event's id, or that of its record if it has none.
    id: Id,
    has_id: bool,
    /// The number in its mark. The mark's index is that of the id.
    n: u32,
    /// The time at which the record was written. For an event that is in no record, the time at which it happened. Zero for an event of a
    /// merge or a snapshot, whose changes have several times.
    wall: WallTime,
}

impl RingEvent {
    /// `id` is `None` for an event that is in no record. `at` is the id of the record itself. An event's number in it is ignored.
    pub fn new(mark: Mark, id: Option<Id>, at: Id, wall: WallTime, draft: Draft) -> RingEvent {
        debug_assert!(mark.index == at.at.index && id.is_none_or(|id| id.at == at.at));
        RingEvent { draft: bounded(draft), id: id.unwrap_or(at), has_id: id.is_some(), n: mark.n, wall }
    }

    pub fn mark(&self) -> Mark {
        Mark { index: self.id.at.index, n: self.n }
    }

    /// `None` for an event that is in no record.
    pub fn id(&self) -> Option<Id> {
        self.has_id.then_some(self.id)
    }

    pub fn kind(&self) -> Kind {
        self.draft.kind
    }

    pub fn fact(&self) -> &Fact {
        &self.draft.fact
    }

    pub fn is_for_all(&self) -> bool {
        self.draft.for_all
    }

    /// The name that readers choose by with `prefix`. For a vote it is the election's name.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match &self.draft.fact {
            Fact::Leader { .. } => None,
            Fact::Members { name, .. } => name.as_deref().map(Cow::Borrowed),
            Fact::Change { key: Key::Doc(name) | Key::Election(name) | Key::User(name), .. } => {
                Some(Cow::Borrowed(name))
            }
            Fact::Change { key, .. } => key.ballot().map(|(election, _)| Cow::Owned(election)),
        }
    }

    /// The area of grants that the event's subject is in, and its name. `None` for a subject that is no client's: the event's
    /// kind decides which readers may see it.
    pub fn subject(&self) -> Option<(Area, Cow<'_, str>)> {
        let area = match (&self.draft.fact, self.kind()) {
            (Fact::Change { key: Key::Doc(_), .. }, _) => Area::Docs,
            (Fact::Change { key: Key::User(_), .. }, _) => Area::Users,
            (Fact::Change { .. }, _) => Area::Elections,
            (_, Kind::RoleAcquired | Kind::RoleLost) => Area::Roles,
            (_, Kind::ProcessRegistered | Kind::ProcessChanged | Kind::ProcessRemoved) => Area::Processes,
            _ => return None,
        };
        Some((area, self.name()?))
    }

    /// The memory that the event takes, including its text.
    pub fn size(&self) -> usize {
        let said = match &self.draft.fact {
            Fact::Leader { more, .. } => more.len(),
            Fact::Members { json, .. } => json.len(),
            Fact::Change { value, .. } => {
                value.as_ref().map_or(0, |value| value.len()) + self.name().map_or(0, |name| name.len())
            }
        };
        // The content is kept twice: as values, and as text.
        OVERHEAD + 2 * said
    }

    /// Writes the event as a server-sent event, and returns the offset at which its JSON begins.
    pub fn write(&self, out: &mut String) -> Result<usize, std::fmt::Error> {
        let kind = self.kind().name();
        if let Some(id) = self.id() {
            writeln!(out, "id: {id}")?;
        }
        write!(out, "event: {kind}\ndata: ")?;
        let begins = out.len();
        out.push('{');
        if let Some(id) = self.id() {
            write!(out, "\"id\":\"{id}\",")?;
        }
        write!(out, "\"kind\":\"{kind}\"")?;
        if self.wall != WallTime::default() {
            write!(out, ",\"at\":\"{}\"", date_text(self.wall))?;
        }
        match &self.draft.fact {
            Fact::Leader { epoch, more } => write!(out, ",\"epoch\":\"{epoch}\"{more}")?,
            Fact::Members { json, .. } => out.push_str(json),
            Fact::Change { key, value, rev, ended } => {
                self.write_change(out, key, value.as_ref(), rev.as_ref())?;
                ended.iter().try_for_each(|why| write!(out, ",\"reason\":\"{why}\""))?;
            }
        }
        out.push_str("}\n\n");
        Ok(begins)
    }

    fn write_change(
        &self,
        out: &mut String,
        key: &Key,
        value: Option<&Text>,
        rev: Option<&Text>,
    ) -> std::fmt::Result {
        write!(out, ",\"table\":\"{}\"", key.table())?;
        match key.ballot() {
            Some((election, voter)) => {
                write!(out, ",\"key\":{},\"voter\":{}", quoted(&election), quoted(&voter))?
            }
            None => write!(out, ",\"key\":{}", quoted(&self.name().unwrap_or_default()))?,
        }
        match rev {
            Some(rev) => write!(out, ",\"rev\":{}", quoted(rev))?,
            None => write!(out, ",\"rev\":\"{}\"", Id { n: None, ..self.id })?,
        }
        match value {
            None => out.push_str(",\"op\":\"delete\""),
            // The value was too large, and left out.
            Some(value) if value.is_empty() => out.push_str(",\"op\":\"put\""),
            Some(value) => write!(out, ",\"op\":\"put\",\"value\":{value}")?,
        }
        Ok(())
    }
}

/// A value that is too large is not kept: it becomes the empty text, which is no JSON.
fn bounded(mut draft: Draft) -> Draft {
    if let Fact::Change { value: Some(value), .. } = &mut draft.fact
        && value.len() > VALUE_MOST
    {
        *value = Text::from("");
    }
    draft
}
