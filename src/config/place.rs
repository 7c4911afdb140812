//! The source and the position of a value, and the name under which an operator finds it.

use std::fmt;
use std::path::PathBuf;

/// The prefix of every variable of this program.
pub const PREFIX: &str = "ELDEST_";

/// The separator between a table and a key in it.
pub const INSIDE: &str = "__";

/// The source of a value. The order is that of precedence: later sources overrule earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Defaults,
    File(PathBuf),
    Environment,
    Flags,
}

/// A line and a column of a file. Both are counted from one, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
}

/// The place of a setting. The order is that in which an operator corrects mistakes: file by file, and from top to
/// bottom where the position is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingPlace {
    pub source: Source,
    pub spot: Option<Spot>,
    /// A path such as `timing.lease_ms` or `clusters[1].ip`. It is empty for the source as a whole.
    pub path: String,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub value: T,
    pub place: SettingPlace,
}

/// The node that this process is, as the command line or the environment names it.
#[derive(Clone, Debug)]
pub struct ChosenNode {
    pub id: u64,
    pub source: Source,
}

impl Source {
    pub(super) fn whole(self) -> SettingPlace {
        self.at(String::new())
    }

    pub(super) fn at(self, path: impl Into<String>) -> SettingPlace {
        SettingPlace { source: self, path: path.into(), spot: None }
    }
}

/// The name under which an operator finds the setting: a key of a file, a variable or a flag.
impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, self.path.as_str()) {
            (Source::Environment, path) => write!(f, "{}", variable(path)),
            (Source::Flags, path) => write!(f, "{}", flag(path)),
            (Source::Defaults, path) => write!(f, "default: {path}"),
            (Source::File(file), "") => write!(f, "{}", file.display()),
            (Source::File(file), path) => write!(f, "{}: {path}", file.display()),
        }
    }
}

/// The variable that sets a key.
pub fn variable(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', INSIDE).to_uppercase())
}

/// The flag that sets a key: `log.level` is `--log-level`.
fn flag(path: &str) -> String {
    format!("--{}", path.replace(['.', '_'], "-"))
}
