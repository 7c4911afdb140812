//! Roles and processes: the product's own store, its count of leases and its core, under the faults of safe mode.
//!
//! - `states`, `driver`, `acquire`, `renew` and `ends` follow `src/driver/leasing` step by step, on the simulator's hosts.
//! - `asks` carries calls to a node, on to the leader, and back; callers hang up.
//! - `contenders` (and `conduct`) want roles and register processes: each has a clock of its own, dies, freezes, renews late, asks twice.
//! - `witness` sees what is committed, promised and believed; the checkers (`checks::believers`, `early`, `late`, `fenced`,
//!   `returned`) judge it. `health` says when a lease must be coming to its end.
//! - `plan` is what a seed means, `run` one seed from harm to verdict, `soak` many of them.
//! - `stage` and `scenarios` are timelines by hand, `cheap` counts records, `mutants` puts known bugs back.

mod acquire;
mod asks;
mod cheap;
mod conduct;
mod contenders;
mod driver;
mod ends;
mod health;
mod mutants;
mod plan;
mod renew;
mod run;
mod scenarios;
mod soak;
mod stage;
mod states;
mod witness;

pub use asks::{Asked, Event, Told, Wish};
pub use contenders::Lessees;
pub use driver::Leasing;
pub use witness::Witness;
