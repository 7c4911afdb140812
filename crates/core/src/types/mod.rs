//! The terms of the protocol: ids, times, positions in the log, and records.
//!
//! They are plain values: order, notation and arithmetic (a `Vector` also joins and compares). This module imports no other.

mod digest;
mod ids;
mod position;
mod record;
mod time;
mod vector;

pub use digest::{DIGESTS, Digest};
pub use ids::{Boot, ClaimId, ClusterId, Incarnation, Member, Members, NodeId, RequestId, Text};
pub use position::{Epoch, History, INDEX_MOST, Index, Misspelt, NUMBER_MOST, Position, number};
pub use record::{
    Entry, FORMAT, Format, Founding, KeyedCall, LEASES_MOST, Lease, LeaseName, Owner, Payload, Record, Stamp,
    WAITERS_MOST, WAITERS_PER_ROLE_MOST,
};
pub use time::{Now, Span, Time, WallTime};
pub use vector::{BEGINNING, Vector};
