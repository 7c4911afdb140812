//! The chronicle: what has happened to leadership and to roles, as each node has seen it, and why (P58). It makes no decisions.
//!
//! ```text
//!   Event ── Book::note ──► Note ──► a line of the node's file, which outlives the process
//!                             │
//!   the entries of all nodes ─┴─► changes() ──► one Change per epoch that was led, its steps in order
//! ```
//!
//! This module has no clock and no file: the driver passes the time in and stores the lines.
//!
//! Entries go to people and into no message of the protocol, so a node that has lost its chronicle changes nothing. A change is
//! only as complete as the entries that its nodes still have: each keeps the newest 1,024.

mod book;
mod changes;
mod note;
mod roles;
mod words;

pub use book::{Book, ENTRIES_MOST};
pub use changes::{Change, NotedStep, changes, epoch_order};
pub use note::Note;
pub use roles::{RoleTurns, TURNS_MOST, turn_shown};
pub use words::sentence;
