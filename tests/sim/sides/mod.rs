//! Available mode: every side of a split goes on, and sides that meet are merged.
//!
//! - `driver` looks at what only this mode does: merges, overrides, what each state includes.
//! - `clients` write through any node that takes it, on all sides at once.
//! - `roles` are held on every side.
//! - `plan` is what a seed means, `run` one seed from harm to verdict, `soak` many of them.
//! - `stage`, `scenarios` and `beginnings` are timelines by hand, `crashes` a death at any output of a heal.
//! - `impasses` are merges that cannot take place, `preparing` those that take long.
//! - `mutants` puts known bugs back.
//!
//! The checkers are in `checks`: `history` is what really happened, kept by the simulator and seen by no
//! node.

mod beginnings;
mod clients;
mod crashes;
mod documents;
mod driver;
mod end;
mod impasses;
mod mutants;
mod plan;
mod preparing;
mod roles;
mod run;
mod scenarios;
mod soak;
mod stage;

pub use crate::state::State as Side;
pub use clients::{Asked, Event, Sides};
pub use roles::{Asked as RoleAsked, Event as RoleEvent, Holders};
pub use stage::{led, set, split, stage, unformed};
