//! The thin driver around the replica: one loop that feeds it inputs and carries out its outputs.
//!
//! ```text
//!   http ── Ask, CallChunk ─┐
//!   http ── PeerAsk ────────┤
//!   http ── gone (In) ──────┤                       ┌─► storage's writer ── DiskState ─┐
//!   network ─ Arrived ──────┼─► Engine ── outputs ──┼─► transport ── POST ─► peers     │
//!   snapshots ─ Taken ──────┤     ▲                 ├─► snapshots' thread              │
//!   threads ─ Prepared ─────┤     │                 ├─► threads for prepared work      │
//!   clock ─── Tick ─────────┘     │                 └─► replies                        │
//!                                 └────────────────────────────────────────────────────┘
//! ```
//!
//! `gone` reports callers that disconnected while they waited for a role.
//!
//! The loop runs on a separate thread, together with the transport's tasks: client work on other threads delays neither heartbeats nor
//! acknowledgements. When the loop ends, for any reason, the process must end.
//! - `handle` has the calls that other threads can make, `replies` delivers their answers, `reads` is what
//!   reads share, `answers` keeps the open calls of peers.
//! - `run` starts the loop and reads its sources, `engine` owns the replica, `end` has the reasons why the loop ends.
//! - `setup` has a node's settings and what it learns of its cluster; `clock` reads the clocks.
//! - `snapshots` writes snapshots and backups, on separate threads; `transport` reaches the peers, over HTTP.
//! - `feed` serves the readers of events, `channels` the listeners to messages.
//! - `shown` has the types of the status, and `view` fills them; `chronicle` keeps and logs events, and `numbers` counts.
//!
//! The driver makes no decisions. It gives the replica one input at a time, with the time of this machine's clocks, and carries
//! out the outputs in the order in which they were returned. A pass of the loop has four steps:
//!
//! ```text
//!   run ──► read one source ──► Engine::handle ──► outputs: to the encoder, `Unsynced`, replies, feed, chronicle
//!       ──► tick: timers that are due ──► the same
//!       ──► flush: the writes of this pass go to the disk together, its appends go to the links
//!       ──► has the loop ended?
//! ```
//!
//! A change here must keep three things:
//! - A message leaves through `Engine::send_when` only, which holds it back until the writes that it relies on are durable (P29,
//!   I9).
//! - Work whose time grows with the data runs on another thread, and its result comes back as an input (P49). While the loop
//!   stands still, no beat leaves; after `dead_after` the followers give their leader up (P3).
//! - Every queue into the loop has a bound, and a comment on the bound says what happens beyond it.

mod answers;
pub mod channels;
mod chronicle;
mod clock;
mod end;
mod engine;
pub mod feed;
pub mod handle;
mod numbers;
mod reads;
mod replies;
mod run;
mod setup;
mod shown;
mod snapshots;
mod transport;
mod view;

pub use crate::replica::{Granted, HeldBy, LeaseTime, LeaseTimes};
pub use answers::decode;
pub use end::End;
pub use handle::{Handle, Tokens};
pub use numbers::Numbers;
pub use replies::{CallChunk, Verdicts};
#[cfg(test)]
pub use run::start_on;
pub use run::{DiskWords, StartError, Started, start};
pub use setup::{Directory, KnownMembers, Member, Notices, Setup, Tls, Wall};
pub use shown::{Explained, HeirShown, Measures, Pulse, Remark};
pub use snapshots::Schedule;
pub use transport::{Stranger, cause, greet};

/// Returns this machine's wall clock, for display.
pub fn wall_time() -> crate::types::WallTime {
    clock::now().wall
}
