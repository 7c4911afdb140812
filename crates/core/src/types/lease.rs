//! What ends by itself unless somebody renews it: a role's grant, a process's registration, a document with a ttl.

use super::{Span, Text};

/// Leases that one record ends, ages or refreshes: applied in a few milliseconds, and ten of them in a second end 10,000.
/// Names have up to 256 bytes, so a record stays far below the greatest that the log takes. Whoever proposes such a record and
/// whoever reads it go by this one bound: no node could go on beyond a record that it does not read.
pub const LEASES_MOST: usize = 1000;

/// Calls that wait for one role (P41). When it falls free the dead are sorted out one by one, in the leader's loop.
pub const WAITERS_PER_ROLE_MOST: usize = 1000;

/// Calls that wait for roles, all together: each keeps a connection and a request open on some node.
pub const WAITERS_MOST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    Role(Text),
    Process(Text),
    /// A document that ends unless somebody writes or renews it.
    Doc(Text),
}

impl LeaseName {
    pub fn text(&self) -> &Text {
        match self {
            LeaseName::Role(text) | LeaseName::Process(text) | LeaseName::Doc(text) => text,
        }
    }

    /// Whether the log says that it went past half its ttl (P40). A document's row says what somebody wrote, and where: nothing
    /// but a write changes it.
    pub fn ages(&self) -> bool {
        !matches!(self, LeaseName::Doc(_))
    }
}

/// What the log says of a lease. When it ends is for the leader to say, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Of this one grant: who has another token has another lease. A document's is the index of its last write.
    pub token: u64,
    pub ttl: Span,
    /// It went past half its ttl without being renewed, and has not been renewed since (C14).
    pub aged: bool,
}
