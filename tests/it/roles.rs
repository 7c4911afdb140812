//! Roles held by real clients of real nodes: one holder each, tokens that rise, and no lease that ends early.

mod answers;
mod asks;
mod failover;
mod hold;
mod refusals;
mod shell;
mod splits;
mod ties;
mod waits;

pub use asks::{Asks, LONG, WAIT, acquire, got, grant, line_is, patient, renew, role, role_events, until};
