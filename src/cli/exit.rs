//! The ends of a command: one line on stderr for people, and one exit code for scripts.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::dev::error::DevError;
use super::exec::end::ExecEnd;
use super::serve::error::ServeError;
use crate::client::CallError;
use crate::config::{Mistake, Mistakes, Source};
use crate::storage::StorageError;
use eldest_load::BenchError;

/// The text at the end of `eldest --help`.
pub const TABLE: &str = "\
Exit codes:
  0    done
  1    failed: a file, a port, an invalid answer
  2    bad usage, or mistakes in the configuration
  3    no node could be reached
  4    the cluster refused the call; its code is in the message
  5    damaged data was found
  6    not found (404), or the role has no holder
  7    conflict: it is held, already exists, or was lost (409, 410)
  8    a precondition failed: it has changed since it was read (412)
  9    not now, try again later: no leader, no majority, too many requests (421, 429, 503)
  10   `eldest status` or `eldest healthcheck` got its answer, and nobody leads
  11   `eldest doctor` has found warnings, and no errors
  12   `eldest doctor` or `eldest drill` has found something wrong
  70   the node ended because of an error
  130  interrupted by Ctrl-C before it was done (143: SIGTERM, 129: its terminal closed)
  134  an internal error; see the message before it
`eldest exec` exits with the code of the command that it runs; its help lists its own codes.";

#[derive(Debug)]
pub enum Failure {
    /// The reader of the output has gone. This is no failure.
    NobodyReads,
    Output(io::Error),
    File {
        path: PathBuf,
        error: io::Error,
    },
    /// The command has wide effects and was not confirmed.
    NotConfirmed {
        what: &'static str,
    },
    /// No node has this id or name.
    NoSuchNode {
        wanted: String,
        names: Vec<String>,
    },
    /// The cluster is not in the state that the command requires.
    NotNow {
        what: String,
    },
    /// The node or the cluster has answered, and there is no leader.
    NobodyLeads,
    /// A command that should be run has failed.
    Command {
        command: String,
        why: String,
    },
    /// A signal interrupted the command.
    BrokenOff {
        signal: i32,
    },
    /// The arguments are not a valid command.
    Usage {
        what: String,
    },
    /// A value is not valid JSON.
    NotJson {
        what: String,
    },
    NotHeld {
        role: String,
    },
    /// The machine provides no threads or no timers.
    NoRuntime(io::Error),
    /// The error of a call.
    Call(CallError),
    Storage(StorageError),
    /// The directory does not contain what was asked for.
    NothingThere {
        path: PathBuf,
        what: &'static str,
    },
    Damaged {
        what: Vec<String>,
    },
    /// Something will go wrong with the cluster unless an operator acts. The findings have been printed.
    Warned {
        count: usize,
    },
    /// Something is wrong with the cluster. The findings have been printed.
    Unwell {
        count: usize,
    },
    /// A certificate cannot be made or read.
    Certificate {
        why: String,
    },
    Config(Mistakes),
    Serve(ServeError),
    Dev(DevError),
    Bench(BenchError),
    /// An end of `eldest exec`, which has its own codes.
    Exec(ExecEnd),
}

impl Failure {
    pub fn code(&self) -> u8 {
        match self {
            Failure::NobodyReads => 0,
            Failure::Output(_)
            | Failure::File { .. }
            | Failure::Command { .. }
            | Failure::NoRuntime(_)
            | Failure::Certificate { .. } => 1,
            Failure::NotConfirmed { .. }
            | Failure::NoSuchNode { .. }
            | Failure::NotJson { .. }
            | Failure::Usage { .. } => 2,
            Failure::Call(CallError::NotAnAddress { .. }) => 2,
            Failure::Call(CallError::NotReached { .. }) => 3,
            Failure::Call(CallError::Refused(problem)) => of_status(problem.status),
            Failure::NotHeld { .. } => 6,
            Failure::NotNow { .. } => 9,
            Failure::NobodyLeads => 10,
            Failure::BrokenOff { signal } => 128u8.saturating_add(u8::try_from(*signal).unwrap_or(0)),
            Failure::Call(_) => 1,
            Failure::Bench(BenchError::NoLeader { .. }) => 3,
            Failure::Bench(_) | Failure::Dev(_) | Failure::Storage(_) | Failure::NothingThere { .. } => 1,
            Failure::Damaged { .. } => 5,
            Failure::Warned { .. } => 11,
            Failure::Unwell { .. } => 12,
            Failure::Config(_) | Failure::Serve(ServeError::Filter { .. }) => 2,
            Failure::Serve(ServeError::Ended(_)) => 70,
            Failure::Serve(_) => 1,
            Failure::Exec(end) => end.code(),
        }
    }

    /// The failure in the format of a cluster's problem. A failure of this program has its exit code as its code.
    pub fn document(&self) -> Value {
        let (code, title) = match self {
            Failure::Call(CallError::Refused(problem)) => {
                let mut document = Value::Object(problem.members.clone());
                document["type"] = format!("urn:eldest:problem:{}", problem.code).into();
                document["title"] = problem.title.clone().into();
                document["status"] = problem.status.into();
                document["detail"] = problem.detail.clone().into();
                document["code"] = problem.code.clone().into();
                document["retryable"] = problem.retryable.into();
                document["request_id"] = problem.request_id.clone().into();
                if let Some(source) = &problem.token_from {
                    document["token_from"] = source.clone().into();
                }
                document["exit_code"] = self.code().into();
                return document;
            }
            Failure::Call(CallError::NotReached { .. }) => ("not_reached", "No node could be reached"),
            Failure::Call(CallError::NoAnswer { .. }) => {
                ("no_answer", "A node accepted the call and did not answer")
            }
            Failure::NotHeld { .. } => ("not_held", "The role has no holder"),
            Failure::NotNow { .. } => ("not_now", "The cluster is not in the required state"),
            Failure::NobodyLeads => ("no_leader", "There is no leader"),
            Failure::Config(_) => ("wrong_configuration", "Mistakes in the configuration"),
            Failure::Damaged { .. } => ("damaged", "Damaged data was found"),
            _ if self.code() == 2 => ("usage", "Invalid command line"),
            _ => ("failed", "The command failed"),
        };
        let mut document = json!({
            "type": format!("urn:eldest:problem:{code}"),
            "title": title,
            "status": null,
            "detail": self.to_string(),
            "code": code,
            "retryable": matches!(self.code(), 3 | 9 | 10),
            "exit_code": self.code(),
        });
        match self {
            Failure::Config(mistakes) => document["mistakes"] = mistakes.iter().map(mistake).collect(),
            Failure::Damaged { what } => document["damage"] = json!(what),
            _ => {}
        }
        document
    }

