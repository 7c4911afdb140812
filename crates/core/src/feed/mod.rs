//! The feed keeps its newest events, and finds the place where a reader goes on.
//!
//! The replica says what happened, as drafts. The ring turns drafts into events, gives each event its id, and drops the oldest.

mod event;
mod mark;
mod ring;

pub use event::{RingEvent, VALUE_MOST};
pub use mark::{Id, Mark, Since};
pub use ring::Refused;
pub use ring::Ring;
