//! Dispatch: a client's call is answered here or by the leader.

mod forward;
mod leader;
mod read;
mod write;

pub use leader::{Settled, at_leader, settle};
pub use read::{LeaseRead, Page, read, read_leases};
pub use write::{granted, write};
