//! What a client is told about a command that changed something.

use std::fmt::{self, Write};

use super::calls::Created;
use super::command::{Command, Operation};
use super::json::{write_list, write_text};
use crate::types::Text;

/// Follows from the command, its position and which documents were new, so that a retry is told the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What stands under `result`, for a batch the array under `results`.
    pub json: Text,
    /// A single `PutDoc` made a document where there was none.
    pub created: bool,
}

impl Reply {
    /// To a record that is no client's.
    pub(super) fn none() -> Reply {
        Reply { json: "null".into(), created: false }
    }

    /// `rev` is the revision of what its record wrote.
    pub(super) fn new(command: &Command, rev: &str, created: &Created) -> Reply {
        let created = |number: usize| {
            created
                .as_deref()
                .is_some_and(|created| created.iter().any(|other| usize::from(*other) == number))
        };
        let mut json = String::with_capacity(64);
        let written = match command {
            Command::Single(operation) => write_result(&mut json, operation, rev, created(0)),
            Command::Batch(operations) => {
                let numbered = operations.iter().enumerate();
                write_list(&mut json, numbered, |out, (n, operation)| {
                    write_result(out, operation, rev, created(n))
                })
            }
        };
        written.expect("a string takes everything");
        Reply { json: json.into(), created: matches!(command, Command::Single(_)) && created(0) }
    }
}

fn write_result(out: &mut dyn Write, operation: &Operation, rev: &str, created: bool) -> fmt::Result {
    match operation {
        Operation::CreateUser(user) => write_name(out, "name", &user.name)?,
        Operation::RemoveUser { name } => write_name(out, "name", name)?,
        Operation::CreateElection(election) => write_name(out, "name", &election.name)?,
        Operation::VoteElection { election, voter, .. } => {
            write_name(out, "election_name", election)?;
            out.write_str(",\"voter_name\":")?;
            write_text(out, voter)?;
        }
        Operation::PutDoc { key, .. } => {
            write_name(out, "key", key)?;
            write!(out, ",\"rev\":\"{rev}\",\"created\":{created}")?;
        }
        Operation::DeleteDoc { key, .. } => write_name(out, "key", key)?,
        Operation::ApplyConflict { id } | Operation::DropConflict { id } => write_name(out, "id", id)?,
        // What has become of a lease is read off the state.
        Operation::Lease(_) => out.write_char('{')?,
    }
    out.write_char('}')
}

fn write_name(out: &mut dyn Write, field: &str, name: &str) -> fmt::Result {
    write!(out, "{{\"{field}\":")?;
    write_text(out, name)
}
