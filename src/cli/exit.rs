//! What a command may end with. One line on stderr for people, one exit code for scripts.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::dev::error::DevError;
use super::exec::end::ExecEnd;
use super::serve::error::ServeError;
use crate::client::CallError;
use crate::config::Mistakes;
use crate::storage::StorageError;
use eldest_load::BenchError;

/// Shown at the end of `eldest --help`.
pub const TABLE: &str = "\
Exit codes:
  0    done
  1    failed: a file, a port, an answer that makes no sense
  2    bad usage, or mistakes in the configuration
  3    no node could be reached
  4    the cluster refused; its code is in the message
  5    damaged data was found
  70   the node ended by itself
  130  a second Ctrl-C ended it at once (143: a second SIGTERM)
  134  an internal error; the message before it says where
`eldest exec` ends with the code of the command that it runs; its own are in its help.";

#[derive(Debug)]
pub enum Failure {
    /// Whoever read the output has gone: no failure at all.
    NobodyReads,
    Output(io::Error),
    File {
        path: PathBuf,
        error: io::Error,
    },
    /// The command changes more than it seems to, and was not confirmed.
    NotConfirmed {
        what: &'static str,
    },
    /// The machine gives no threads or no timers.
    NoRuntime(io::Error),
    /// What a call came to.
    Call(CallError),
    Storage(StorageError),
    /// A directory without what was asked for.
    NothingThere {
        path: PathBuf,
        what: &'static str,
    },
    Damaged {
        what: Vec<String>,
    },
    /// One that cannot be made or read.
    Certificate {
        why: String,
    },
    Config(Mistakes),
    Serve(ServeError),
    Dev(DevError),
    Bench(BenchError),
    /// With codes of its own.
    Exec(ExecEnd),
}

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::NobodyReads => 0,
            Failure::Output(_)
            | Failure::File { .. }
            | Failure::NoRuntime(_)
            | Failure::Certificate { .. } => 1,
            Failure::NotConfirmed { .. } => 2,
            Failure::Call(CallError::NotAnAddress { .. }) => 2,
            Failure::Call(CallError::NotReached { .. }) => 3,
            Failure::Call(CallError::Refused(_)) => 4,
            Failure::Call(_) => 1,
            Failure::Bench(BenchError::NoLeader { .. }) => 3,
            Failure::Bench(_) | Failure::Dev(_) | Failure::Storage(_) | Failure::NothingThere { .. } => 1,
            Failure::Damaged { .. } => 5,
            Failure::Config(_) | Failure::Serve(ServeError::Filter { .. }) => 2,
            Failure::Serve(ServeError::Ended(_)) => 70,
            Failure::Serve(_) => 1,
            Failure::Exec(end) => end.code(),
        }
    }

    /// Whoever read stdout may have gone.
    pub fn output(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::NobodyReads,
            _ => Failure::Output(error),
        }
    }

    pub fn file(path: impl Into<PathBuf>) -> impl Fn(io::Error) -> Failure {
        let path = path.into();
        move |error| Failure::File { path: path.clone(), error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NobodyReads => write!(f, "nobody reads the output"),
            Failure::Output(error) => write!(f, "the output cannot be written: {error}"),
            Failure::File { path, error } => write!(f, "{}: {error}", path.display()),
            Failure::NotConfirmed { what } => write!(f, "{what}\nnothing was done; say --yes to do it"),
            Failure::NoRuntime(error) => write!(f, "no runtime: {error}"),
            Failure::Call(error) => write!(f, "{error}"),
            Failure::Storage(error) => write!(f, "{error}"),
            Failure::NothingThere { path, what } => write!(f, "{} holds no {what}", path.display()),
            Failure::Damaged { what } => write!(f, "damaged: {}", what.join("; ")),
            Failure::Certificate { why } => write!(f, "{why}"),
            Failure::Config(mistakes) => write!(f, "{mistakes}"),
            Failure::Serve(error) => write!(f, "{error}"),
            Failure::Bench(error) => write!(f, "{error}"),
            Failure::Dev(error) => write!(f, "{error}"),
            Failure::Exec(end) => write!(f, "{end}"),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::Bench(error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Failure {
        Failure::Storage(error)
    }
}

impl From<DevError> for Failure {
    fn from(error: DevError) -> Failure {
        Failure::Dev(error)
    }
}

impl From<ExecEnd> for Failure {
    fn from(end: ExecEnd) -> Failure {
        Failure::Exec(end)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::Serve(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_code() {
        let failures = [
            Failure::NobodyReads,
            Failure::Call(CallError::Strange { url: String::new(), why: String::new() }),
            Failure::NotConfirmed { what: "" },
            Failure::Call(CallError::NotReached { tried: Vec::new() }),
            Failure::Damaged { what: Vec::new() },
            Failure::Call(CallError::Refused(Box::default())),
        ];
        for failure in failures {
            let line = format!("\n  {:<3} ", failure.code());
            assert!(
                TABLE.contains(&line),
                "{failure:?} ends with {}, which is not in the table",
                failure.code()
            );
        }
    }

    #[test]
    fn a_file_is_named() {
        let failure = Failure::file("/no/such")(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(failure.to_string(), "/no/such: entity not found");
        assert_eq!(failure.code(), 1);
    }
}
