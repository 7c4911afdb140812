//! Eldest: a fixed cluster whose lowest-index live node leads.
//!
//! `types` names things, `protocol` decides, `store` is what it decides about. `driver` gives both a clock, a disk and
//! a network; `http` and `cli` are what people and programs see, and `client` is how programs call. `docs/protocol.md` is the paper behind it: the rules
//! (P1…) and invariants (I1…) cited throughout are defined there.

pub mod cli;
pub mod client;
pub mod config;
pub mod driver;
pub mod http;
pub mod leases;
pub mod protocol;
pub mod storage;
pub mod store;
pub mod types;
pub mod wire;
