//! C18: a disk that lives forgets no record, and a process never goes back.

use eldest::types::{Index, NodeId};

use super::{Check, ensure};

/// Compares how far a disk reaches before and after something was done to it.
pub fn disk(node: NodeId, before: Index, after: Index) -> Check {
    ensure(after >= before, "C18 no index goes down", || {
        format!("the disk of {node} went from {before} to {after}")
    })
}

pub fn state(node: NodeId, before: Index, after: Index) -> Check {
    ensure(after >= before, "C18 no index goes down", || format!("{node} went from {before} to {after}"))
}
