//! The operations that every system is asked to perform. Keys and values are the same for all systems.

use super::super::session::{Fate, Trouble};

#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    Write {
        key: u64,
        /// A JSON text. Eldest accepts nothing else; the others accept any bytes.
        value: &'a [u8],
    },
    /// Sees every write that was acknowledged before.
    ReadLinear {
        key: u64,
    },
    /// Reads the state of the node that answers, however old.
    ReadLocal {
        key: u64,
    },
    /// Waits in a queue, if the system has one.
    Acquire {
        lock: &'a str,
    },
    Release {
        lock: &'a str,
    },
}

/// The trouble with an operation that a system does not have.
pub fn unsupported() -> Trouble {
    Trouble { fate: Fate::Rejected, code: "unsupported".into(), status: None }
}
