//! The replica decides every answer to clients and every message to peers, around the protocol's core.
//!
//! ```text
//!   In ──► Replica::handle(now, In) ──► [Out]                 one call, then carry the outputs out in order
//!
//!   calls ──► judged by the newest version ──► a round ──► Node (protocol) ──► writes, messages ──► Out
//!                 │                                           │ verdicts, committed records
//!                 └── leases, the waiter queue ◄── versions ◄─┘──► feed, snapshots, answers
//! ```
//!
//! **A round is the unit.** The calls of one input are judged one after the other, each by the state that the records before it
//! leave. They are proposed together: one batch in the log, one sync, one version of the state.
//!
//! There is no clock, socket, file or thread here: `now` is an argument, a caller is a number, and a caller that has gone is
//! an input. So the simulator, the golden scripts and the model run the same code as a node.
//!
//! The files, lowest first. Each file imports only from lines before its own, and a type's methods stand in its own file or folder:
//!
//! - `answer` has the answers to callers, `feed` the events for readers of the feed.
//! - `preparation` works out the state that results from another node's state transfer.
//! - `io` has all inputs and outputs.
//! - `versions` has the states: the committed one and, on a leader, those ahead of it. `snapshots` is the plan of snapshots,
//!   `wants` has what is known of a call for a role.
//! - `pending` has the calls that wait for a verdict.
//! - `desk` has what all calls need: `rounds` in which they are judged and proposed, and their answers. `calls` has the calls
//!   that need nothing else.
//! - `roles` has what a leader knows of roles and leases, and in `granting` the rules by which it grants and ends them. `restore` replaces all
//!   data step by step. `state_transfer` sends states to other nodes and takes in those that arrive. Each works with the desk, and does not
//!   see the other two.
//! - `state` is the replica itself: it takes in inputs, passes them to the protocol, and carries out the protocol's outputs.

mod answer;
mod desk;
mod feed;
mod io;
mod pending;
mod preparation;
mod restore;
mod roles;
mod snapshots;
mod state;
mod state_transfer;
#[cfg(test)]
mod tests;
mod versions;
mod wants;

pub use answer::{
    Answer, CatchUp, Denied, Granted, HeldBy, LeaseTime, LeaseTimes, Opinion, ReadProof, Unheard, View,
    Whole, Written,
};
pub use feed::{Draft, Fact, FeedEvent, Kind, Kinds, quoted};
pub use io::{
    Acquire, Brought, Call, CallId, Discarded, DiskWrite, End, In, Out, Outgoing, Registration, Renewal,
    SnapshotOrder, Untie,
};
pub use preparation::{Preparation, Prepared, StateTransfer};
pub use state::{Replica, Start};
