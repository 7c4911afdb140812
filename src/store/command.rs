//! What clients can ask for, and how it stands in the log: the seed's `type|JSON`.
//!
//! | type | command | JSON |
//! |---|---|---|
//! | 1 | CreateUser | `{"name", "group"?, "public_key"?, …}` as the client wrote it, on one line |
//! | 2 | RemoveUser | `{"name"}` |
//! | 3 | CreateElection | `{"name", "choices", "groups"?, "end_date"?, …}` as the client wrote it, on one line |
//! | 4 | VoteElection | `{"election_name", "voter_name", "choice"}` |
//! | 100 | Batch | `[{"type", "payload"}, …]` |
//! | 101 | PutDoc | `{"key", "if_rev"?, "if_absent"?, "value"}` |
//! | 102 | DeleteDoc | `{"key", "if_rev"?}` |
//! | 103 | ApplyConflict | `{"id"}`: what a merge overrode is written again |
//! | 104 | DropConflict | `{"id"}`: the merge was right, the journal may forget it |
//!
//! Those of roles and processes stand in `lease_command`.
//!
//! Unknown members are kept in users and elections, dropped from removals and votes, and refused for documents and conflicts, where a
//! misspelt condition would otherwise pass for none.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use super::json::{write_list, write_text};
use super::lease_command::LeaseOperation;
use crate::types::{Call, Format, Payload, Text};

/// The format of all commands so far (P23).
pub const COMMANDS: Format = Format(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    CreateUser = 1,
    RemoveUser = 2,
    CreateElection = 3,
    VoteElection = 4,
    Batch = 100,
    PutDoc = 101,
    DeleteDoc = 102,
    ApplyConflict = 103,
    DropConflict = 104,
    AcquireRole = 105,
    ReleaseRole = 106,
    EndLeases = 107,
    AgeLeases = 108,
    PutProcess = 117,
    RemoveProcess = 118,
}

/// One record's worth: all of it is applied or nothing (P12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Single(Operation),
    /// One at least, each judged by the state that those before it leave.
    Batch(Vec<Operation>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    CreateUser(Arc<NewUser>),
    RemoveUser {
        name: Text,
    },
    CreateElection(Arc<NewElection>),
    VoteElection {
        election: Text,
        voter: Text,
        choice: Text,
    },
    PutDoc {
        key: Text,
        value: Text,
        condition: Condition,
    },
    DeleteDoc {
        key: Text,
        condition: Condition,
    },
    ApplyConflict {
        id: Text,
    },
    DropConflict {
        id: Text,
    },
    /// Of a role or a process.
    Lease(Arc<LeaseOperation>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub name: Text,
    pub group: Option<Text>,
    /// The whole object, with the fields that mean nothing to us.
    pub text: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewElection {
    pub name: Text,
    pub choices: Vec<Text>,
    /// None admits everybody.
    pub groups: Option<BTreeSet<Text>>,
    /// Microseconds since 1970: votes stamped then or later come too late.
    pub ends: Option<i64>,
    /// The whole object, with the fields that mean nothing to us.
    pub text: Text,
}

/// What must hold of a document for a change to go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    None,
    /// `"if_rev": "12"`, HTTP's `If-Match: "12"`: it was last changed by that revision. Opaque text: one that was never
    /// given out matches nothing.
    Rev(Text),
    /// `"if_rev": "*"`, HTTP's `If-Match: *`.
    Present,
    /// `"if_absent": true`, HTTP's `If-None-Match: *`.
    Absent,
}

impl Kind {
    pub const ALL: [Kind; 15] = [
        Kind::CreateUser,
        Kind::RemoveUser,
        Kind::CreateElection,
        Kind::VoteElection,
        Kind::Batch,
        Kind::PutDoc,
        Kind::DeleteDoc,
        Kind::ApplyConflict,
        Kind::DropConflict,
        Kind::AcquireRole,
        Kind::ReleaseRole,
        Kind::EndLeases,
        Kind::AgeLeases,
        Kind::PutProcess,
        Kind::RemoveProcess,
    ];

    pub fn number(self) -> u16 {
        self as u16
    }

    pub fn numbered(number: u16) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// What clients call it: `storage_cmd`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::CreateUser => "CreateUser",
            Kind::RemoveUser => "RemoveUser",
            Kind::CreateElection => "CreateElection",
            Kind::VoteElection => "VoteElection",
            Kind::Batch => "Batch",
            Kind::PutDoc => "PutDoc",
            Kind::DeleteDoc => "DeleteDoc",
            Kind::ApplyConflict => "ApplyConflict",
            Kind::DropConflict => "DropConflict",
            Kind::AcquireRole => "AcquireRole",
            Kind::ReleaseRole => "ReleaseRole",
            Kind::EndLeases => "EndLeases",
            Kind::AgeLeases => "AgeLeases",
            Kind::PutProcess => "PutProcess",
            Kind::RemoveProcess => "RemoveProcess",
        }
    }

    /// Leases have routes of their own, because more than a record belongs to them.
    pub fn is_of_leases(self) -> bool {
        use Kind::{AcquireRole, AgeLeases, EndLeases, PutProcess, ReleaseRole, RemoveProcess};
        matches!(self, AcquireRole | ReleaseRole | EndLeases | AgeLeases | PutProcess | RemoveProcess)
    }

    /// What clients may send as a command.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name && !kind.is_of_leases())
    }
}

