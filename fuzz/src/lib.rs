//! What is done with bytes from outside, one function a target. Each may refuse them; none may panic, and what was read
//! must say the same when it is written and read again.
//!
//! Text that carries a checksum is given the right one first, or nothing behind it would ever be reached. That damage is
//! noticed is shown elsewhere, bit by bit (`crates/storage`).

mod disk;
mod network;
mod operator;
mod sums;

pub use disk::{directory, log_line, snapshot};
pub use network::{commands, document, wire};
pub use operator::config;
