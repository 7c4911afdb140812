//! What a command may end with. One line on stderr for people, one exit code for scripts.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use super::bench::BenchError;
use super::client::{Problem, Unreached};
use super::dev::DevError;
use super::exec::ExecEnd;
use super::out::note;
use super::serve::ServeError;
use crate::config::Mistakes;
use crate::storage::StorageError;

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
    NotAnAddress {
        text: String,
        why: &'static str,
    },
    /// The command changes more than it seems to, and was not confirmed.
    NotConfirmed {
        what: &'static str,
    },
    /// The machine gives no threads or no timers.
    NoRuntime(io::Error),
    /// The client could not be set up at all.
    NoClient(reqwest::Error),
    NotReachable(Vec<Unreached>),
    /// The request left, and no whole answer came.
    NoAnswer {
        url: String,
        why: String,
    },
    /// An answer, but not one of Eldest's.
    Strange {
        url: String,
        why: String,
    },
    Refused(Box<Problem>),
    Storage(StorageError),
    /// A directory without what was asked for.
    NothingThere {
        path: PathBuf,
        what: &'static str,
    },
    Damaged {
        what: Vec<String>,
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
            Failure::Output(_) | Failure::File { .. } | Failure::NoClient(_) | Failure::NoRuntime(_) => 1,
            Failure::NoAnswer { .. } | Failure::Strange { .. } => 1,
            Failure::NotAnAddress { .. } | Failure::NotConfirmed { .. } => 2,
            Failure::Bench(BenchError::NoLeader { .. }) => 3,
            Failure::Bench(_) | Failure::Dev(_) | Failure::Storage(_) | Failure::NothingThere { .. } => 1,
            Failure::Damaged { .. } => 5,
            Failure::Config(_) | Failure::Serve(ServeError::Filter { .. }) => 2,
            Failure::Serve(ServeError::Ended(_)) => 70,
            Failure::Serve(_) => 1,
            Failure::NotReachable(_) => 3,
            Failure::Refused(_) => 4,
            Failure::Exec(end) => end.code(),
        }
    }

    /// Says on stderr what happened, and turns it into the process's end.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Failure::NobodyReads) && !matches!(self, Failure::Exec(end) if end.is_silent()) {
            note(&self.to_string());
        }
        ExitCode::from(self.code())
    }

    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Failure {
        let path = path.into();
        move |error| Failure::File { path, error }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NobodyReads => write!(f, "nobody reads the output"),
            Failure::Output(error) => write!(f, "the output cannot be written: {error}"),
            Failure::File { path, error } => write!(f, "{}: {error}", path.display()),
            Failure::NotAnAddress { text, why } => write!(f, "{text:?} is no address of a node: {why}"),
            Failure::NotConfirmed { what } => write!(f, "{what}\nnothing was done; say --yes to do it"),
            Failure::NoRuntime(error) => write!(f, "no runtime: {error}"),
            Failure::NoClient(error) => write!(f, "no HTTP client: {}", root_of(error)),
            Failure::NotReachable(tried) => {
                let tried: Vec<String> = tried.iter().map(Unreached::to_string).collect();
                write!(f, "no node can be reached: {}", tried.join("; "))
            }
            Failure::NoAnswer { url, why } => {
                write!(f, "{url} took the request and did not answer: {why}; it may or may not have happened")
            }
            Failure::Strange { url, why } => write!(f, "{url} does not answer like a node of Eldest: {why}"),
            Failure::Storage(error) => write!(f, "{error}"),
            Failure::NothingThere { path, what } => write!(f, "{} holds no {what}", path.display()),
            Failure::Damaged { what } => write!(f, "damaged: {}", what.join("; ")),
            Failure::Config(mistakes) => write!(f, "{mistakes}"),
            Failure::Serve(error) => write!(f, "{error}"),
            Failure::Bench(error) => write!(f, "{error}"),
            Failure::Dev(error) => write!(f, "{error}"),
            Failure::Refused(problem) => write!(f, "{problem}"),
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

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        Failure::Serve(error)
    }
}

/// The innermost cause: what a person can act on.
pub fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_code() {
        let failures = [
            Failure::NobodyReads,
            Failure::Strange { url: String::new(), why: String::new() },
            Failure::NotConfirmed { what: "" },
            Failure::NotReachable(Vec::new()),
            Failure::Damaged { what: Vec::new() },
            Failure::Refused(Box::default()),
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
