//! What every system is asked to do. Keys and values are the same everywhere.

use super::super::session::{Fate, Trouble};

#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    Write {
        key: u64,
        /// A JSON text: Eldest takes nothing else, the others take anything.
        value: &'a [u8],
    },
    /// Sees every write acknowledged before.
    ReadLinear {
        key: u64,
    },
    /// Whatever the node has.
    ReadLocal {
        key: u64,
    },
    /// Waits in line, where there is one.
    Acquire {
        lock: &'a str,
    },
    Release {
        lock: &'a str,
    },
}

/// For what a system does not have.
pub fn unsupported() -> Trouble {
    Trouble { fate: Fate::Rejected, code: "unsupported".into(), status: None }
}
