//! The answer to a client's command: the reply if it changed something, or the reason why the rules rejected it.
//!
//! A rejection is judged against a state, so it is also a read of that state (P14).

use std::fmt::{self, Write};
use std::sync::Arc;

use super::lifetime::lease_path;
use super::operations::{Command, Operation};
use crate::store::encoding::date::text;
use crate::store::encoding::{TETHERED_MOST, TOKENS_MOST, write_list, write_text};
use crate::types::{LeaseName, Text, WallTime};

/// The numbers of the operations in a command that created a document.
/// 16 bits are enough: a batch has at most `OPERATIONS_MOST` operations.
pub type Created = Option<Arc<[u16]>>;

/// The reply to a command. It follows from the command, its position and which documents were new, so a retry gets the same
/// reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The value of `result`; for a batch, the array in `results`.
    pub json: Text,
    /// A single `PutDoc` created the document.
    pub created: bool,
}

impl Reply {
    /// The reply to a record that is not a client's.
    pub fn none() -> Reply {
        Reply { json: "null".into(), created: false }
    }

    /// `rev` is the revision of the values that the record wrote.
    pub(in crate::store) fn new(command: &Command, rev: &str, created: &Created) -> Reply {
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
        written.expect("writing to a String cannot fail");
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
        Operation::Token(operation) => write_name(out, "id", &operation.id().to_string())?,
        // The state shows the result of a lease operation.
        Operation::Lease(_) => out.write_char('{')?,
    }
    out.write_char('}')
}

fn write_name(out: &mut dyn Write, field: &str, name: &str) -> fmt::Result {
    write!(out, "{{\"{field}\":")?;
    write_text(out, name)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The number of the operation in its batch, counted from zero. A single operation has none.
    pub operation: Option<usize>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    Exists {
        thing: Thing,
        name: Text,
    },
    NotFound {
        thing: Thing,
        name: Text,
    },
    RuleViolated(Rule),
    /// The document does not meet the condition. Its revision is included if the document exists.
    PreconditionFailed {
        key: Text,
        current: Option<String>,
    },
    /// Another instance holds the role.
    RoleHeld {
        role: Text,
    },
    /// That token is not, or no longer, the role's.
    LeaseLost {
        role: Text,
    },
    /// The lease was granted under another secret (P53).
    WrongSecret,
    /// The lease that a document was to end with does not exist, or another token has it.
    LeaseNotHeld {
        lease: LeaseName,
        field: &'static str,
    },
    /// The write was bound to a role, and that token is not, or no longer, the role's (P59).
    RoleNotHeld {
        role: Text,
    },
    /// The maximum number of documents already ends with that lease.
    TooManyTethered {
        lease: LeaseName,
    },
    /// A document without a ttl cannot be renewed.
    NoTtl {
        key: Text,
    },
    /// The state, or the documents of one area, have reached the size that the leader allows (P55).
    StateFull {
        area: Option<Text>,
        used: u64,
        most: u64,
    },
    /// The state is already as requested, so no record is needed.
    Unchanged,
    /// The idempotency key was used for another call.
    KeyReused,
    /// Some parts of the document are missing when the restore ends, so nothing is put in place.
    NotStaged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    User,
    Election,
    Document,
    Conflict,
    Process,
    Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    UnknownVoter,
    UnknownChoice,
    GroupNotAdmitted,
    AlreadyVoted,
    ElectionOver,
    /// A document that is merged in would override more values than the journal of conflicts has room for.
    JournalFull,
    /// This cluster's clock is behind the time when the backup was written, or behind the backup's greatest token. Tokens that
    /// were granted after the backup are unknown (P57).
    TokenAhead {
        clock: WallTime,
        written: WallTime,
        token: u64,
    },
    /// A backup of another cluster would replace data that clients have written (P57).
    OtherCluster,
    TooManyTokens,
    TokenRevoked,
}

impl Rejection {
    /// The stable code of the HTTP contract.
    /// Programs read this code. The text of `Display` is for people, and may change.
    pub fn code(&self) -> &'static str {
        match self.reason {
            Reason::Exists { .. } => "exists",
            Reason::NotFound { .. } => "not_found",
            Reason::RuleViolated(_) => "rule_violated",
            Reason::PreconditionFailed { .. } => "precondition_failed",
            Reason::RoleHeld { .. } => "role_held",
            Reason::LeaseLost { .. } => "lease_lost",
            Reason::WrongSecret => "forbidden",
            Reason::LeaseNotHeld { .. } => "lease_not_held",
            Reason::RoleNotHeld { .. } => "role_not_held",
            Reason::StateFull { .. } => "state_full",
            Reason::TooManyTethered { .. } | Reason::NoTtl { .. } => "rule_violated",
            Reason::Unchanged => "unchanged",
            Reason::KeyReused => "idempotency_key_reused",
            Reason::NotStaged => "restore_given_up",
        }
    }
}

impl From<Reason> for Rejection {
    fn from(reason: Reason) -> Rejection {
        Rejection { operation: None, reason }
    }
}

