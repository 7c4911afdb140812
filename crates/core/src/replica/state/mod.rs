//! What a replica holds: plain data and the steps that keep it in order. Rules are in the modules beside this one.

mod acquiring;
mod pending;
mod renewing;
mod replica;
mod restoring;
mod roles;
mod round;
mod snapshots;
mod versions;

pub(super) use acquiring::Acquiring;
pub(super) use pending::{Outcome, Waiting};
pub(super) use renewing::{Renewing, What};
pub(super) use replica::Rebase;
pub use replica::{Replica, Start};
pub(super) use restoring::Restoring;
pub(super) use roles::Turn;
pub(super) use round::Round;
