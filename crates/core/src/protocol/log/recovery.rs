//! What a bad line in the log means when a node starts (P27).

use crate::protocol::mutant::{self, Mutant};
use crate::types::Index;

/// A line that does not check, and how far the log was known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    pub index: Index,
    /// The greatest index that a marker in the log vouches for.
    pub synced: Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A write that power loss cut short: nobody was told of it. Cut, and go on.
    Torn,
    /// Something was lost that this node may have acknowledged: the disk comes back as a new one (P10).
    Doubtful,
}

pub fn judge(bad: BadLine) -> Tail {
    if bad.index > bad.synced || mutant::is_on(Mutant::CutDoubtfulTail) { Tail::Torn } else { Tail::Doubtful }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_never_vouched_for_is_torn() {
        assert_eq!(judge(BadLine { index: 21, synced: 20 }), Tail::Torn);
        assert_eq!(judge(BadLine { index: 20, synced: 20 }), Tail::Doubtful);
    }
}