impl Rule {
    pub fn name(self) -> &'static str {
        match self {
            Rule::UnknownVoter => "unknown_voter",
            Rule::UnknownChoice => "unknown_choice",
            Rule::GroupNotAdmitted => "group_not_admitted",
            Rule::AlreadyVoted => "already_voted",
            Rule::ElectionOver => "election_over",
            Rule::JournalFull => "journal_full",
            Rule::TokenAhead { .. } => "token_ahead",
            Rule::OtherCluster => "other_cluster",
            Rule::TooManyTokens => "too_many_tokens",
            Rule::TokenRevoked => "token_revoked",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(number) => write!(f, "operation {number}: {}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Exists { thing, name } => write!(f, "there is already {} {name:?}", thing.with_article()),
            Reason::NotFound { thing, name } => write!(f, "there is no {} {name:?}", thing.noun()),
            Reason::RuleViolated(rule) => write!(f, "{rule}"),
            Reason::PreconditionFailed { key, current: Some(rev) } => {
                write!(f, "document {key:?} has revision {rev}")
            }
            Reason::PreconditionFailed { key, current: None } => write!(f, "there is no document {key:?}"),
            Reason::RoleHeld { role } => write!(f, "another instance holds the role {role:?}"),
            Reason::LeaseLost { role } => write!(f, "this token of the role {role:?} is no longer valid"),
            Reason::WrongSecret => write!(f, "the secret is not the one under which it was granted"),
            Reason::LeaseNotHeld { lease, field: "token" } => {
                write!(f, "another token holds {}", lease_path(lease))
            }
            Reason::LeaseNotHeld { lease, .. } => write!(f, "{} is not held", lease_path(lease)),
            Reason::RoleNotHeld { role } => write!(f, "that token does not hold the role {role:?}"),
            Reason::TooManyTethered { lease } => {
                write!(
                    f,
                    "{TETHERED_MOST} documents depend on {} already, which is the maximum",
                    lease_path(lease)
                )
            }
            Reason::StateFull { area: None, used, most } => {
                write!(
                    f,
                    "the state has {used} bytes; the limit is {most}: delete something, or raise limits.state_bytes"
                )
            }
            Reason::StateFull { area: Some(area), used, most } => write!(
                f,
                "the documents under {area:?} have {used} bytes; the limit is {most}: delete some, or raise \
                    limits.prefix_bytes"
            ),
            Reason::NoTtl { key } => write!(f, "document {key:?} has no ttl"),
            Reason::Unchanged => write!(f, "nothing to change: it is already in that state"),
            Reason::KeyReused => write!(f, "this idempotency key belongs to another call"),
            Reason::NotStaged => write!(f, "some parts of the document are missing"),
        }
    }
}

impl Thing {
    fn noun(self) -> &'static str {
        match self {
            Thing::User => "user",
            Thing::Election => "election",
            Thing::Document => "document",
            Thing::Conflict => "conflict",
            Thing::Process => "process",
            Thing::Token => "token",
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            Thing::User => "a user",
            Thing::Election => "an election",
            Thing::Document => "a document",
            Thing::Conflict => "a conflict",
            Thing::Process => "a process",
            Thing::Token => "a token",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Rule::UnknownVoter => "the voter is not a user",
            Rule::UnknownChoice => "the election has no such choice",
            Rule::GroupNotAdmitted => "the election does not admit the voter's group",
            Rule::AlreadyVoted => "the voter has already voted in this election",
            Rule::ElectionOver => "the election is over",
            Rule::JournalFull => {
                "the journal of conflicts has no room for the values that this would overrule: drop or apply \
                    some of its entries first"
            }
            Rule::TokenAhead { clock, written, token } => return write_ahead(f, *clock, *written, *token),
            Rule::OtherCluster => {
                "the backup is of another cluster, and this one is not empty: use other_cluster=true to replace \
                    its data"
            }
            Rule::TokenRevoked => "a token with this id has been revoked: choose another id",
            Rule::TooManyTokens => {
                return write!(f, "there are {TOKENS_MOST} tokens, which is the maximum: revoke one first");
            }
        };
        write!(f, "{text}")
    }
}

/// Tokens follow the clock of the leader that grants them (P30).
fn write_ahead(f: &mut fmt::Formatter<'_>, clock: WallTime, written: WallTime, token: u64) -> fmt::Result {
    write!(f, "the leader's clock shows {} and is behind ", text(clock))?;
    match clock < written {
        true => write!(f, "the backup's clock, which showed {} when it was written", text(written))?,
        false => write!(
            f,
            "the backup's last fencing token, {token}, which was granted at {}",
            text(WallTime(token))
        )?,
    }
    write!(
        f,
        ": a token that was granted after the backup could be granted again. Correct the clocks (restart the \
            nodes if they were off by more than a day), or use token_floor=N, where no token ever granted is \
            greater than N"
    )
}

impl std::error::Error for Rejection {}
