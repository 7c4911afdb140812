//! What decides, and nothing else: no clock, no socket, no file, no randomness.
//!
//! `types` names things, `protocol` elects and replicates, `store` is the replicated state, and `leases` counts what ends by
//! itself. `replica` puts these together for clients, and `feed` keeps what it tells. The same inputs give the same outputs, so every
//! failure replays.

pub mod feed;
pub mod leases;
pub mod protocol;
pub mod replica;
pub mod store;
pub mod types;
