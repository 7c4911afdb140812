//! What ends by itself unless somebody renews it: a role's grant, a process's registration.

use super::{Span, Text};

/// Leases that one record ends, ages or refreshes: applied in a few milliseconds, and ten of them in a second end 10,000.
/// Names have up to 256 bytes, so a record stays far below the greatest that the log takes. Whoever proposes such a record and
/// whoever reads it go by this one bound: no node could go on beyond a record that it does not read.
pub const LEASES_MOST: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    Role(Text),
    Process(Text),
}

impl LeaseName {
    pub fn text(&self) -> &Text {
        match self {
            LeaseName::Role(text) | LeaseName::Process(text) => text,
        }
    }
}

/// What the log says of a lease. When it ends is for the leader to say, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Of this one grant: who has another token has another lease.
    pub token: u64,
    pub ttl: Span,
    /// It went past half its ttl without being renewed, and has not been renewed since (C14).
    pub aged: bool,
}
