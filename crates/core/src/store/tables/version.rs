//! A version of a key is the content of one write to it: a value, or a deletion.
//!
//! In a mergeable state a key has a set of versions. The current version is a row or a tombstone. The others lost to it in a
//! merge, and are its rivals. The writer of a key knows all of its versions, and so replaces all of them.

use std::cmp::Reverse;
use std::fmt::{self, Write};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::protocol::mutant::{self, Mutant};
use crate::store::command::{Ending, Tether, lease_path, value_text_of};
use crate::store::encoding::{BadField, Fields, Hash, Mix, Problem};
use crate::store::tables::key::{Key, written};
use crate::store::tables::table::Row;
use crate::types::{LeaseName, NodeId, Position, Span, Text, WallTime};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub at: Position,
    /// JSON on one line. `None` is a deletion.
    pub value: Option<Text>,
    /// The lifetime of a document that ends.
    pub lifetime: Option<Arc<Lifetime>>,
    /// The deletion was not requested: a document expired or ended with its lease.
    pub ended: bool,
}

/// The mark of a deleted row, with the position of its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub at: Position,
    /// The document expired or ended with its lease; it was not deleted.
    pub ended: bool,
}

impl Version {
    pub fn row(at: Position, value: Text) -> Version {
        Version { at, value: Some(value), lifetime: None, ended: false }
    }

    pub fn deleted(at: Position) -> Version {
        Version { at, value: None, lifetime: None, ended: false }
    }

    /// The version of a document that expired or ended with its lease.
    pub fn expired(at: Position) -> Version {
        Version { ended: true, ..Version::deleted(at) }
    }

    /// `{"at","value","ttl_ms"?,"with"?,"token"?}` or `{"at","deleted":true,"ended"?}`. A deletion has its own member, because
    /// a document may be `null`.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{{\"at\":\"{}\"", self.at)?;
        match &self.value {
            Some(value) => [",\"value\":", value].into_iter().try_for_each(|part| out.write_str(part))?,
            None => out.write_str(",\"deleted\":true")?,
        }
        self.lifetime.iter().try_for_each(|lifetime| lifetime.write(out))?;
        out.write_str(if self.ended { ",\"ended\":true}" } else { "}" })
    }

    pub fn entry(&self) -> String {
        /// The position and the members' names.
        const AROUND: usize = 64;
        let mut text = String::with_capacity(self.weight() + AROUND);
        self.write(&mut text).expect("writing to a String cannot fail");
        text
    }

    pub fn read(json: &RawValue) -> Option<Version> {
        let fields = Fields::read(json).ok()?;
        fields.only(&[&["at", "value", "deleted", "ended"][..], &Ending::MEMBERS].concat()).ok()?;
        let at = serde_json::from_str::<&str>(fields.member("at")?.get()).ok()?.parse().ok()?;
        let (lifetime, ended) = (Lifetime::read(&fields).ok()?.map(Arc::new), fields.flag("ended").ok()?);
        match (fields.member("value"), fields.member("deleted").map(RawValue::get)) {
            (Some(value), None) if !ended => {
                Some(Version { lifetime, ..Version::row(at, value_text_of(value).ok()?) })
            }
            (None, Some("true")) if lifetime.is_none() => Some(Version { ended, ..Version::deleted(at) }),
            _ => None,
        }
    }

    pub fn from_entry(json: &str) -> Option<Version> {
        Version::read(serde_json::from_str(json).ok()?)
    }
}

impl Tombstone {
    /// A deletion by a command.
    pub fn deleted(at: Position) -> Tombstone {
        Tombstone { at, ended: false }
    }

    pub fn entry(self) -> String {
        Version::from(self).entry()
    }

    pub fn from_entry(json: &str) -> Option<Tombstone> {
        let Version { at, value, ended, .. } = Version::from_entry(json)?;
        value.is_none().then_some(Tombstone { at, ended })
    }
}

impl From<Tombstone> for Version {
    fn from(Tombstone { at, ended }: Tombstone) -> Version {
        Version { ended, ..Version::deleted(at) }
    }
}

/// Sorts the winner first. The order depends only on the values and their positions, so the order in which sides meet does not
/// matter.
pub fn sort_by_precedence(key: &Key, version: &mut [Version]) {
    match key {
        // An entry wins over a drop that did not know of it. Of two entries with one id, the one with the lower
        // position stays.
        Key::Conflict(_) => version.sort_by_key(|version| (version.value.is_none(), version.at)),
        // A lease that is held wins over a lease that was given up.
        Key::Role(_) | Key::Process(_) => {
            version.sort_by_key(|version| (version.value.is_none(), elder_first(version.at)));
        }
        // A revocation is final, no matter what the other side knew of it (P56).
        Key::Access(_) => version.sort_by_key(|version| (revoked_last(version), elder_first(version.at))),
        // A write wins over an expiry, which no client requested (P54).
        _ => version.sort_by_key(|version| (version.ended, elder_first(version.at))),
    }
}

