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
//! A `Node` is its `Core`, which outlives every role, and the role that it has now. What a role remembers is private to its folder, and so is
//! what the parts of the core remember. A role's rule is given the core: `leading.on_read(&mut core, request, at_least)`. It cannot see another
//! role. If it ends its own, it gives that back (`Won`, `Exit`), and the node carries it out. After every input `settle` derives anew whatever
//! time or the input has made due, so nothing hangs on an edge that was missed.
//!
//! Lowest first. Each file imports only from lines before its own, and a type's methods stand in its own file or folder, so nothing low calls
//! anything high:
//!
//! - `quorum`, and `mutant` (known bugs, as switches of the test build).
//! - `settings`; `meta` is what records add up to; `durability` is what of the log is on disk.
//! - `log`, the tail of records; `clock`, their stamps.
//! - `messages` is all that goes in and out of a node.
//! - `journal` is what must not be forgotten: whoever changes it is given the write that makes the change last. `epochs`, `peers`, `grants`,
//!   `impasses` and `ballots` are what is known of epochs, of other nodes, of leases given to leaders, of merges that fail and of others' states.
//!   `progress` is how far one follower is, `succession` who would lead next.
//! - `core` has all of these. It writes, promises, commits and sends; `members` says who belongs to the cluster and whose vote counts, `copying`
//!   takes in what another log has, `histories` compares logs that went different ways.
//! - `following` a leader, and `seeking` one: whom to ask, when to `claim`.
//! - `leading`: beats, leases, and when to stop; `replication`, `serving` clients, `handover`, `membership` that changes, `oddity` of a
//!   state or a disk; in available mode the `sides` of a cluster, and `merging` them.
//! - `node` changes the role: it `dispatch`es inputs; `suspecting` and `obeying` a leader, `asking` others, `promising` a candidate its vote,
//!   `yielding` to an heir; in available mode `sides` that a node joins, and `merging` them. `view` shows a node to others.
//!
//! `docs/protocol.md` is the argument; the P and I numbers here refer to it.

mod ballots;
mod clock;
mod core;
mod durability;
mod epochs;
mod following;
mod grants;
mod impasses;
mod journal;
mod leading;
mod log;
mod messages;
mod meta;
pub mod mutant;
mod node;
mod peers;
mod progress;
mod quorum;
mod seeking;
mod settings;
mod succession;

pub use durability::{After, Seq};
pub use log::{BadLine, Log, Tail, judge};
pub use messages::{
    Beat, BeatReply, Cause, Certificate, Checkpoint, Claim, Condition, Envelope, Event, Fault, Impasse,
    Input, IsLeader, MemberChange, MembersRefusal, Message, Objection, Output, Proposal, Recovered, Refusal,
    ServiceChange, Standing, Taking, Term, Verdict, Vote, Write,
};
pub use meta::{Holds, Records, Roster, Seat, SnapshotMeta};
pub use node::{Node, RoleName};
pub use quorum::majority;
pub use seeking::Waits;
pub use settings::{Ack, LEASE_MOST, Limits, Mode, Settings, Takeover, Timing};
pub use succession::{Contender, Fitness, Heir, succession};
