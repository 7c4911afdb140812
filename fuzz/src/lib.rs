//! The treatment of bytes from outside, one function a target. Each may refuse them; none may panic, and a
//! value that was read must be the same when it is written and read again.
//!
//! Text that carries a checksum is given the right one first: otherwise no input would get past the checksum.
//! Other tests show, bit by bit, that damage is noticed (`crates/storage`).

mod disk;
mod network;
mod operator;
mod sums;

pub use disk::{directory, log_line, snapshot};
pub use network::{commands, document, wire};
pub use operator::config;
