//! The thin driver around the core: one loop that feeds it inputs and carries out its outputs.
//!
//! ```text
//!   http ── Ask, Chunk ─┐
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

mod access;
mod answers;
pub mod api;
mod backups;
pub mod channel_order;
pub mod channels;
mod chronicle;
mod chunks;
mod clock;
mod directory;
mod disk;
mod end;
mod engine;
mod explained;
pub mod feed;
mod incoming;
mod leases;
mod looking;
mod measures;
mod member;
mod notices;
mod numbers;
mod outputs;
mod own_view;
mod preparing;
mod pulse;
mod recent;
mod remarks;
mod replies;
mod run;
mod sending;
mod setup;
mod snapshots;
mod start;
mod status;
mod telling;
mod tokens;
mod told;
mod transfer;
mod transport;
mod unsynced;
mod wall;

pub use crate::replica::{Granted, HeldBy, LeaseTimes};
pub use api::Handle;
pub use backups::Schedule;
pub use chunks::{Chunk, Verdicts};
pub use directory::{Directory, Known};
pub use end::End;
pub use explained::{Explained, HeirShown};
pub use incoming::decode;
pub use measures::Measures;
pub use member::Member;
pub use notices::Notices;
pub use numbers::Numbers;
pub use pulse::Pulse;
pub use remarks::Remark;
pub use setup::{Setup, Tls};
#[cfg(test)]
pub use start::start_on;
pub use start::{DiskWords, StartError, Started, start};
pub use tokens::Tokens;
pub use transport::{Stranger, greet};
pub use wall::Wall;

/// What this machine's clock shows, for people.
pub fn wall_time() -> crate::types::WallTime {
    clock::now().wall
}
