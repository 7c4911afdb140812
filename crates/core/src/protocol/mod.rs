//! The protocol, as a pure state machine: no clock, no IO, no randomness, no hidden order.
//!
//! ```text
//!   Input ──► Node::handle(now, input) ──► [Output]            one call, then carry the outputs out in order
//!
//!               ┌─ Seeking ── asks ── claims ── pulls ─┐        election/
//!   suspicion ──┤                                      ├── opens ──► Leading    replication/
//!               └─ Following ◄──── promise ────────────┘
//! ```
//!
//! `Node` holds what outlives a role: the promise, the log, the commit index, what is known of the
//! peers. A role holds what ends with it. After every input `settle` derives anew whatever time or the
//! input has made due, so nothing hangs on an edge that was missed.
//!
//! The rooms, lowest first; each imports only from those before it:
//!
//! - `settings`, `quorum` and `mutant` (known bugs, as switches of the test build) are what all use.
//! - `log` is the log's tail and what it adds up to, `messages` what goes in and out of a node.
//! - `state` is what a node remembers, in whatever role, with the tools that all rules use.
//! - `election`, `replication` and `available` are the rules, side by side. Each is methods of `Node`, and a change of role
//!   goes from one room to another by such a method.
//! - `dispatch` takes the inputs, `view` shows a node to others.
//!
//! `docs/protocol.md` is the argument; the P and I numbers here refer to it.

mod available;
mod dispatch;
mod election;
mod log;
mod messages;
pub mod mutant;
mod quorum;
mod replication;
mod settings;
mod state;
mod view;

pub use election::{Contender, Fitness, Heir, Waits, succession};
pub use log::{After, BadLine, Holds, Log, Records, Roster, Seat, Seq, SnapshotMeta, Tail, judge};
pub use messages::{
    Cause, Certificate, Checkpoint, Claim, Condition, Envelope, Event, Fault, Impasse, Input, IsLeader,
    MemberChange, MembersRefusal, Message, Objection, Output, Proposal, Recovered, Refusal, ServiceChange,
    Standing, Taking, Term, Verdict, Vote, Write,
};
pub use quorum::majority;
pub use settings::{Ack, LEASE_MOST, Limits, Mode, Settings, Takeover, Timing};
pub use state::{Node, RoleName};

#[cfg(test)]
mod hostile;
