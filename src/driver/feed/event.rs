//! One event, and its text: written when the first reader wants it, and once, however many there are.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::OnceLock;

use bytes::Bytes;

use super::mark::{Id, Mark};
use crate::store::Key;
use crate::types::Text;

/// What a change carries of the new value; readers fetch a larger one. So no event is larger than a few network packets.
pub const VALUE_MOST: usize = 64 << 10;

/// What an event takes in memory besides its name and value, about.
const OVERHEAD: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Change,
    NewLeader,
    NewState,
    ElectionStarted,
    ElectionCompleted,
    RoleAcquired,
    RoleLost,
    ProcessRegistered,
    ProcessRemoved,
    Conflict,
    ServiceDown,
    ServiceUp,
}

impl Kind {
    pub const ALL: [Kind; 12] = [
        Kind::Change,
        Kind::NewLeader,
        Kind::NewState,
        Kind::ElectionStarted,
        Kind::ElectionCompleted,
        Kind::RoleAcquired,
        Kind::RoleLost,
        Kind::ProcessRegistered,
        Kind::ProcessRemoved,
        Kind::Conflict,
        Kind::ServiceDown,
        Kind::ServiceUp,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Change => "change",
            Kind::NewLeader => "new_leader",
            Kind::NewState => "new_state",
            Kind::ElectionStarted => "election_started",
            Kind::ElectionCompleted => "election_completed",
            Kind::RoleAcquired => "role_acquired",
            Kind::RoleLost => "role_lost",
            Kind::ProcessRegistered => "process_registered",
            Kind::ProcessRemoved => "process_removed",
            Kind::Conflict => "conflict",
            Kind::ServiceDown => "service_down",
            Kind::ServiceUp => "service_up",
        }
    }

    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether its events are about something that has a name.
    pub fn is_named(self) -> bool {
        use Kind::*;
        matches!(self, Change | RoleAcquired | RoleLost | ProcessRegistered | ProcessRemoved | Conflict)
    }
}

/// Some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u16))
    }

    pub fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }
}

/// What an event says, before it has its place among the others.
#[derive(Debug)]
pub enum Said {
    /// An entry of clients' data was written, or removed.
    Change {
        key: Key,
        /// None for a delete.
        value: Option<Text>,
        /// Where it is not that of the event's own record.
        rev: Option<Text>,
    },
    /// Of what is rare: the members of its JSON, each with its comma before it.
    Members { name: Option<Text>, json: String },
}

#[derive(Debug)]
pub struct Draft {
    pub kind: Kind,
    /// For every reader, whatever it asked for: what it mirrors has changed without its being told of each change.
    pub for_all: bool,
    pub said: Said,
}

impl Draft {
    pub fn change(key: Key, value: Option<Text>, rev: Option<Text>) -> Draft {
        Draft { kind: Kind::Change, for_all: false, said: Said::Change { key, value, rev } }
    }

    pub fn rare(kind: Kind, name: Option<Text>, json: String) -> Draft {
        Draft { kind, for_all: false, said: Said::Members { name, json } }
    }
}

#[derive(Debug)]
pub struct Event {
    pub mark: Mark,
    /// None for what is in no record.
    pub id: Option<Id>,
    draft: Draft,
    /// The revision where the draft names none.
    at: Id,
    text: OnceLock<Written>,
}

#[derive(Debug)]
struct Written {
    frame: Bytes,
    /// Where in it the JSON begins.
    json: usize,
}

impl Event {
    /// `at` is the record's own name, with or without the event's number.
    pub fn new(mark: Mark, id: Option<Id>, at: Id, draft: Draft) -> Event {
        Event { mark, id, draft: draft.bounded(), at, text: OnceLock::new() }
    }

    pub fn kind(&self) -> Kind {
        self.draft.kind
    }

    pub fn is_for_all(&self) -> bool {
        self.draft.for_all
    }

    /// What readers choose by with `prefix`. Of a vote it is the election's name.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match &self.draft.said {
            Said::Members { name, .. } => name.as_deref().map(Cow::Borrowed),
            Said::Change { key: Key::Doc(name) | Key::Election(name) | Key::User(name), .. } => {
                Some(Cow::Borrowed(name))
            }
            Said::Change { key, .. } => key.ballot().map(|(election, _)| Cow::Owned(election)),
        }
    }

    /// What it takes in memory, its text included.
    pub fn size(&self) -> usize {
        let said = match &self.draft.said {
            Said::Members { json, .. } => json.len(),
            Said::Change { value, .. } => {
                value.as_ref().map_or(0, |value| value.len()) + self.name().map_or(0, |name| name.len())
            }
        };
        // Once as it is, once written.
        OVERHEAD + 2 * said
    }

    /// As a server-sent event.
    pub fn frame(&self) -> Bytes {
        self.written().frame.clone()
    }

    /// The JSON alone, as one line.
    pub fn line(&self) -> Bytes {
        let Written { frame, json } = self.written();
        frame.slice(*json..frame.len() - 1)
    }

    fn written(&self) -> &Written {
        self.text.get_or_init(|| {
            let mut frame = String::with_capacity(self.size());
            let json = self.write(&mut frame).expect("a string takes everything");
            Written { frame: frame.into(), json }
        })
    }

    fn write(&self, out: &mut String) -> Result<usize, std::fmt::Error> {
        let kind = self.kind().name();
        if let Some(id) = self.id {
            writeln!(out, "id: {id}")?;
        }
        write!(out, "event: {kind}\ndata: ")?;
        let begins = out.len();
        out.push('{');
        if let Some(id) = self.id {
            write!(out, "\"id\":\"{id}\",")?;
        }
        write!(out, "\"kind\":\"{kind}\"")?;
        match &self.draft.said {
            Said::Members { json, .. } => out.push_str(json),
            Said::Change { key, value, rev } => self.write_change(out, key, value.as_ref(), rev.as_ref())?,
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
            None => write!(out, ",\"rev\":\"{}\"", Id { n: 0, ..self.at })?,
        }
        match value {
            None => out.push_str(",\"op\":\"delete\""),
            // Too large, and left out.
            Some(value) if value.is_empty() => out.push_str(",\"op\":\"put\""),
            Some(value) => write!(out, ",\"op\":\"put\",\"value\":{value}")?,
        }
        Ok(())
    }
}

impl Draft {
    /// A value that is too large is not kept either. No JSON is empty.
    fn bounded(mut self) -> Draft {
        if let Said::Change { value: Some(value), .. } = &mut self.said
            && value.len() > VALUE_MOST
        {
            *value = Text::from("");
        }
        self
    }
}

/// Text as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
