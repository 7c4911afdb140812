//! Leases end by the leader's clock if they are not renewed, and callers wait for roles that are held.
//!
//! ```text
//!                 asked at arrival          asked again             ┌── Renewable: `renew`, answer its `expires_in`
//! renewal ──► `renewal` ──► a round that starts now ──► `renewal` ──┼── Ending: wait for `settled`, then ask again
//!                                                                   └── Lost: the lease is gone, or this node no longer leads
//!
//! `deadline` ──► `due` ──► one record: ends, or ages and refreshes ──► the log ──► `changed` …, `settled`
//! ```
//!
//! The log has the holder of each lease, its token and its ttl ([`Lease`](crate::types::Lease)). Renewals are not in the
//! log: [`Leases`] remembers them, on the leader alone, and forgets them with the leadership. So after a failover every lease
//! starts again: late, never early. `counted` proves that no holder believes in a lease that was ended (C14), `agenda` has
//! the changes that are due next, `ends` puts both together. [`Waiters`] has the calls that want a held role.
//!
//! All this is pure, like the store: the time is an argument, and nothing here reads a clock, does IO or draws a number.
//! Nothing here knows what a role or a process is.

mod agenda;
mod counted;
mod ends;
#[cfg(test)]
mod tests;
mod waiters;

pub use agenda::Due;
pub use ends::{Leases, Outcome, RenewalVerdict, Renewed};
pub use waiters::{Full, Next, TurnedAway, Waiter, Waiters};
