//! The commands of clients, and their form in the log: `type|JSON`.
//!
//! | type | command | JSON |
//! |---|---|---|
//! | 1 | CreateUser | `{"name", "group"?, "public_key"?, …}` as the client wrote it, on one line |
//! | 2 | RemoveUser | `{"name"}` |
//! | 3 | CreateElection | `{"name", "choices", "groups"?, "end_date"?, …}` as the client wrote it, on one line |
//! | 4 | VoteElection | `{"election_name", "voter_name", "choice"}` |
//! | 100 | Batch | `[{"type", "payload"}, …]` |
//! | 101 | PutDoc | `{"key", "if_rev"?, "if_absent"?, "if_role"?, "role_token"?, "ttl_ms"?, "with"?, "token"?, "value"}`; see `lifetime` |
//! | 102 | DeleteDoc | `{"key", "if_rev"?, "if_role"?, "role_token"?}` |
//! | 103 | ApplyConflict | `{"id"}`: the value that a merge overrode is written again |
//! | 104 | DropConflict | `{"id"}`: the merge was right, the entry is removed from the journal |
//!
//! The commands of roles and processes are in `leases`, those of tokens in `tokens`.
//!
//! Unknown members are kept in users and elections, dropped from removals and votes, and refused for documents and conflicts.
//! There, a misspelt condition would otherwise count as no condition.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use super::holding::Holding;
use super::kind::{CommandKind, ENDINGS, HOLDINGS};
use super::leases::LeaseOperation;
use super::lifetime::Ending;
use super::tokens::{NewToken, TokenOperation};
use crate::store::access::TokenId;
use crate::store::encoding::{write_list, write_text};
use crate::types::{Format, KeyedCall, Payload, Text};

/// The content of one record: all of it is applied, or none of it (P12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Single(Operation),
    /// At least one operation. Each is judged by the state that the operations before it leave.
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
        condition: DocCondition,
        holder: Option<Holding>,
        ending: Ending,
    },
    DeleteDoc {
        key: Text,
        condition: DocCondition,
        holder: Option<Holding>,
    },
    ApplyConflict {
        id: Text,
    },
    DropConflict {
        id: Text,
    },
    /// An operation on roles or processes.
    Lease(Arc<LeaseOperation>),
    /// An operation on clients' tokens.
    Token(TokenOperation),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub name: Text,
    pub group: Option<Text>,
    /// The whole object, including the fields that the store does not interpret.
    pub text: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewElection {
    pub name: Text,
    pub choices: Vec<Text>,
    /// `None` admits all groups.
    pub groups: Option<BTreeSet<Text>>,
    /// Microseconds since 1970. Votes with this stamp or a later one are too late.
    pub ends: Option<i64>,
    /// The whole object, including the fields that the store does not interpret.
    pub text: Text,
}

/// The condition that a document must meet for a change to go through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DocCondition {
    #[default]
    None,
    /// `"if_rev": "12"`, HTTP's `If-Match: "12"`: the document's last change must have that revision. The text is opaque: a
    /// revision that was never given out matches nothing.
    Rev(Text),
    /// `"if_rev": "*"`, HTTP's `If-Match: *`.
    Present,
    /// `"if_absent": true`, HTTP's `If-None-Match: *`.
    Absent,
}

impl Command {
    pub fn create_token(new: NewToken) -> Command {
        Command::Single(Operation::Token(TokenOperation::Create(new.into())))
    }

    pub fn revoke_token(id: TokenId) -> Command {
        Command::Single(Operation::Token(TokenOperation::Revoke { id }))
    }

    pub fn operations(&self) -> &[Operation] {
        match self {
            Command::Single(operation) => std::slice::from_ref(operation),
            Command::Batch(operations) => operations,
        }
    }

