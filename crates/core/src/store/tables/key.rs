//! A key names an entry: snapshots are sorted by keys, and changes are lists of keys.

use std::fmt::Write;

use super::table::Weight;
use crate::store::access::TokenId;
use crate::store::encoding::{CONFLICT_ID_MOST, Hash, KEY_MOST, Mix, NAME_MOST, check_text, write_text};
use crate::types::{LeaseName, Position, Text};

/// The tables, in the order of their names. Four of them exist only in a mergeable state.
pub const TABLES: [&str; 14] = [
    "access", "call", "conflict", "doc", "election", "history", "process", "rival", "role", "side", "token",
    "tomb", "user", "vote",
];

/// The name of the only entry of the table `token`: the last fencing token. It is not a client's token.
pub const LAST: &str = "last";

/// The name of the only entry of the table `history`.
pub const MARK: &str = "mark";

/// The name of the only entry of the table `side`.
pub const SIDE: &str = "bounds";

/// One entry of the state. The order is that of a snapshot: by table, then by the bytes of the name.
/// The order is derived: the variants must stand in the order of their tables' names. Names of numbers have a fixed
/// width, so that they sort like the numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A client's token.
    Access(TokenId),
    /// An idempotency key's hash.
    Call(u128),
    /// A value that a merge overrode: see `lost_id`.
    Conflict(Text),
    Doc(Text),
    Election(Text),
    /// The history that the state belongs to (P60).
    History,
    Process(Text),
    /// A version that lost to the current value of a key: see `lost_id`.
    Rival(Text),
    Role(Text),
    /// The bounds of the merge metadata.
    Side,
    /// The last fencing token that was granted.
    Token,
    /// The tombstone of a deleted entry.
    Tombstone(Box<Key>),
    User(Text),
    /// `["election","voter"]`, see `ballot`.
    Vote(Text),
}

impl Key {
    pub fn table(&self) -> &'static str {
        match self {
            Key::Access(_) => "access",
            Key::Call(_) => "call",
            Key::Conflict(_) => "conflict",
            Key::Doc(_) => "doc",
            Key::Election(_) => "election",
            Key::History => "history",
            Key::Process(_) => "process",
            Key::Rival(_) => "rival",
            Key::Role(_) => "role",
            Key::Side => "side",
            Key::Token => "token",
            Key::Tombstone(_) => "tomb",
            Key::User(_) => "user",
            Key::Vote(_) => "vote",
        }
    }

    pub fn name(&self) -> String {
        match self {
            Key::Access(id) => id.to_string(),
            Key::Call(key) => format!("{key:032x}"),
            Key::History => MARK.to_string(),
            Key::Side => SIDE.to_string(),
            Key::Token => LAST.to_string(),
            Key::Tombstone(key) => key.full_name(),
            Key::Conflict(name) | Key::Rival(name) | Key::Vote(name) => name.to_string(),
            Key::Doc(name) | Key::Election(name) | Key::User(name) => name.to_string(),
            Key::Process(name) | Key::Role(name) => name.to_string(),
        }
    }

    /// `doc:conf/a`. Full names sort like keys, because no table's name is a prefix of another's.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.table(), self.name())
    }

    /// Parses a full name. Only entries that can be deleted or can lose a merge have one that can be parsed.
    pub fn from_full_name(text: &str) -> Option<Key> {
        let (table, name) = text.split_once(':')?;
        let most = match table {
            "access" => return name.parse().ok().map(Key::Access),
            "conflict" => CONFLICT_ID_MOST,
            "doc" => KEY_MOST,
            "election" | "process" | "role" | "user" => NAME_MOST,
            "vote" => ballot_parts(name).map(|_| name.len())?,
            _ => return None,
        };
        check_text(name, most).ok()?;
        Some(match table {
            "conflict" => Key::Conflict(lost_parts(name).map(|_| name.into())?),
            "doc" => Key::Doc(name.into()),
            "election" => Key::Election(name.into()),
            "process" => Key::Process(name.into()),
            "role" => Key::Role(name.into()),
            "user" => Key::User(name.into()),
            _ => Key::Vote(name.into()),
        })
    }
}

impl Key {
    /// Whether the key names clients' data, and not bookkeeping of the store.
    pub fn is_data(&self) -> bool {
        matches!(self, Key::Doc(_) | Key::Election(_) | Key::User(_) | Key::Vote(_))
    }

    /// Whether a version of this key that loses a merge stands in the journal, for people to decide. Tokens are not in it:
    /// their content must not be shown, and no decision about them is left open (P56).
    pub fn is_journaled(&self) -> bool {
        !matches!(self, Key::Conflict(_) | Key::Access(_))
    }

    /// Election and voter of a vote's key.
    pub fn ballot(&self) -> Option<(String, String)> {
        match self {
            Key::Vote(name) => ballot_parts(name),
            _ => None,
        }
    }
}

impl Key {
    /// The role or process that the key names.
    pub fn lease(&self) -> Option<LeaseName> {
        match self {
            Key::Role(name) => Some(LeaseName::Role(name.clone())),
            Key::Process(id) => Some(LeaseName::Process(id.clone())),
            _ => None,
        }
    }

    /// The lease that a record on this key may have changed: a document with a ttl has a lease, too.
    pub fn counted(&self) -> Option<LeaseName> {
        match self {
            Key::Doc(key) => Some(LeaseName::Doc(key.clone())),
            key => key.lease(),
        }
    }
}

impl From<&LeaseName> for Key {
    fn from(name: &LeaseName) -> Key {
        match name {
            LeaseName::Role(name) => Key::Role(name.clone()),
            LeaseName::Process(id) => Key::Process(id.clone()),
            LeaseName::Doc(key) => Key::Doc(key.clone()),
        }
    }
}

