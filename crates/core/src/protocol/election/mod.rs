//! From a leader that is given up to the next one: `suspicion`, `asking` around, whose turn it is (`rank`), a `claim` on its
//! way, and the promise to approve it (`approve`); `waits` tells people why nobody leads.

mod approve;
mod asking;
mod claim;
mod rank;
mod suspicion;
mod waits;

pub use waits::Waits;
