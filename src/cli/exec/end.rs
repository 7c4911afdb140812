//! The ends of `eldest exec`, with their exit codes.

use std::fmt;

use crate::client::Error;

/// The number of the signal that ended the command is added to this.
const SIGNALLED: i32 = 128;

#[derive(Debug, PartialEq, Eq)]
pub enum ExecEnd {
    /// The command's own exit code.
    Code(i32),
    /// A signal ended the command, or the wait for the role.
    Signal(i32),
    /// The options are wrong.
    Usage {
        why: String,
    },
    Held {
        why: String,
    },
    Lost {
        role: String,
    },
    /// The cluster could not be asked, or this machine could not start a process.
    Failed {
        why: String,
    },
    CannotRun {
        command: String,
        why: String,
    },
    NotFound {
        command: String,
    },
}

impl ExecEnd {
    pub fn code(&self) -> u8 {
        match self {
            ExecEnd::Code(code) => low_byte(*code),
            ExecEnd::Signal(number) => low_byte(SIGNALLED + number),
            ExecEnd::Usage { .. } => 2,
            ExecEnd::Held { .. } => 121,
            ExecEnd::Lost { .. } => 122,
            ExecEnd::Failed { .. } => 125,
            ExecEnd::CannotRun { .. } => 126,
            ExecEnd::NotFound { .. } => 127,
        }
    }

    /// Whether no message is printed. The command's own output needs no further words.
    pub fn is_silent(&self) -> bool {
        matches!(self, ExecEnd::Code(_) | ExecEnd::Signal(_))
    }

    pub fn of_asking(error: Error) -> ExecEnd {
        let why = error.to_string();
        match error {
            Error::RoleHeld(_) => ExecEnd::Held { why },
            Error::BadNode { .. } | Error::BadOption { .. } => ExecEnd::Usage { why },
            _ => ExecEnd::Failed { why },
        }
    }
}

/// The low byte, which is what the system keeps of an exit code.
fn low_byte(code: i32) -> u8 {
    (code & 0xff) as u8
}

impl fmt::Display for ExecEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecEnd::Code(code) => write!(f, "the command exited with {code}"),
            ExecEnd::Signal(number) => write!(f, "ended by signal {number}"),
            ExecEnd::Usage { why } | ExecEnd::Held { why } | ExecEnd::Failed { why } => write!(f, "{why}"),
            ExecEnd::Lost { role } => {
                write!(f, "the lease of role {role:?} was lost; the command was killed")
            }
            ExecEnd::CannotRun { command, why } => write!(f, "{command}: {why}"),
            ExecEnd::NotFound { command } => write!(f, "{command}: no such command"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        let text = String::new;
        let ends = [
            (ExecEnd::Code(7), 7),
            (ExecEnd::Signal(9), 137),
            (ExecEnd::Held { why: text() }, 121),
            (ExecEnd::Lost { role: text() }, 122),
            (ExecEnd::Failed { why: text() }, 125),
            (ExecEnd::CannotRun { command: text(), why: text() }, 126),
            (ExecEnd::NotFound { command: text() }, 127),
            (ExecEnd::of_asking(Error::Unavailable { tried: Vec::new() }), 125),
            (ExecEnd::of_asking(Error::BadOption { name: "ttl", why: "" }), 2),
        ];
        for (end, code) in ends {
            assert_eq!(end.code(), code, "{end:?}");
        }
    }
}
