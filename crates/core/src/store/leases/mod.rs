//! Roles and processes: the holders, their tokens, and the ttls of their leases.
//!
//! `rules` has the preconditions and effects of each operation, `events` the lease events, `views` the form that readers see;
//! `bonds` are documents that end with a lease, or by their ttl. Records grant, replace and end leases. Only the leader knows
//! whether a lease has been renewed recently (`crate::leases`), and it proposes the records that end leases which were not
//! renewed.

mod bonds;
mod events;
mod rules;
mod views;

pub use events::{DocEnded, Ended, LeaseEvent};
pub use rules::Effects;
pub use views::ProcessFilter;