    /// The failure of a write to stdout, whose reader may have gone.
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

/// One mistake of a configuration: where its value comes from, and what is wrong.
fn mistake(Mistake { place, wrong }: &Mistake) -> Value {
    let (source, file) = match &place.source {
        Source::Defaults => ("default", None),
        Source::File(file) => ("file", Some(file.display().to_string())),
        Source::Environment => ("environment", None),
        Source::Flags => ("flag", None),
    };
    let key = Some(&place.path).filter(|key| !key.is_empty());
    json!({
        "source": source,
        "file": file,
        "key": key,
        "line": place.spot.map(|spot| spot.line),
        "column": place.spot.map(|spot| spot.column),
        "place": place.to_string(),
        "wrong": wrong.to_string(),
    })
}

/// The exit codes by which scripts distinguish refusals.
fn of_status(status: u16) -> u8 {
    match status {
        404 => 6,
        409 | 410 => 7,
        412 => 8,
        421 | 429 | 503 => 9,
        _ => 4,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NobodyReads => write!(f, "the output pipe is closed"),
            Failure::Output(error) => write!(f, "cannot write the output: {error}"),
            Failure::File { path, error } => write!(f, "{}: {error}", path.display()),
            Failure::NotConfirmed { what } => write!(f, "{what}\nnothing was done; add --yes to do it"),
            Failure::NoSuchNode { wanted, names } => {
                write!(f, "no node {wanted}; the cluster has {}", names.join(", "))
            }
            Failure::NotJson { what } | Failure::Usage { what } | Failure::NotNow { what } => {
                write!(f, "{what}")
            }
            Failure::Command { command, why } => write!(f, "{command:?}: {why}"),
            Failure::BrokenOff { .. } => write!(f, "interrupted"),
            Failure::NobodyLeads => write!(f, "there is no leader; `eldest why leader` tells the reason"),
            Failure::NotHeld { role } => write!(f, "role {role} has no holder"),
            Failure::NoRuntime(error) => write!(f, "cannot start the async runtime: {error}"),
            Failure::Call(error) => write!(f, "{error}"),
            Failure::Storage(error) => write!(f, "{error}"),
            Failure::NothingThere { path, what } => write!(f, "{} holds no {what}", path.display()),
            Failure::Damaged { what } => write!(f, "damaged: {}", what.join("; ")),
            Failure::Warned { count: 1 } => write!(f, "1 warning"),
            Failure::Warned { count } => write!(f, "{count} warnings"),
            Failure::Unwell { count: 1 } => write!(f, "1 problem found"),
            Failure::Unwell { count } => write!(f, "{count} problems found"),
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
    use crate::client::Problem;
    use crate::config::{Flags, Sources, load};

    fn refused(status: u16) -> Failure {
        Failure::Call(CallError::Refused(Box::new(Problem { status, ..Problem::default() })))
    }

    #[test]
    fn the_table_names_every_code() {
        let failures = [
            Failure::NobodyReads,
            Failure::Call(CallError::Strange { url: String::new(), why: String::new() }),
            Failure::NotConfirmed { what: "" },
            Failure::Call(CallError::NotReached { tried: Vec::new() }),
            Failure::Damaged { what: Vec::new() },
            Failure::Warned { count: 1 },
            Failure::Unwell { count: 1 },
            Failure::Call(CallError::Refused(Box::default())),
            refused(404),
            refused(409),
            refused(412),
            refused(503),
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

    #[test]
    fn scripts_get_each_damage() {
        let document = Failure::Damaged { what: vec!["a".to_string(), "b".to_string()] }.document();
        assert_eq!((&document["code"], &document["exit_code"]), (&json!("damaged"), &json!(5)));
        assert_eq!(document["damage"], json!(["a", "b"]));
        assert_eq!(document["detail"], "damaged: a; b");
    }

    #[test]
    fn scripts_get_each_mistake() {
        let folder = std::env::temp_dir().join(format!("eldest-mistakes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let topology = folder.join("topology.json");
        std::fs::write(&topology, "{\n  \"clusters\": []}").expect("a file");
        let sources = Sources { topology: topology.clone(), config: None, env: [], flags: Flags::default() };
        let document = Failure::Config(load(sources).expect_err("a mistake")).document();
        assert_eq!(
            (&document["code"], &document["exit_code"]),
            (&json!("wrong_configuration"), &json!(2)),
            "{document}"
        );
        let mistakes = document["mistakes"].as_array().expect("a list");
        assert!(!mistakes.is_empty());
        for mistake in mistakes {
            let names: Vec<&String> = mistake.as_object().expect("an object").keys().collect();
            assert_eq!(names, ["column", "file", "key", "line", "place", "source", "wrong"]);
        }
        assert_eq!(mistakes[0]["file"], json!(topology.display().to_string()), "{document}");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
