//! What a replica holds: plain data and the steps that keep it in order. Rules are in the modules beside this one.

mod acquiring;
mod pending;
mod renewing;
mod replica;
mod restoring;
mod roles;
mod round;
mod snapshots;
mod taking_in;
mod versions;

pub(super) use acquiring::Acquiring;
pub(super) use pending::{Outcome, Waiting};
pub(super) use renewing::{Renewing, What};
pub use replica::{Replica, Start};
pub(super) use restoring::Restoring;
pub(super) use roles::Turn;
pub(super) use round::Round;
pub(super) use taking_in::{Basis, Rebase, TakingIn};
