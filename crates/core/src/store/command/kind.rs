//! The kinds of commands: the number that stands in the log, and the name that clients use.

use crate::types::{FORMAT, Format};

/// The newest format of commands that this binary reads (P23).
pub const COMMANDS: Format = FORMAT;

/// The format of commands that give a document an end, and of token commands. They are sent only to nodes that have shown that
/// they read it.
pub const ENDINGS: Format = Format(2);

/// The format of writes on condition of a role.
pub const HOLDINGS: Format = Format(3);

/// The format of the last step of a restore from another cluster, or from an earlier time. That step raises the last token, or
/// begins a history.
pub const FOREIGN: Format = Format(4);

/// The numbers stand in logs and never change. No number may mean two kinds of records: a node would read one as the
/// other. Missing here are those of the protocol's records (0, 110 to 112, 115, 116) and of the steps of a restore
/// (109, 113, 114).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandKind {
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

impl CommandKind {
    pub const ALL: [CommandKind; 17] = [
        CommandKind::CreateUser,
        CommandKind::RemoveUser,
        CommandKind::CreateElection,
        CommandKind::VoteElection,
        CommandKind::Batch,
        CommandKind::PutDoc,
        CommandKind::DeleteDoc,
        CommandKind::ApplyConflict,
        CommandKind::DropConflict,
        CommandKind::AcquireRole,
        CommandKind::ReleaseRole,
        CommandKind::EndLeases,
        CommandKind::AgeLeases,
        CommandKind::PutProcess,
        CommandKind::RemoveProcess,
        CommandKind::CreateToken,
        CommandKind::RevokeToken,
    ];

    pub fn number(self) -> u16 {
        self as u16
    }

    pub fn numbered(number: u16) -> Option<CommandKind> {
        CommandKind::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name that clients use in `storage_cmd`.
    pub fn name(self) -> &'static str {
        match self {
            CommandKind::CreateUser => "CreateUser",
            CommandKind::RemoveUser => "RemoveUser",
            CommandKind::CreateElection => "CreateElection",
            CommandKind::VoteElection => "VoteElection",
            CommandKind::Batch => "Batch",
            CommandKind::PutDoc => "PutDoc",
            CommandKind::DeleteDoc => "DeleteDoc",
            CommandKind::ApplyConflict => "ApplyConflict",
            CommandKind::DropConflict => "DropConflict",
            CommandKind::AcquireRole => "AcquireRole",
            CommandKind::ReleaseRole => "ReleaseRole",
            CommandKind::EndLeases => "EndLeases",
            CommandKind::AgeLeases => "AgeLeases",
            CommandKind::PutProcess => "PutProcess",
            CommandKind::RemoveProcess => "RemoveProcess",
            CommandKind::CreateToken => "CreateToken",
            CommandKind::RevokeToken => "RevokeToken",
        }
    }

    /// Leases have separate routes, because they involve more than a record.
    pub fn is_of_leases(self) -> bool {
        use CommandKind::{AcquireRole, AgeLeases, EndLeases, PutProcess, ReleaseRole, RemoveProcess};
        matches!(self, AcquireRole | ReleaseRole | EndLeases | AgeLeases | PutProcess | RemoveProcess)
    }

    /// Tokens have separate routes, too, because they are orders.
    fn is_of_tokens(self) -> bool {
        matches!(self, CommandKind::CreateToken | CommandKind::RevokeToken)
    }

    /// Whether the command always is a whole record: it cannot be in a batch, and clients cannot send it as a command.
    pub fn stands_alone(self) -> bool {
        self.is_of_leases() || self.is_of_tokens()
    }

    /// The kind with this name, if clients may send it as a command.
    pub fn named(name: &str) -> Option<CommandKind> {
        CommandKind::ALL.into_iter().find(|kind| kind.name() == name && !kind.stands_alone())
    }
}