    /// The command as every node reads it from its record: without the secrets that the caller has shown.
    pub fn as_recorded(&self) -> Cow<'_, Command> {
        let shows = |operation: &Operation| matches!(operation, Operation::PutDoc { ending, .. } if ending.shows_a_secret());
        if !self.operations().iter().any(shows) {
            return Cow::Borrowed(self);
        }
        let mut recorded = self.clone();
        let operations = match &mut recorded {
            Command::Single(operation) => std::slice::from_mut(operation),
            Command::Batch(operations) => operations,
        };
        for operation in operations {
            if let Operation::PutDoc { ending, .. } = operation {
                ending.hide_secret();
            }
        }
        Cow::Owned(recorded)
    }

    pub fn kind(&self) -> CommandKind {
        match self {
            Command::Single(operation) => operation.kind(),
            Command::Batch(_) => CommandKind::Batch,
        }
    }

    /// The command in the form that the log has: one line, without control characters.
    pub fn to_payload(&self, call: Option<KeyedCall>) -> Payload {
        let text = match self {
            Command::Single(operation) => operation.text(),
            Command::Batch(operations) => batch_text(operations).into(),
        };
        Payload { kind: self.kind().number(), format: self.format(), call, text }
    }

    /// The format that a reader of this record needs (P23).
    fn format(&self) -> Format {
        let of_one = |operation: &Operation| match operation {
            Operation::PutDoc { holder: Some(_), .. } | Operation::DeleteDoc { holder: Some(_), .. } => {
                HOLDINGS
            }
            Operation::PutDoc { ending, .. } if !ending.is_none() => ENDINGS,
            Operation::Lease(operation) if operation.names_docs() => ENDINGS,
            Operation::Token(_) => ENDINGS,
            _ => Format(1),
        };
        // A batch needs the format of its newest operation.
        self.operations().iter().map(of_one).max().unwrap_or(Format(1))
    }
}

impl Operation {
    pub fn kind(&self) -> CommandKind {
        match self {
            Operation::CreateUser(_) => CommandKind::CreateUser,
            Operation::RemoveUser { .. } => CommandKind::RemoveUser,
            Operation::CreateElection(_) => CommandKind::CreateElection,
            Operation::VoteElection { .. } => CommandKind::VoteElection,
            Operation::PutDoc { .. } => CommandKind::PutDoc,
            Operation::DeleteDoc { .. } => CommandKind::DeleteDoc,
            Operation::ApplyConflict { .. } => CommandKind::ApplyConflict,
            Operation::DropConflict { .. } => CommandKind::DropConflict,
            Operation::Lease(operation) => operation.kind(),
            Operation::Token(operation) => operation.kind(),
        }
    }

    /// The approximate size in the log, in bytes.
    /// The bound on batches counts it, and so does the estimate of what a command adds to the state (`quota`).
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
            Operation::Token(operation) => operation.size(),
        }
    }

    fn text(&self) -> Text {
        match self {
            Operation::CreateUser(user) => user.text.clone(),
            Operation::CreateElection(election) => election.text.clone(),
            _ => {
                const REST: usize = 64;
                let mut text = String::with_capacity(self.size() + REST);
                self.write(&mut text).expect("writing to a String cannot fail");
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
            Operation::PutDoc { key, value, condition, holder, ending } => {
                write_key(out, key, condition)?;
                holder.iter().try_for_each(|holder| holder.write(out))?;
                ending.write(out)?;
                write!(out, ",\"value\":{value}}}")
            }
            Operation::DeleteDoc { key, condition, holder } => {
                write_key(out, key, condition)?;
                holder.iter().try_for_each(|holder| holder.write(out))?;
                out.write_char('}')
            }
            Operation::ApplyConflict { id } | Operation::DropConflict { id } => {
                out.write_str("{\"id\":")?;
                write_text(out, id)?;
                out.write_char('}')
            }
            Operation::Lease(operation) => operation.write(out),
            Operation::Token(operation) => operation.write(out),
        }
    }
}

fn write_key(out: &mut dyn Write, key: &str, condition: &DocCondition) -> fmt::Result {
    out.write_str("{\"key\":")?;
    write_text(out, key)?;
    match condition {
        DocCondition::None => Ok(()),
        DocCondition::Present => out.write_str(",\"if_rev\":\"*\""),
        DocCondition::Absent => out.write_str(",\"if_absent\":true"),
        DocCondition::Rev(rev) => {
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
    written.expect("writing to a String cannot fail");
    text
}
