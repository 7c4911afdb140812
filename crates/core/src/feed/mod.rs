//! Keeps the newest events of the feed, and finds where a reader goes on.
//!
//! The replica says what happened, as drafts. The ring makes events of them, gives each its name, and lets the oldest go.

mod event;
mod mark;
mod ring;

pub use event::{RingEvent, VALUE_MOST};
pub use mark::{Id, Mark, Since};
pub use ring::Refused;
pub use ring::Ring;
