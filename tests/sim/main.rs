//! The simulator: production cores, seeded faults, and checkers that see everything.
//!
//! `scripts/sim --seeds N` and `scripts/sim --seed S` are the ways in. See `docs/protocol.md`, "How it is
//! tested".

extern crate eldest_core as eldest;

mod access;
mod answers;
mod calls;
mod calm;
mod checks;
mod client;
mod commands;
mod copies;
mod crashes;
mod disk;
mod disks;
mod distances;
mod doubles;
mod endurance;
mod falters;
mod figures;
mod founding;
mod full;
mod graphs;
mod guarded;
mod host;
mod isolation;
mod keys;
mod late_words;
mod leases;
mod linear;
mod membership;
mod mutants;
mod net;
mod old_records;
mod operations;
mod pace;
mod plan;
mod process;
mod readers;
mod reconfigured;
mod restores;
mod rng;
mod run;
mod scenarios;
mod sides;
mod soak;
mod stage;
mod state;
mod stored;
mod stories;
mod succession;
mod successors;
mod timings;
mod traffic;
mod trusted;
mod world;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
