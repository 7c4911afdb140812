//! Clusters of real processes, driven only over HTTP and signals: nothing here knows the code it tests.
//!
//! A test owns its [`Cluster`]: addresses, folders and processes are its own and end with it. A failed test
//! leaves its folder behind and prints the path, with the end of every node's log. No test waits for a fixed
//! time: [`wait_for`] polls a condition, and its deadline only makes a test fail.

mod addresses;
mod browser;
mod call;
mod certs;
mod cluster;
mod disk;
mod folder;
mod namespaces;
mod node;
mod problem;
mod raw;
mod retry;
mod rng;
mod run;
mod skip;
mod stream;
mod tmpfs;
mod topology;
mod wait;

pub use browser::Browser;
pub use call::client_with;
pub use call::{Answer, Call, Silence, query};
pub use certs::Certs;
pub use cluster::{Cluster, Plan};
pub use disk::{LogLine, tear_the_tail};
pub use folder::Folder;
pub use namespaces::Network;
pub use problem::{peer_problem, problem};
pub use raw::Raw;
pub use rng::Rng;
pub use run::{bounded, eldest};
pub use skip::{left_out, system};
pub use stream::{Events, Told};
pub use tmpfs::SmallDisk;
pub use wait::{wait_for, watch_for};
