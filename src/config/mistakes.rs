//! Mistakes and remarks, and the lists of them.

use std::fmt;

use super::place::{SettingPlace, Source, Spot};
use super::remarks::ConfigRemark;
use super::wrong::Wrong;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub place: SettingPlace,
    pub wrong: Wrong,
}

/// All mistakes of a configuration. The list is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

/// The mistakes and remarks that were found while checking.
#[derive(Debug, Default)]
pub(super) struct Findings {
    mistakes: Vec<Mistake>,
    remarks: Vec<ConfigRemark>,
    /// The keys that already have a mistake, each with its source. An empty path means everything that the source
    /// sets.
    spoiled: Vec<(Source, String)>,
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
    pub fn mistake(&mut self, place: SettingPlace, wrong: impl Into<Wrong>) {
        self.mistakes.push(Mistake { place, wrong: wrong.into() });
    }

    /// Reports a mistake that leaves the key without a value that other rules could judge.
    pub fn spoil(&mut self, place: SettingPlace, wrong: impl Into<Wrong>) {
        self.spoiled.push((place.source.clone(), place.path.clone()));
        self.mistake(place, wrong);
    }

    /// Marks the key that an unknown key probably meant: its value in the lower layers is not what the operator
    /// wanted.
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

    pub fn remark(&mut self, remark: ConfigRemark) {
        self.remarks.push(remark);
    }

    /// Returns the result with the remarks on it, or all mistakes. `found` is `None` only after a mistake.
    pub fn into_result<T>(mut self, found: Option<T>) -> Result<(T, Vec<ConfigRemark>), Mistakes> {
        match found {
            Some(found) if self.mistakes.is_empty() => Ok((found, self.remarks)),
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
