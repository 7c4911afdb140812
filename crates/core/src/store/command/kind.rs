//! The kinds of commands, by the number that stands in the log and the name that clients use.

use crate::types::{FORMAT, Format};

/// The newest format of commands that this binary reads (P23).
pub const COMMANDS: Format = FORMAT;

/// Of commands that say when a document ends, and of tokens: nodes that have not shown that they read it cannot be sent one.
pub const ENDINGS: Format = Format(2);

/// Of writes in the name of a role.
pub const HOLDINGS: Format = Format(3);

/// Of the end of a restore of what another cluster, or an earlier time, knew: it raises the last token, or begins a history.
pub const FOREIGN: Format = Format(4);

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
    CreateToken = 121,
    RevokeToken = 122,
}

impl Kind {
    pub const ALL: [Kind; 17] = [
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
        Kind::CreateToken,
        Kind::RevokeToken,
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
            Kind::CreateToken => "CreateToken",
            Kind::RevokeToken => "RevokeToken",
        }
    }

    /// Leases have routes of their own, because more than a record belongs to them.
    pub fn is_of_leases(self) -> bool {
        use Kind::{AcquireRole, AgeLeases, EndLeases, PutProcess, ReleaseRole, RemoveProcess};
        matches!(self, AcquireRole | ReleaseRole | EndLeases | AgeLeases | PutProcess | RemoveProcess)
    }

    /// Tokens do, too: they are orders.
    fn is_of_tokens(self) -> bool {
        matches!(self, Kind::CreateToken | Kind::RevokeToken)
    }

    /// Whether it is a record of its own: no batch holds it, and no client sends it as a command.
    pub fn stands_alone(self) -> bool {
        self.is_of_leases() || self.is_of_tokens()
    }

    /// What clients may send as a command.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name && !kind.stands_alone())
    }
}
