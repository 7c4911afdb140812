//! All kinds of mistakes, with their messages: what is wrong, then what would be right.

use std::fmt;

use serde_json::Value as Json;

use super::Address;

/// Values are shown as far as they help to find the mistake.
const SHOWN_CHARS_MOST: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    File(WrongFile),
    Key(WrongKey),
    Value(WrongValue),
    Access(WrongAccess),
    Topology(WrongTopology),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongFile {
    Unreadable { why: String },
    TooLong { most: usize },
    NotText,
    Syntax { why: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongKey {
    Unknown { close: Option<String>, known: Vec<String> },
    Twice,
    Missing { want: Want },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongValue {
    Type {
        found: String,
        want: Want,
    },
    OutOfRange {
        found: String,
        least: u64,
        most: u64,
    },
    NotOneOf {
        found: String,
        choices: Vec<&'static str>,
    },
    Empty,
    NotAnAddress {
        found: String,
        hint: &'static str,
    },
    /// Two settings that contradict each other.
    Contradiction {
        why: String,
    },
}

/// Mistakes in the settings of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongAccess {
    BothGiven {
        other: &'static str,
    },
    Short {
        bytes: usize,
        least: usize,
    },
    /// A token that no HTTP header can carry.
    Unsendable,
    SecretFile {
        file: String,
        why: WrongFile,
    },
    OpenSecret {
        file: String,
        mode: u32,
    },
    /// More than two secrets: there may be one, and another one while it is being changed.
    TooManySecrets {
        lines: usize,
    },
    Exposed {
        listen: Address,
    },
    /// A setting that TLS needs is missing.
    NotGiven {
        needs: &'static str,
    },
    Certificate {
        file: String,
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongTopology {
    ClusterName {
        found: String,
    },
    MemberName {
        found: String,
        most: usize,
    },
    /// Another member has the same id, name or address.
    Taken {
        found: String,
        by: String,
    },
    NoMembers,
    TooManyMembers {
        members: usize,
        most: usize,
    },
    NoSuchNode {
        id: u64,
        ids: Vec<u32>,
    },
    OtherName {
        found: String,
        name: String,
        by: String,
    },
    /// In available mode the tokens of these two nodes could be equal.
    SameRemainder {
        id: u32,
        other: u32,
        of: u64,
    },
}

/// The type of value that is wanted instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Text,
    Whole,
    YesNo,
    Table,
    Object,
    List,
    OwnNode,
}

/// A text as a message shows it: in quotes, without control characters, and shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MOST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// A key as a message shows it: unchanged if it looks like a key, otherwise in quotes.
pub(super) fn named(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if key.is_empty() || key.len() > SHOWN_CHARS_MOST || !key.chars().all(plain) {
        return quoted(key);
    }
    key.to_string()
}

/// A parser's message in one line.
pub(super) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.join(", ").chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

pub(super) fn described(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Array(_) => "a list".to_string(),
        Json::Object(_) => "a table".to_string(),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::File(wrong) => wrong.fmt(f),
            Wrong::Key(wrong) => wrong.fmt(f),
            Wrong::Value(wrong) => wrong.fmt(f),
            Wrong::Access(wrong) => wrong.fmt(f),
            Wrong::Topology(wrong) => wrong.fmt(f),
        }
    }
}

impl fmt::Display for WrongFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongFile::Unreadable { why } => write!(f, "cannot be read: {why}"),
            WrongFile::TooLong { most } => write!(f, "is longer than {most} bytes: use another file"),
            WrongFile::NotText => write!(f, "is not UTF-8: use another file"),
            WrongFile::Syntax { why } => write!(f, "cannot be parsed: {why}"),
        }
    }
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongKey::Unknown { close: Some(close), .. } => {
                write!(f, "unknown key: did you mean {close}?")
            }
            WrongKey::Unknown { known, .. } => {
                write!(f, "unknown key: use one of {}", known.join(", "))
            }
            WrongKey::Twice => write!(f, "is given twice: keep one"),
            WrongKey::Missing { want } => write!(f, "is missing: {want}"),
        }
    }
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongValue::Type { found, want } => write!(f, "{found} has the wrong type: {want}"),
            WrongValue::OutOfRange { found, least, most } => {
                write!(f, "{found} is out of range: write an integer from {least} to {most}")
            }
            WrongValue::NotOneOf { found, choices } => {
                write!(f, "{found} is not a known value: write {}", alternatives(choices))
            }
            WrongValue::Empty => write!(f, "is empty: write at least one character"),
            WrongValue::NotAnAddress { found, hint } => write!(f, "{found} is not an address: {hint}"),
            WrongValue::Contradiction { why } => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for WrongAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongAccess::BothGiven { other } => write!(f, "conflicts with {other}: keep one of the two"),
            WrongAccess::Short { bytes, least } => {
                write!(f, "has only {bytes} bytes and can be guessed: write at least {least} random bytes")
            }
            WrongAccess::Unsendable => {
                write!(f, "cannot be sent in a header: use printable ASCII characters without spaces")
            }
            WrongAccess::SecretFile { file, why } => write!(f, "the file {file} {why}"),
            WrongAccess::OpenSecret { file, mode } => {
                write!(
                    f,
                    "other users can access {file} (mode {mode:04o}), and it contains a secret: chmod 600 {file}"
                )
            }
            WrongAccess::TooManySecrets { lines } => write!(
                f,
                "has {lines} lines: write the secret on the first line and, while it is being changed, a second \
                    accepted secret on the next"
            ),
            WrongAccess::NotGiven { needs } => {
                write!(
                    f,
                    "is missing, and {needs} needs it: give a PEM file (`eldest cert init` creates one)"
                )
            }
            WrongAccess::Certificate { file, why } => write!(f, "the file {file} {why}"),
            WrongAccess::Exposed { listen } => write!(
                f,
                "{listen} can be reached from other machines, and there is no cluster secret: set \
                    cluster_secret_file to a file with the same secret on every node, or set insecure = true to \
                    trust anyone who reaches it"
            ),
        }
    }
}

