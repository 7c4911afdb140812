//! Roles and processes: who holds what, under which token, and for how long at a time.
//!
//! `rules` says what each operation demands and does, `events` what became of a lease, `views` what readers are shown; `bonds` are
//! documents that end with a lease, or by their ttl. Records grant, replace and end leases. The leader alone knows whether a
//! lease has been renewed lately (`crate::leases`), and proposes the records that end those that were not.

mod bonds;
mod events;
mod rules;
mod views;

pub use events::{DocEnded, Ended, LeaseEvent};
pub use rules::Effects;
pub use views::ProcessFilter;
