//! When what must be renewed ends, by the leader's clock; and who waits for it.
//!
//! ```text
//!                 asked at arrival          asked again             ┌── Renewable: `renew`, answer its `expires_in`
//! renewal ──► `renewal` ──► a round that starts now ──► `renewal` ──┼── Ending: wait for `settled`, then ask again
//!                                                                   └── Lost: 410
//!
//! `deadline` ──► `due` ──► one record: ends, or ages and refreshes ──► the log ──► `changed` …, `settled`
//! ```
//!
//! The log says who holds what under which token, and for how long ([`Lease`](crate::types::Lease)). It says nothing of
//! renewals: [`Leases`] remembers them, on the leader alone, and forgets them with the leadership. So after a failover
//! every lease starts anew: late, never early. `held` has the argument why no holder believes in a lease that was ended
//! (C14), `agenda` what is due next, `ends` puts both together. [`Waiters`] are the ones who want a role that is taken.
//!
//! Pure, like the store: the time is an argument, and nothing here reads a clock, does IO or draws a number. Nothing
//! here knows what a role or a process is.

mod agenda;
mod counted;
mod ends;
#[cfg(test)]
mod tests;
mod waiters;

pub use agenda::Due;
pub use ends::{Leases, Outcome, RenewalVerdict, Renewed};
pub use waiters::{Full, Next, TurnedAway, Waiter, Waiters};
