//! The digest of a state: one number, and the version of its computation.

use std::fmt;
use std::str::FromStr;

/// The version of the computation that this binary uses for the digest of a state. A changed computation takes the next number:
/// during an upgrade nodes of two builds run side by side, and only digests of the same version can be compared (P25).
pub const DIGESTS: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    pub version: u32,
    pub value: u64,
}

impl Digest {
    /// A digest that this binary has computed.
    pub fn new(value: u64) -> Digest {
        Digest { version: DIGESTS, value }
    }

    /// Whether the two states are certainly different.
    /// Digests of two computations never contradict each other: equal states may have different ones (mutant
    /// `DigestsOfAnyVersion`). So states are not compared by `!=`.
    pub fn contradicts(self, other: Digest) -> bool {
        self.version == other.version && self.value != other.value
    }
}

/// `9c1f03aa00000000` for version 1, `2.9c1f03aa00000000` for a later version.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.version != 1 {
            write!(f, "{}.", self.version)?;
        }
        write!(f, "{:016x}", self.value)
    }
}

/// Text without a version has version 1: the first builds wrote no version.
impl FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Digest, Self::Err> {
        let (version, value) = text.split_once('.').unwrap_or(("1", text));
        Ok(Digest { version: version.parse()?, value: u64::from_str_radix(value, 16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_of_the_first_version() {
        for (text, version) in [("00000000000000ab", 1), ("2.00000000000000ab", 2)] {
            let digest = Digest { version, value: 0xab };
            assert_eq!((digest.to_string(), text.parse()), (text.to_string(), Ok(digest)));
        }
        assert!("2.".parse::<Digest>().is_err() && "x.1".parse::<Digest>().is_err());
    }

    #[test]
    fn only_digests_of_one_version_contradict_each_other() {
        let digest = |version, value| Digest { version, value };
        assert!(digest(1, 7).contradicts(digest(1, 8)));
        assert!(!digest(1, 7).contradicts(digest(1, 7)) && !digest(1, 7).contradicts(digest(2, 8)));
    }
}
