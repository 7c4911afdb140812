//! Eldest: a fixed cluster whose lowest-index live node leads.
//!
//! `types` names things, `protocol` decides. `docs/protocol.md` is the paper behind both: the rules
//! (P1…) and invariants (I1…) cited throughout are defined there.

pub mod protocol;
pub mod types;
