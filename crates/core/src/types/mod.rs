//! The words of the protocol: who, when, where in the log, and what is written there.
//!
//! Plain values with no behaviour beyond their own order and notation. Knows nobody.

mod digest;
mod epoch;
mod history;
mod ids;
mod lease;
mod member;
mod number;
mod position;
mod record;
mod text;
mod time;
mod vector;

pub use digest::{DIGESTS, Digest};
pub use epoch::{Epoch, Misspelt};
pub use history::History;
pub use ids::{Boot, ClaimId, Incarnation, NodeId, RequestId};
pub use lease::{LEASES_MOST, Lease, LeaseName, WAITERS_MOST, WAITERS_PER_ROLE_MOST};
pub use member::{ClusterId, Member, Members};
pub use number::{INDEX_MOST, NUMBER_MOST, number};
pub use position::{Index, Position};
pub use record::{Entry, FORMAT, Format, Founding, KeyedCall, Owner, Payload, Record, Stamp};
pub use text::Text;
pub use time::{Now, Span, Time, WallTime};
pub use vector::{BEGINNING, Vector};
