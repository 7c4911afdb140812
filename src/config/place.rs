//! Who said what, where it stands, and the name under which an operator finds it.

use std::fmt;
use std::path::PathBuf;

/// Every variable of ours begins like this.
pub const PREFIX: &str = "ELDEST_";

/// Between a table and a key in it.
pub const INSIDE: &str = "__";

/// Who said it. The order is that of precedence: later ones overrule earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Defaults,
    File(PathBuf),
    Environment,
    Flags,
}

/// A line and a column of a file, both counted from one; the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
}

/// In the order in which somebody corrects: file by file, from top to bottom where that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingPlace {
    pub source: Source,
    pub spot: Option<Spot>,
    /// Such as `timing.lease_ms` or `clusters[1].ip`; empty for the source as a whole.
    pub path: String,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Found<T> {
    pub value: T,
    pub place: SettingPlace,
}

/// A process or file that is told which node it is.
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

/// The name under which an operator finds it: a key of a file, a variable or a flag.
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
