//! Dispatch answers a client's call here or by the leader.
//!
//! - `leader` decides between the two, or waits a moment and decides again. `forward` forwards a call to the leader.
//! - `read` takes a view of the state at the requested level; `write` turns a call into a command, and its verdict into a response.
//! - `chunk` decides a chunk of a command stream, and `pipeline` runs several chunks at once.
//! - `others` asks all other nodes.
//!
//! A handler passes its work as a function that may run several times: once for each time that this node is
//! found to lead. So it must not consume the request, and must not leave anything behind if it is refused.
//!
//! ```text
//!   handler ─► read / write / at_leader ─► leader::settle ─┬─ here ──► driver::Handle
//!                                                          └─ there ─► forward ─► the leader's front, from the beginning
//! ```

mod chunk;
mod forward;
mod leader;
mod others;
mod pipeline;
mod read;
mod write;

pub use chunk::{Decided, decide};
pub use leader::{Settled, at_leader, settle};
pub use others::{Question, Said, Silence, SilenceKind, ask_others};
pub use pipeline::Pipeline;
pub use read::{COMMON, LeaseRead, Page, list, read, read_leases};
pub use write::{granted, set_record, write, write_with};
