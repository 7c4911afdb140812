//! The simulator: production cores, seeded faults, and checkers that see everything.
//!
//! `scripts/sim --seeds N` and `scripts/sim --seed S` are the ways in. See `docs/protocol.md`, "How it is
//! tested".

mod calls;
mod calm;
mod checks;
mod client;
mod crashes;
mod disk;
mod endurance;
mod figures;
mod graphs;
mod host;
mod isolation;
mod leases;
mod linear;
mod mutants;
mod net;
mod old_records;
mod operations;
mod plan;
mod process;
mod rng;
mod run;
mod scenarios;
mod sides;
mod soak;
mod stage;
mod store;
mod succession;
mod world;
