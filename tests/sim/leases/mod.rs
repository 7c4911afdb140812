//! Roles and processes under the faults of safe mode.
//!
//! - `asks` carries calls to a node, on to the leader, and back; callers hang up.
//! - `contenders` (and `conduct`) want roles and register processes: each has its own clock, dies, freezes,
//!   renews late, asks twice.
//! - `documents` are those that end by themselves, some of them with a role or a process.
//! - `thieves` try to end what others hold under a secret.
//! - `ties` are connections that holders rely on as well, and what the nodes that serve them say of them.
//! - `witness` sees what is committed, promised and believed; the checkers (`checks::believers`, `early`,
//!   `late`, `fenced`, `returned`) judge it. `health` says when a lease must be coming to its end.
//! - `plan` is what a seed means, `run` one seed from harm to verdict, `soak` many of them.
//! - `stage` and `scenarios` are timelines by hand, `cheap` counts records, `mutants` puts known bugs back.

mod asks;
mod cheap;
mod conduct;
mod contenders;
mod documents;
mod health;
mod mutants;
mod plan;
mod run;
mod scenarios;
mod soak;
mod stage;
mod thieves;
mod ties;
mod witness;

pub use asks::{Asked, Event, Told, Wish};
pub use contenders::{Lessees, certain};
pub use documents::Asked as DocumentAsked;
pub use witness::Witness;
