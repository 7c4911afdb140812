//! The continuous election: this process leads, or stands by to lead, from `start` until `stop`.
//!
//! ```text
//!            granted, and proved if it was waited for
//!  campaign ────────────────────────────────────────▶ reign     renews every `renew_every`
//!      ▲                                                │
//!      └──── the lease is lost, its safe time is over, ─┘
//!            or the feed tells of a newer grant
//! ```
//!
//! A follower waits at the cluster for the role, so that it takes over the moment the role is free.
//! [`Election::is_leader`] reads the clock at each call. It turns false before the lease ends, even if no task of
//! this process gets to run.

mod builder;
mod candidacy;
mod core;
mod event;
mod run;

pub use builder::ElectionBuilder;
pub use candidacy::{ELECTION_WAIT, Election};
pub use event::{ElectionEvent, ElectionEvents, Role, Status};