impl Command {
    pub fn operations(&self) -> &[Operation] {
        match self {
            Command::Single(operation) => std::slice::from_ref(operation),
            Command::Batch(operations) => operations,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Command::Single(operation) => operation.kind(),
            Command::Batch(_) => Kind::Batch,
        }
    }

    /// As it stands in the log: one line, without any control character.
    pub fn to_payload(&self, call: Option<Call>) -> Payload {
        let text = match self {
            Command::Single(operation) => operation.text(),
            Command::Batch(operations) => batch_text(operations).into(),
        };
        Payload { kind: self.kind().number(), format: COMMANDS, call, text }
    }
}

impl Operation {
    pub fn kind(&self) -> Kind {
        match self {
            Operation::CreateUser(_) => Kind::CreateUser,
            Operation::RemoveUser { .. } => Kind::RemoveUser,
            Operation::CreateElection(_) => Kind::CreateElection,
            Operation::VoteElection { .. } => Kind::VoteElection,
            Operation::PutDoc { .. } => Kind::PutDoc,
            Operation::DeleteDoc { .. } => Kind::DeleteDoc,
            Operation::ApplyConflict { .. } => Kind::ApplyConflict,
            Operation::DropConflict { .. } => Kind::DropConflict,
            Operation::Lease(operation) => operation.kind(),
        }
    }

    /// About how many bytes this takes in the log.
    pub fn size(&self) -> usize {
        match self {
            Operation::CreateUser(user) => user.text.len(),
            Operation::RemoveUser { name } => name.len(),
            Operation::CreateElection(election) => election.text.len(),
            Operation::VoteElection { election, voter, choice } => {
                election.len() + voter.len() + choice.len()
            }
            Operation::PutDoc { key, value, .. } => key.len() + value.len(),
            Operation::DeleteDoc { key, .. } => key.len(),
            Operation::ApplyConflict { id } | Operation::DropConflict { id } => id.len(),
            Operation::Lease(operation) => operation.size(),
        }
    }

    fn text(&self) -> Text {
        match self {
            Operation::CreateUser(user) => user.text.clone(),
            Operation::CreateElection(election) => election.text.clone(),
            _ => {
                const REST: usize = 64;
                let mut text = String::with_capacity(self.size() + REST);
                self.write(&mut text).expect("a string takes everything");
                text.into()
            }
        }
    }

    fn write(&self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Operation::CreateUser(user) => out.write_str(&user.text),
            Operation::CreateElection(election) => out.write_str(&election.text),
            Operation::RemoveUser { name } => {
                out.write_str("{\"name\":")?;
                write_text(out, name)?;
                out.write_char('}')
            }
            Operation::VoteElection { election, voter, choice } => {
                out.write_str("{\"election_name\":")?;
                write_text(out, election)?;
                out.write_str(",\"voter_name\":")?;
                write_text(out, voter)?;
                out.write_str(",\"choice\":")?;
                write_text(out, choice)?;
                out.write_char('}')
            }
            Operation::PutDoc { key, value, condition } => {
                write_key(out, key, condition)?;
                write!(out, ",\"value\":{value}}}")
            }
            Operation::DeleteDoc { key, condition } => {
                write_key(out, key, condition)?;
                out.write_char('}')
            }
            Operation::ApplyConflict { id } | Operation::DropConflict { id } => {
                out.write_str("{\"id\":")?;
                write_text(out, id)?;
                out.write_char('}')
            }
            Operation::Lease(operation) => operation.write(out),
        }
    }
}

fn write_key(out: &mut dyn Write, key: &str, condition: &Condition) -> fmt::Result {
    out.write_str("{\"key\":")?;
    write_text(out, key)?;
    match condition {
        Condition::None => Ok(()),
        Condition::Present => out.write_str(",\"if_rev\":\"*\""),
        Condition::Absent => out.write_str(",\"if_absent\":true"),
        Condition::Rev(rev) => {
            out.write_str(",\"if_rev\":")?;
            write_text(out, rev)
        }
    }
}

fn batch_text(operations: &[Operation]) -> String {
    const REST: usize = 96;
    let size: usize = operations.iter().map(|operation| operation.size() + REST).sum();
    let mut text = String::with_capacity(size);
    let written = write_list(&mut text, operations, |out, operation| {
        write!(out, "{{\"type\":{},\"payload\":", operation.kind().number())?;
        operation.write(out)?;
        out.write_char('}')
    });
    written.expect("a string takes everything");
    text
}
