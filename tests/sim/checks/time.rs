//! P17: along the log neither wall time nor cluster time goes back, and cluster time runs no faster
//! than the clocks may.

use eldest::types::{Record, Stamp};

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Times {
    newest: Stamp,
}

impl Times {
    /// Sees each committed record once, in order.
    pub fn committed(&mut self, record: &Record) -> Check {
        let (before, stamp) = (self.newest, record.stamp);
        self.newest = stamp;
        let forward = stamp.wall >= before.wall && stamp.cluster >= before.cluster;
        ensure(forward, "P17 time does not go back", || {
            format!("{record} is stamped {stamp:?} after {before:?}")
        })
    }
}
