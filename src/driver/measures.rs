//! What the loop is asked for at each scrape: how much there is of everything at this moment.

use std::time::Duration;

use super::remarks::Remark;
use super::status::Status;
use crate::types::Now;

#[derive(Clone, Debug)]
pub struct Measures {
    /// This machine's clocks at this moment.
    pub at: Now,
    pub status: Status,
    /// Entries of each table of the state.
    pub rows: [(&'static str, usize); 8],
    pub conflicts: usize,
    /// Calls that want a role which somebody else has; only the leader knows of any.
    pub waiting_for_roles: usize,
    pub uncommitted_bytes: usize,
    /// Messages that wait for the disk.
    pub unsynced: usize,
    /// What a call to each of the others takes, where it is known.
    pub round_trips: Vec<(u32, Duration)>,
    /// What an operator should look at, each by its matter.
    pub remarks: Vec<Remark>,
    /// How long the oldest round has been on its way to the disk.
    pub disk_waits: Duration,
    /// Of the last half minute at least.
    pub slowest_sync: Duration,
}
