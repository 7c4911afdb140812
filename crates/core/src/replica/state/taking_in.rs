//! A state from another node, from its arrival until the disk follows it.

use crate::protocol::{Envelope, SnapshotMeta};
use crate::replica::io::Prepared;
use crate::store::{Key, Print};
use crate::types::{Index, Position};

/// It has come, and what it leads to is being prepared (P49).
#[derive(Clone, Debug)]
pub(in crate::replica) struct TakingIn {
    /// What it came with. The protocol is yet to hear of it.
    pub envelope: Envelope,
    pub basis: Basis,
    /// Where what is prepared was to stand.
    pub at: Position,
    pub prepared: Option<Box<Prepared>>,
}

/// What is prepared holds for as long as this is so.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) enum Basis {
    /// A merge: the elder's state is this one, whatever records its holds take meanwhile.
    State(Print),
    /// An override: the log ends here, and so says what it comes to.
    Log(Position),
}

/// What the state has just become by a merge or an override.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Rebase {
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub chain: u32,
    /// Each entry that is not as it was.
    pub changes: Vec<Key>,
}