impl fmt::Display for WrongTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongTopology::ClusterName { found } => {
                write!(f, "{found} is not a valid name: use 1 to 64 characters of a to z, 0 to 9 and -")
            }
            WrongTopology::MemberName { found, most } => {
                write!(f, "{found} is not a valid name: use 1 to {most} characters, no control characters")
            }
            WrongTopology::Taken { found, by } => write!(f, "{found} is already used by {by}: use another"),
            WrongTopology::NoMembers => write!(f, "is empty: add at least this node"),
            WrongTopology::TooManyMembers { members, most } => {
                write!(f, "has {members} nodes: the maximum is {most}")
            }
            WrongTopology::NoSuchNode { id, ids } => {
                let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                write!(f, "no node in clusters has id {id}: use one of {}", ids.join(", "))
            }
            WrongTopology::SameRemainder { id, other, of } => {
                write!(
                    f,
                    "the ids {other} and {id} differ by a multiple of {of}, and in available mode two nodes must not: "
                )?;
                write!(f, "write another id for one of them")
            }
            WrongTopology::OtherName { found, name, by } => {
                write!(f, "{found} is {name} in {by}: use the same name in both")
            }
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Want::Text => "write a string in quotes",
            Want::Whole => "write an integer without quotes, sign or unit",
            Want::YesNo => "write true or false",
            Want::Table => "write a table of keys",
            Want::Object => "write an object, {…}",
            Want::List => "write a list of nodes, [{\"name\": …, \"ip\": …, \"id\": …}, …]",
            Want::OwnNode => "write {\"name\": …, \"id\": …} of this node, or start it with --node ID",
        })
    }
}

/// The choices as text: `"a", "b" or "c"`.
fn alternatives(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl From<WrongFile> for Wrong {
    fn from(wrong: WrongFile) -> Wrong {
        Wrong::File(wrong)
    }
}

impl From<WrongKey> for Wrong {
    fn from(wrong: WrongKey) -> Wrong {
        Wrong::Key(wrong)
    }
}

impl From<WrongValue> for Wrong {
    fn from(wrong: WrongValue) -> Wrong {
        Wrong::Value(wrong)
    }
}

impl From<WrongAccess> for Wrong {
    fn from(wrong: WrongAccess) -> Wrong {
        Wrong::Access(wrong)
    }
}

impl From<WrongTopology> for Wrong {
    fn from(wrong: WrongTopology) -> Wrong {
        Wrong::Topology(wrong)
    }
}
