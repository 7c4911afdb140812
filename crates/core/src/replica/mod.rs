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
//! - `io` is all that goes in and comes out, `answer` what callers learn.
//! - `state` is what a replica holds: the versions of the state (the committed one and, on a leader, those ahead of it), who
//!   waits for which verdict, the plan of snapshots, what is remembered of roles.
//! - `dispatch` takes inputs in; `core_outputs` carries out what the protocol says; `view` is what can be seen.
//! - `calls` judges writes and reads, `round` proposes them.
//! - `roles`, `acquire`, `renew`, `ends` grant roles and keep leases; `restore` replaces all data, step by step.
//! - `snapshots` says when a snapshot is due and what it must hold; `transfer` sends states to other nodes, `taking` takes in those
//!   that come, and `preparation` works out what they come to.
//! - `feed` says what readers of the feed are told; `fingerprint` which replicas go on alike.

mod acquire;
mod answer;
mod calls;
mod core_outputs;
mod dispatch;
mod ends;
mod feed;
mod fingerprint;
mod io;
mod preparation;
mod renew;
mod restore;
mod roles;
mod round;
mod snapshots;
mod state;
mod taking;
#[cfg(test)]
mod tests;
mod transfer;
mod view;

pub use answer::{
    Answer, CatchUp, Denied, Granted, HeldBy, LeaseTimes, Level, Opinion, Unheard, View, Whole, Written,
};
pub use feed::{Draft, Fact, FeedEvent, Kind, Kinds, quoted};
pub use io::{
    Acquire, Brought, Call, CallId, Discarded, DiskWrite, End, In, Out, Outgoing, Preparation, Prepared,
    Registration, Renewal, SnapshotOrder, StateTransfer, Untie,
};
pub use state::{Replica, Start};
