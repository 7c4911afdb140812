//! The protocol, as a pure state machine: no clock, no IO, no randomness, no hidden order.
//!
//! ```text
//!   Input ──► Node::handle(now, input) ──► [Output]            one call, then carry the outputs out in order
//!
//!               ┌─ Seeking ── asks ── claims ── pulls ─┐
//!   suspicion ──┤                                      ├── opens ──► Leading
//!               └─ Following ◄──── promise ────────────┘
//! ```
//!
//! `Node` holds what outlives a role: the journal (promise, log, commit index), what is known of the peers. A role holds what ends with it.
//! After every input `settle` derives anew whatever time or the input has made due, so nothing hangs on an edge that was missed.
//!
//! Lowest first; each file imports only from those before it:
//!
//! - `settings`, `quorum` and `mutant` (known bugs, as switches of the test build) are what all use.
//! - `meta` is what records add up to, `log` their tail, `durability` what of it is on disk, `clock` the stamps of records.
//! - `messages` is all that goes in and out of a node.
//! - `journal` is what must not be forgotten: whoever changes it is given the write that makes the change last.
//! - `epochs`, `peers`, `grants`, `impasses` and `ballots` are what is known of epochs, of other nodes, of leases given to leaders, of merges
//!   that fail, of others' states; `progress` is how far one follower is.
//! - `roles` is what a node remembers while it seeks, follows or leads; `node` puts all of that together, with the tools that all rules use.
//! - The rules stand side by side, as methods of `Node` and of `Leader`, a node that leads. Electing: `seeking` a leader, to `claim` an epoch, to
//!   `approve` a claim; `succession` foretells it. Leading: `leading` and `following`, `serving` clients, `handover`, `membership` that
//!   changes, `oddity` of a state or a disk. Belonging: `members`. Available mode: `sides`, and `merging` them.
//! - `dispatch` takes the inputs, `view` shows a node to others.
//!
//! `docs/protocol.md` is the argument; the P and I numbers here refer to it.

mod approve;
mod ballots;
mod claim;
mod clock;
mod dispatch;
mod durability;
mod epochs;
mod following;
mod grants;
mod handover;
mod impasses;
mod journal;
mod leading;
mod log;
mod members;
mod membership;
mod merging;
mod messages;
mod meta;
pub mod mutant;
mod node;
mod oddity;
mod peers;
mod progress;
mod quorum;
mod roles;
mod seeking;
mod serving;
mod settings;
mod sides;
mod succession;
mod view;

pub use durability::{After, Seq};
pub use log::{BadLine, Log, Tail, judge};
pub use messages::{
    Cause, Certificate, Checkpoint, Claim, Condition, Envelope, Event, Fault, Impasse, Input, IsLeader,
    MemberChange, MembersRefusal, Message, Objection, Output, Proposal, Recovered, Refusal, ServiceChange,
    Standing, Taking, Term, Verdict, Vote, Write,
};
pub use meta::{Holds, Records, Roster, Seat, SnapshotMeta};
pub use node::{Node, RoleName};
pub use quorum::majority;
pub use seeking::Waits;
pub use settings::{Ack, LEASE_MOST, Limits, Mode, Settings, Takeover, Timing};
pub use succession::{Contender, Fitness, Heir, succession};

#[cfg(test)]
mod hostile;