impl Weight for Key {
    fn weight(&self) -> usize {
        self.name().len()
    }
}

impl Mix for Key {
    fn mix(&self, hash: &mut Hash) {
        self.table().mix(hash);
        match self {
            Key::Access(id) => id.mix(hash),
            Key::Call(key) => key.mix(hash),
            Key::History | Key::Side | Key::Token => {}
            Key::Tombstone(key) => key.mix(hash),
            Key::Conflict(name) | Key::Rival(name) | Key::Vote(name) => name.mix(hash),
            Key::Doc(name) | Key::Election(name) | Key::User(name) => name.mix(hash),
            Key::Process(name) | Key::Role(name) => name.mix(hash),
        }
    }
}

/// The id of a value that was written under a key at a position and lost: `doc:conf/a:7.2@12`. Positions contain no colon.
pub fn lost_id(key: &Key, at: Position) -> Text {
    format!("{}:{at}", key.full_name()).into()
}

/// The common prefix of the ids of all values that lost under a key. Ids of other keys may have the same prefix.
pub fn lost_ids_of(key: &Key) -> String {
    format!("{}:", key.full_name())
}

pub fn lost_parts(id: &str) -> Option<(Key, Position)> {
    let (key, at) = id.rsplit_once(':')?;
    let (key, at): (Key, Position) = (Key::from_full_name(key)?, at.parse().ok()?);
    (*lost_id(&key, at) == *id).then_some((key, at))
}

/// The name of a vote. It is JSON, because the names in it may contain any separator.
pub fn ballot(election: &str, voter: &str) -> Text {
    let mut name = ballots_of(election);
    write_text(&mut name, voter).expect("writing to a String cannot fail");
    name.push(']');
    name.into()
}

/// The common prefix of the names of all votes of an election. No other name has it.
pub fn ballots_of(election: &str) -> String {
    let mut prefix = String::with_capacity(2 * election.len() + 8);
    prefix.push('[');
    write_text(&mut prefix, election).expect("writing to a String cannot fail");
    prefix.push(',');
    prefix
}

/// Election and voter.
pub fn ballot_parts(name: &str) -> Option<(String, String)> {
    let parts: (String, String) = serde_json::from_str(name).ok()?;
    (*ballot(&parts.0, &parts.1) == *name).then_some(parts)
}

pub fn call_named(name: &str) -> Option<u128> {
    // One spelling only: no sign, no upper case, all 32 digits.
    let key = u128::from_str_radix(name, 16).ok()?;
    (Key::Call(key).name() == name).then_some(key)
}

/// An entry's value: the value that was written, and the position of the record that wrote it.
pub fn written(at: Position, value: &str) -> String {
    const REST: usize = 64;
    let mut text = String::with_capacity(value.len() + REST);
    write!(text, "{{\"at\":\"{at}\",\"value\":{value}}}").expect("writing to a String cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ballots_are_unambiguous() {
        let names = [("a", "b"), ("a\",\"", "b"), ("a", "\",\"b"), ("a,b", ""), ("é\\", "]")];
        for (election, voter) in names {
            let name = ballot(election, voter);
            assert_eq!(ballot_parts(&name), Some((election.into(), voter.into())));
            let begins = |other: &(&str, &str)| name.starts_with(&ballots_of(other.0));
            assert!(names.iter().filter(|other| begins(other)).all(|other| other.0 == election));
        }
        assert_eq!(&*ballot("election1", "tester"), "[\"election1\",\"tester\"]");
        assert_eq!(ballot_parts("[\"a\", \"b\"]"), None);
    }

    #[test]
    fn keys_sort_as_their_names() {
        let text = |name: &str| Text::from(name);
        let mut keys = [
            Key::Vote(ballot("a", "b")),
            Key::Vote(ballot("a ", "b")),
            Key::User(text("a")),
            Key::Doc(text("é")),
            Key::Doc(text("z/1")),
            Key::History,
            Key::Side,
            Key::Token,
            Key::Role(text("r")),
            Key::Process(text("p")),
            Key::Conflict(text("doc:a:1.1@2")),
            Key::Rival(text("doc:a:1.1@2")),
            Key::Tombstone(Key::User(text("a")).into()),
            Key::Tombstone(Key::Doc(text("z")).into()),
            Key::Call(u128::MAX),
            Key::Call(16),
            Key::Access(TokenId(3)),
            Key::Access(TokenId(1 << 63)),
        ];
        keys.sort();
        let names = keys.iter().map(|key| (key.table(), key.name()));
        assert!(names.is_sorted());
        assert!(keys.iter().map(Key::full_name).is_sorted());
        assert_eq!((&keys[0], &keys[2]), (&Key::Access(TokenId(3)), &Key::Call(16)));
        let mut tables: Vec<_> = keys.iter().map(Key::table).collect();
        tables.dedup();
        assert!(tables.iter().all(|table| TABLES.contains(table)) && TABLES.is_sorted());
    }

    #[test]
    fn what_lost_is_named_unambiguously() {
        let at = "7.2@12".parse().expect("a position");
        let key = |name: &str| Key::Doc(Text::from(name));
        assert_eq!(&*lost_id(&key("conf/a"), at), "doc:conf/a:7.2@12");
        for key in [key("a"), key("a:7.2@12"), key(":"), Key::Vote(ballot("e:", "v")), Key::User("é".into())]
        {
            assert_eq!(lost_parts(&lost_id(&key, at)), Some((key, at)));
        }
        for wrong in
            ["", "doc:a", "doc::7.2@12", "call:00:7.2@12", "pet:a:7.2@12", "doc:a:07.2@12", "vote:e:7.2@12"]
        {
            assert_eq!(lost_parts(wrong), None, "{wrong}");
        }
    }
}
