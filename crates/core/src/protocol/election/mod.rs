//! From a leader that is given up to the next one: `suspicion`, `asking` around, whose turn it is (`rank`), a `claim` on its
//! way, and the promise to approve it (`approve`); `waits` tells people why nobody leads, and `succession` who
//! would be next.

mod approve;
mod asking;
mod claim;
mod rank;
mod succession;
mod suspicion;
mod waits;

pub use succession::{Contender, Fitness, Heir, succession};
pub use waits::Waits;
