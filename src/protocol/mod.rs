//! The protocol, as a pure state machine: no clock, no IO, no randomness, no hidden order.
//!
//! ```text
//!   Input ──► Node::handle(now, input) ──► [Output]            one call, then carry the outputs out in order
//!
//!               ┌─ Seeking ── asks ── claims ── pulls ─┐        seeking.rs, rank.rs, claim.rs
//!   suspicion ──┤                                      ├── opens ──► Leading   leading.rs, replicate.rs,
//!   suspicion.rs└─ Following ◄── promise (approve.rs) ─┘                       reads.rs, handover.rs
//!                  following.rs
//! ```
//!
//! `Node` holds what outlives a role: the promise, the log, the commit index, what is known of the
//! peers. A role holds what ends with it. After every input `settle` derives anew whatever time or the
//! input has made due, so nothing hangs on an edge that was missed.
//!
//! `docs/protocol.md` is the argument; the P and I numbers here refer to it.

mod admission;
mod approve;
mod catchup;
mod claim;
mod clock;
mod digest;
mod durability;
mod effects;
mod following;
mod gathering;
mod handover;
mod io;
mod leading;
mod lease;
mod log;
mod merging;
mod message;
mod meta;
pub mod mutant;
mod node;
mod notation;
mod peers;
mod propose;
mod quorum;
mod rank;
mod reads;
mod recovery;
mod replicate;
mod roster;
mod seeking;
mod service;
mod settings;
mod settled;
mod sides;
mod suspicion;
mod token;
mod view;
mod waiting;

pub use io::{
    Cause, Event, Fault, Input, Output, Recovered, Refusal, Seq, ServiceChange, Verdict, Vote, Write,
};
pub use log::Log;
pub use message::{Certificate, Checkpoint, Claim, Condition, Envelope, Message, Records, Standing, Term};
pub use meta::SnapshotMeta;
pub use node::{Node, RoleName};
pub use quorum::majority;
pub use recovery::{BadLine, Tail, judge};
pub use roster::{Roster, Seat};
pub use service::Holds;
pub use settings::{Ack, Limits, Mode, Settings, Takeover, Timing};
pub use token::next_token;
