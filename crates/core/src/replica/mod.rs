//! The replica: everything that decides what clients and peers are told, around the protocol's core.
//!
//! ```text
//!   In ──► Replica::handle(now, In) ──► [Out]                 one call, then carry the outputs out in order
//!
//!   calls ──► judged by the newest version ──► a round ──► Node (protocol) ──► writes, messages ──► Out
//!                 │                                           │ verdicts, committed records
//!                 └── leases, the waiter queue ◄── versions ◄─┘──► feed, snapshots, answers
//! ```
//!
//! **A round is the unit.** The calls of one input are judged one after the other, each by the state as the records before it
//! leave it, and are proposed together: one batch in the log, one sync, one version of the state.
//!
//! There is no clock, socket, file or thread here: `now` is an argument, a caller is a number, and a caller that has gone is
//! an input. So the simulator, the golden scripts and the model run what a node runs.
//!
//! Lowest first. Each file imports only from lines before its own, and a type's methods stand in its own file or folder:
//!
//! - `answer` is what callers learn, `feed` what its readers are told.
//! - `preparation` works out what a state comes to with what another node has sent.
//! - `io` is all that goes in and comes out.
//! - `versions` are the states: the committed one and, on a leader, those ahead of it. `snapshots` is the plan of snapshots, `wants` what is known
//!   of a call for a role.
//! - `pending` is who waits for which verdict.
//! - `desk` is what all calls need: `rounds` in which they are judged and proposed, and their answers. `calls` has those that need nothing else.
//! - `roles` gives roles and keeps leases, `restore` replaces all data step by step, `state_transfer` sends states to other nodes and takes in
//!   those that come. Each is given the desk, and sees neither of the others.
//! - `state` is the replica itself: it takes inputs in, tells the protocol, and carries out what that says.

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
    Answer, CatchUp, Denied, Granted, HeldBy, LeaseTimes, Level, Opinion, Unheard, View, Whole, Written,
};
pub use feed::{Draft, Fact, FeedEvent, Kind, Kinds, quoted};
pub use io::{
    Acquire, Brought, Call, CallId, Discarded, DiskWrite, End, In, Out, Outgoing, Registration, Renewal,
    SnapshotOrder, Untie,
};
pub use preparation::{Preparation, Prepared, StateTransfer};
pub use state::{Replica, Start};
