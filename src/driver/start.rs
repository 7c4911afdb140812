//! From a data directory to a running loop.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use super::answers::Answers;
use super::api::{Handle, Leadership};
use super::engine::Engine;
use super::held::Held;
use super::pending::Pending;
use super::pulse::Pulse;
use super::setup::Setup;
use super::states::States;
use super::taker::Taker;
use super::transport::Network;
use super::{ASKS_MOST, DiskState, End, PEER_ASKS_MOST, Sources, clock, run};
use crate::protocol::{Input, Node, Seq};
use crate::storage::snapshot::Snapshots;
use crate::storage::{self, Boundary, Options, Report, StorageError};
use crate::store::{Loader, Store, Unreadable};
use crate::types::Boot;

/// A running node.
#[derive(Debug)]
pub struct Started {
    pub handle: Handle,
    /// The loop's end. Without it the process must not go on.
    pub ended: oneshot::Receiver<End>,
}

#[derive(Debug)]
pub enum StartError {
    Storage(StorageError),
    /// The newest snapshot holds something that this binary cannot read.
    State(Unreadable),
    Io(io::Error),
    /// No source of randomness.
    Random,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Storage(error) => error.fmt(f),
            StartError::State(error) => write!(f, "the newest snapshot cannot be read: {error}"),
            StartError::Io(error) => write!(f, "the node's threads cannot be started: {error}"),
            StartError::Random => write!(f, "the system gives no random numbers"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<StorageError> for StartError {
    fn from(error: StorageError) -> StartError {
        StartError::Storage(error)
    }
}
