//! Mistakes with where they stand, and the list of them.

use std::fmt;
use std::path::PathBuf;

use super::environment::variable;
use super::flags::flag;
use super::{Config, Loaded, Remark, Wrong};

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
pub struct Place {
    pub source: Source,
    pub spot: Option<Spot>,
    /// Such as `timing.lease_ms` or `clusters[1].ip`; empty for the source as a whole.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub place: Place,
    pub wrong: Wrong,
}

/// All of them, never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

/// What was noticed on the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    mistakes: Vec<Mistake>,
    remarks: Vec<Remark>,
    /// Which keys already have a mistake, and in whose word; one with no path is everything that a source says.
    spoiled: Vec<(Source, String)>,
}

impl Source {
    pub(super) fn whole(self) -> Place {
        self.at(String::new())
    }

    pub(super) fn at(self, path: impl Into<String>) -> Place {
        Place { source: self, path: path.into(), spot: None }
    }
}

impl Mistakes {
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }
}

impl IntoIterator for Mistakes {
    type Item = Mistake;
    type IntoIter = std::vec::IntoIter<Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Findings {
    pub fn mistake(&mut self, place: Place, wrong: impl Into<Wrong>) {
        self.mistakes.push(Mistake { place, wrong: wrong.into() });
    }

    /// A mistake that leaves the key without a value that other rules could judge.
    pub fn spoil(&mut self, place: Place, wrong: impl Into<Wrong>) {
        self.spoiled.push((place.source.clone(), place.path.clone()));
        self.mistake(place, wrong);
    }

    /// What was probably meant by an unknown key is not what the lower layers say.
    pub fn spoil_meant(&mut self, source: &Source, path: &str) {
        self.spoiled.push((source.clone(), path.to_string()));
    }

    /// Whether the value of a key, found in `source`, is what the operator meant.
    pub fn trusts(&self, source: &Source, path: &str) -> bool {
        let covers = |prefix: &str| match path.strip_prefix(prefix) {
            Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        };
        !self.spoiled.iter().any(|(by, prefix)| by >= source && covers(prefix))
    }

    pub fn remark(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }

    /// `config` is none only after a mistake.
    pub fn into_result(mut self, config: Option<Config>) -> Result<Loaded, Mistakes> {
        match config {
            Some(config) if self.mistakes.is_empty() => Ok(Loaded { config, remarks: self.remarks }),
            _ => {
                self.mistakes.sort_by(|a, b| a.place.cmp(&b.place));
                Err(Mistakes(self.mistakes))
            }
        }
    }
}

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(f, "{} mistake{plural} in the configuration:", self.0.len())?;
        self.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.wrong)?;
        match self.place.spot {
            Some(Spot { line, column }) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

/// The name under which an operator finds it: a key of a file, a variable or a flag.
impl fmt::Display for Place {
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
