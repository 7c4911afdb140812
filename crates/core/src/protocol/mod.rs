//! The protocol as a pure state machine: no clock, no IO, no randomness, no hidden order.
//!
//! ```text
//!   Input ──► Node::handle(now, input) ──► [Output]            one call, then carry the outputs out in order
//!
//!               ┌─ Seeking ── asks ── claims ── pulls ─┐
//!   suspicion ──┤                                      ├── opens ──► Leading
//!               └─ Following ◄──── promise ────────────┘
//! ```
//!
//! A `Node` consists of its `Core`, which outlives every role, and of its present role. The state of a role is private to its
//! file or folder, and so is the state of each part of the core. The rule of a role gets the core, and cannot see another role:
//! `leading.on_read(&mut core, request, at_least)`. If a rule ends its own role, it returns that (`Won`, `Exit`), and the node
//! carries it out. After every input `settle` works out again what is due by then, so no rule depends on having seen the moment
//! at which something fell due.
//!
//! The modules, lowest first. Each file imports only from lines before its own, and a type's methods stand in its own file or folder, so no
//! low module calls a higher one:
//!
//! - `quorum`, and `mutant` (known bugs, as switches of the test build).
//! - `settings`; `meta` is the summary of records; `durability` says how much of the log is on disk.
//! - `log`, the tail of records; `clock`, their stamps.
//! - `messages` is all that goes in and out of a node.
//! - `journal` is the state that must not be forgotten: each change returns the write that makes the change last. `epochs`, `peers`,
//!   `grants`, `impasses` and `ballots` hold what is known of epochs, of other nodes, of leases granted to leaders, of merges that fail
//!   and of the states of others. `progress` is the position of one follower, `succession` the order of the next leaders.
//! - `core` has all of these. It writes, promises, commits and sends; `members` knows the members of the cluster and whose votes count,
//!   `copying` accepts what another log has, `histories` compares logs that have diverged.
//! - `following` a leader, and `seeking` one: which nodes to ask, when to `claim`.
//! - `leading`: beats, leases, and when to stop; `replication`, `serving` clients, `handover`, `membership` changes; `oddity`
//!   finds states that have diverged and disks that have forgotten records; in available mode the `sides` of a cluster, and
//!   `merging` them (`merges` is the leader's memory of that).
//! - `node` changes the role: it `dispatch`es inputs; `suspecting` and `obeying` a leader, `asking` others, `promising` a candidate its
//!   vote, `yielding` to an heir; in available mode `sides` that a node joins, and `merging` them. `view` shows a node to others.
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
    Beat, BeatReply, Cause, Certificate, Checkpoint, Claim, Condition, Envelope, Event, Fault,
    HandOverReason, Impasse, Input, IsLeader, MemberChange, MembersRefusal, Message, Objection, Output,
    Proposal, Recovered, Refusal, ServiceChange, Standing, Taking, Term, Verdict, Vote, Write,
};
pub use meta::{Holds, Records, Roster, Seat, SnapshotMeta};
pub use node::{Node, RoleName};
pub use quorum::majority;
pub use seeking::Waits;
pub use settings::{Ack, LEASE_MOST, Limits, Mode, Settings, Takeover, Timing};
pub use succession::{Contender, Fitness, Heir, succession};
