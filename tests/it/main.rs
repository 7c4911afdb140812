//! The binary from outside: real processes, real sockets, real disks, and only the promises of the contract.
//!
//! Every test starts its own cluster. See `harness` for how, and `load` for the promise that is checked under
//! all faults. A machine that allows no mount, no network namespace or no shifted clock, or has no browser,
//! fails the tests that need them, unless `ELDEST_SKIP_TMPFS`, `ELDEST_SKIP_NETNS`, `ELDEST_SKIP_CLOCKS`,
//! `ELDEST_SKIP_BROWSER` or `ELDEST_SKIP_PROMETHEUS` says to leave them out, which is printed.

mod harness;
// The simulator's checker, unchanged: its verdict on a history does not depend on where the history was made.
#[path = "../sim/linear/mod.rs"]
mod linear;
// The checkers of the long random test: the gate runs their tests here.
#[cfg(test)]
#[path = "../torture/check/mod.rs"]
mod check;
mod load;
mod malformed;
mod registers;

mod advice;
mod backups;
mod batches;
mod bulk;
mod catch_up;
mod channels;
mod client;
mod connections;
mod contention;
mod contexts;
mod copies;
mod crashes;
mod crowds;
mod dashboard;
mod doctor;
mod documents;
mod drill;
mod elections;
mod errors;
mod exec;
mod feed;
mod forwarding;
mod full_disk;
mod garbage;
mod idempotency;
mod impasses;
mod lease_secrets;
mod lifetimes;
mod linearizable;
mod members;
mod metrics;
mod mistakes;
mod notify;
mod numbers;
mod odd;
mod outputs;
mod partitions;
mod pauses;
mod processes;
mod put_back;
mod reads;
mod refusals;
mod restores;
mod roles;
mod rolling;
mod secret;
mod seed_routes;
mod service;
mod shares;
mod sides;
mod slow;
mod stopping;
mod stories;
mod strangers;
mod terminal;
mod timings;
mod tls;
mod tokens;
mod top;
mod tour;
mod traces;
mod units;
mod unreadable;
mod users;
mod wall_clock;
mod web;
mod why;
mod wiped;
