//! The names of files and folders: `<generation>/<from>-<to>.snap`, in digits that sort like the numbers.
//!
//! A name in any other form does not count. So a file that was renamed to `.bad`, or that a person left there under another
//! name, is never read as a part of the chain.

use std::path::{Path, PathBuf};

use crate::types::Index;

/// The two states that a file leads from and to. From zero it is a whole state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    pub from: Index,
    pub to: Index,
}

impl Stretch {
    pub fn file_name(self) -> String {
        format!("{:020}-{:020}.snap", self.from, self.to)
    }

    /// Returns `None` for every name that `file_name` does not produce.
    pub fn named(name: &str) -> Option<Stretch> {
        let (from, to) = name.strip_suffix(".snap")?.split_once('-')?;
        let stretch = Stretch { from: from.parse().ok()?, to: to.parse().ok()? };
        (stretch.from < stretch.to && stretch.file_name() == name).then_some(stretch)
    }

    pub fn covers(self, other: Stretch) -> bool {
        self.from <= other.from && other.to <= self.to
    }
}

/// A chain's folder. A chain that replaces another has a greater number; zero means no chain yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(pub u64);

impl Generation {
    pub fn next(self) -> Generation {
        Generation(self.0 + 1)
    }

    pub fn folder(self, dir: &Path) -> PathBuf {
        dir.join(self.name())
    }

    pub fn named(name: &str) -> Option<Generation> {
        let generation = Generation(name.parse().ok()?);
        // Zero means no chain, and there must be a next number.
        (generation.0 > 0 && generation.0 < u64::MAX && generation.name() == name).then_some(generation)
    }

    fn name(self) -> String {
        format!("{:08}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_one_stretch() {
        let stretch = Stretch { from: 0, to: u64::MAX };
        let name = "00000000000000000000-18446744073709551615.snap";
        assert_eq!(stretch.file_name(), name);
        assert_eq!(Stretch::named(name), Some(stretch));
        let others = [
            "0-10.snap",
            "00000000000000000010-00000000000000000010.snap",
            "00000000000000000010-00000000000000000020.snap.bad",
            "00000000000000000010-+0000000000000000020.snap",
            "00000000000000000010-99999999999999999999.snap",
            "1.tmp",
        ];
        assert!(others.iter().all(|name| Stretch::named(name).is_none()));
    }

    #[test]
    fn a_folder_stands_for_one_generation() {
        assert_eq!(Generation::named("00000007"), Some(Generation(7)));
        assert!(["00000000", "7", "+0000007", "00000007.tmp"].iter().all(|n| Generation::named(n).is_none()));
    }
}
