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
//! Lowest first; each file imports only from those before it:
//!
//! - `answer` is what callers learn, `feed` what its readers are told, `io` all that goes in and comes out.
//! - `preparation` works out what a state comes to with what another node has sent.
//! - `versions` are the states: the committed one and, on a leader, those ahead of it. `roles` is what is remembered of roles and of who wants
//!   them, `pending` who waits for which verdict, `snapshots` the plan of snapshots.
//! - `state` is the replica itself: it holds all of that, takes inputs in, and carries out what the protocol says.
//! - The rules stand side by side, as methods of `Replica`: `calls` judges writes and reads and proposes them, `granting` gives roles and keeps
//!   leases, `restore` replaces all data step by step, `state_transfer` sends states to other nodes and takes in those that come.

mod answer;
mod calls;
mod feed;
mod granting;
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

pub use answer::{
    Answer, CatchUp, Denied, Granted, HeldBy, LeaseTimes, Level, Opinion, Unheard, View, Whole, Written,
};
pub use feed::{Draft, Fact, FeedEvent, Kind, Kinds, quoted};
pub use io::{
    Acquire, Brought, Call, CallId, Discarded, DiskWrite, End, In, Out, Outgoing, Preparation, Prepared,
    Registration, Renewal, SnapshotOrder, StateTransfer, Untie,
};
pub use state::{Replica, Start};
