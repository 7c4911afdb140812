//! The core decides, and does nothing else: it has no clock, no socket, no file and no randomness.
//!
//! `types` has the terms, `protocol` elects and replicates, `store` is the replicated state, and `leases` counts the leases and
//! ttls that expire. `replica` combines these for clients, and `feed` keeps the events that it reports. `chronicle` keeps the steps
//! of elections and explains them. The same inputs give the same outputs, so every failure replays.

pub mod chronicle;
pub mod feed;
pub mod leases;
pub mod protocol;
pub mod replica;
pub mod store;
pub mod types;
