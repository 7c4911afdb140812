//! Eldest: a fixed cluster whose lowest-index live node leads.
//!
//! `eldest-core` decides; `driver` gives it a clock, a network and the disk of `eldest-storage`; `http` and `cli` are the interfaces for
//! programs and people, and `eldest-client` is the client library. `docs/protocol.md` is the paper behind it: it defines the rules (P1…)
//! and invariants (I1…) that the code cites.

pub mod cli;
pub mod config;
pub mod doctor;
pub mod driver;
pub mod http;
pub mod metrics;
pub mod wire;

pub use eldest_client as client;
pub use eldest_core::{chronicle, feed, leases, protocol, replica, store, types};
pub use eldest_storage as storage;
