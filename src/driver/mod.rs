//! The thin driver around the core: one loop that feeds it inputs and carries out its outputs.
//!
//! ```text
//!   http ── Ask, CallChunk ─┐
//!   http ── PeerAsk ────┤                       ┌─► storage's writer ── DiskState ─┐
//!   network ─ Arrived ──┼─► Engine ── outputs ──┼─► transport ── POST ─► peers     │
//!   snapshots ─ Taken ──┤     ▲                 ├─► snapshots' thread              │
//!   merges ─ Prepared ──┤     │                 ├─► a thread for what is prepared  │
//!   clock ─── Tick ─────┘     │                 └─► replies                        │
//!                             └────────────────────────────────────────────────────┘
//! ```
//!
//! The loop runs on a thread of its own, with the transport's tasks beside it: what clients do on other threads delays
//! neither beats nor acknowledgements. When it ends, for whatever reason, the process must end.
//! - `handle` is what the outside may ask, `replies` where the answers go, `answers` those that ride in responses to other nodes.
//! - `run` begins the loop and listens, `engine` owns the replica, `end` says why it has ended.
//! - `setup` is what a node is told and learns of its cluster; `clock` reads the clocks.
//! - `snapshots` writes snapshots and copies, on threads of their own; `transport` reaches the peers, over HTTP.
//! - `feed` and `channels` are who reads along, and who listens.
//! - `shown` is what others are shown, `view` looks it up; `chronicle` and `numbers` are what is kept, told and counted.

mod answers;
pub mod channels;
mod chronicle;
mod clock;
mod end;
mod engine;
pub mod feed;
pub mod handle;
mod numbers;
mod replies;
mod run;
mod setup;
mod shown;
mod snapshots;
mod transport;
mod view;

pub use crate::replica::{Granted, HeldBy, LeaseTimes};
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
pub use transport::{Stranger, greet};

/// What this machine's clock shows, for people.
pub fn wall_time() -> crate::types::WallTime {
    clock::now().wall
}
