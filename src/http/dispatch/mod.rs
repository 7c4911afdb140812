//! Dispatch: a client's call is answered here or by the leader.

mod chunk;
mod forward;
mod leader;
mod others;
mod pipeline;
mod read;
mod write;

pub use chunk::{Decided, decide};
pub use leader::{Settled, at_leader, settle};
pub use others::{Question, ask_others};
pub use pipeline::Pipeline;
pub use read::{COMMON, LeaseRead, Page, list, read, read_leases};
pub use write::{granted, set_record, write, write_with};
