//! The feed: what happens in the cluster, told in order to whoever reads along.
//!
//! ```text
//!   loop ── Writer ──► Ring ──► hand-out ──► Seats ──► a bounded queue a reader ──► Subscription
//!                       │                                                              ▲
//!                       └───── what was missed, piece by piece, until there is no more ┘
//! ```
//!
//! The loop only appends to the ring; a thread of its own hands events out, so that ten thousand readers cost a write no
//! more than one does. A reader is told from the ring until it has everything, and takes its seat under the same lock
//! (`Seats`, then `Ring`): no event lies between, and none comes twice. A reader whose queue is full loses its seat and
//! goes on from the ring by itself. What it has not fetched when the ring lets it go is lost to it, and it is told so.

mod frame;
mod seats;
mod shared;
mod subscription;
#[cfg(test)]
mod tests;

pub use crate::feed::{Id, Refused, Since, VALUE_MOST};
pub use crate::replica::{Draft, Fact, Kind, Kinds, quoted};
pub use frame::Frame;
pub use seats::Filter;
pub use shared::{Feed, Writer, feed};
pub use subscription::{Next, Over, Subscription};
