//! From a leader that is given up to the next one: `suspicion`, `asking` around, whose turn it is (`rank`), a `claim` on its
//! way, and the promise to approve it (`approve`).

mod approve;
mod asking;
mod claim;
mod rank;
mod suspicion;
