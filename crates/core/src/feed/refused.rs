//! Why nobody reads along.

use super::mark::Id;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The place named is yet to come: this node is behind the one that named it.
    Ahead,
    /// What follows the place named is not kept, or not in this history. From the oldest place on nothing is missing.
    Compacted { oldest: Id },
    /// The place is in a history that this node knows nothing of: yet to begin here, or of another cluster (P60).
    OtherHistory { oldest: Id },
    /// The node starts, or is about to end.
    Closed,
}
