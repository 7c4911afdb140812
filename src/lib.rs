//! Eldest: a fixed cluster whose lowest-index live node leads.
//!
//! `types` names things, `protocol` decides, `store` is what it decides about. `docs/protocol.md` is the paper
//! behind all three: the rules (P1…) and invariants (I1…) cited throughout are defined there.

pub mod protocol;
pub mod storage;
pub mod types;
pub mod wire;