fn revoked_last(version: &Version) -> bool {
    version.value.is_some() && !mutant::is_on(Mutant::RevokedReturns)
}

/// The value of the elder leader wins. Between two values of one leader, the newer one wins.
fn elder_first(at: Position) -> (NodeId, Reverse<u64>, Reverse<u64>) {
    (at.epoch.leader, Reverse(at.epoch.counter), Reverse(at.index))
}

impl Row for Version {
    const TABLE: &'static str = "rival";

    fn weight(&self) -> usize {
        self.value.as_ref().map_or(0, |value| value.len())
    }
}

impl Row for Tombstone {
    const TABLE: &'static str = "tomb";

    fn weight(&self) -> usize {
        0
    }
}

impl Mix for Version {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(u64::from(self.value.is_some()));
        if let Some(value) = &self.value {
            value.mix(hash);
        }
        self.lifetime.iter().for_each(|lifetime| lifetime.mix(hash));
        mix_ended(self.ended, hash);
    }
}

impl Mix for Tombstone {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        mix_ended(self.ended, hash);
    }
}

/// A state without such a document has the same digest as before this field existed.
fn mix_ended(ended: bool, hash: &mut Hash) {
    if ended {
        "ended".mix(hash);
    }
}

/// An entry of the journal of merges: the value that was overridden, and the value that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The position of the merge that wrote this entry.
    pub at: Position,
    pub lost: Version,
    pub kept: Version,
    pub wall: WallTime,
}

impl Conflict {
    /// The entry without its position.
    pub fn value(&self) -> String {
        let mut text = String::from("{\"lost\":");
        let written = self.lost.write(&mut text).and_then(|()| text.write_str(",\"kept\":"));
        let written = written.and_then(|()| self.kept.write(&mut text));
        written
            .and_then(|()| write!(text, ",\"wall_us\":{}}}", self.wall.0))
            .expect("writing to a String cannot fail");
        text
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn read(at: Position, value: &str) -> Option<Conflict> {
        let value: &RawValue = serde_json::from_str(value).ok()?;
        let fields = Fields::read(value).ok()?;
        fields.only(&["lost", "kept", "wall_us"]).ok()?;
        let version = |name| Version::read(fields.member(name)?);
        let wall = fields.member("wall_us")?.get().parse().ok()?;
        Some(Conflict { at, lost: version("lost")?, kept: version("kept")?, wall: WallTime(wall) })
    }
}

impl Row for Conflict {
    const TABLE: &'static str = "conflict";

    fn weight(&self) -> usize {
        self.lost.weight() + self.kept.weight()
    }
}

impl Mix for Conflict {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.lost.mix(hash);
        self.kept.mix(hash);
        hash.word(self.wall.0);
    }
}

// The lifetime of a document: the members of its row that define its end.

/// At least one of the two fields is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub ttl: Option<Span>,
    pub with: Option<Bond>,
}

/// The lease that a document ends with: one specific grant of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    pub lease: LeaseName,
    pub token: u64,
}

impl Lifetime {
    /// Reads the members of an object that may have others. Returns `None` if the object defines no end.
    pub fn read(fields: &Fields) -> Result<Option<Lifetime>, BadField> {
        let Ending { ttl, with } = Ending::read(fields)?;
        let bond = |Tether { lease, token, .. }| match token {
            Some(token) => Ok(Bond { lease, token }),
            None => Err(BadField::new("token", Problem::Missing)),
        };
        let with = with.map(bond).transpose()?;
        Ok((ttl.is_some() || with.is_some()).then_some(Lifetime { ttl, with }))
    }

    /// Writes its members, each with a comma before it.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let tether =
            |bond: &Bond| Tether { lease: bond.lease.clone(), token: Some(bond.token), secret: None };
        Ending { ttl: self.ttl, with: self.with.as_ref().map(tether) }.write(out)
    }
}

impl Mix for Lifetime {
    fn mix(&self, hash: &mut Hash) {
        hash.word(self.ttl.map_or(0, |ttl| ttl.0));
        if let Some(Bond { lease, token }) = &self.with {
            lease_path(lease).as_str().mix(hash);
            hash.word(*token);
        }
    }
}
