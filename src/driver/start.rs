//! From a data directory to a running loop.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use super::answers::Answers;
use super::api::{Desk, Handle, channel};
use super::engine::Engine;
use super::held::Held;
use super::leasing::Leasing;
use super::pending::Pending;
use super::setup::Setup;
use super::states::States;
use super::taker::Taker;
use super::transport::Network;
use super::{ASKS_MOST, DiskState, End, Sources, clock, run};
use crate::protocol::{Fault, Mode, Node, Seq, SnapshotMeta};
use crate::storage::snapshot::{Incoming, SnapshotError, Snapshots};
use crate::storage::{self, Boundary, Opened, Options, Report, StorageError};
use crate::store::{Loader, Store, Unreadable};
use crate::types::{Boot, Vector};

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
    State(LoadError),
    Io(io::Error),
    Network(reqwest::Error),
    /// The system gives no random numbers.
    Random(getrandom::Error),
}

/// The newest snapshot checks, and still cannot be read into a store.
#[derive(Debug)]
pub enum LoadError {
    Snapshot(SnapshotError),
    Unreadable(Unreadable),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Storage(error) => error.fmt(f),
            StartError::State(error) => write!(f, "the newest snapshot cannot be read: {error}"),
            StartError::Io(error) => write!(f, "the node's threads cannot be started: {error}"),
            StartError::Network(error) => write!(f, "calls to peers cannot be prepared: {error}"),
            StartError::Random(error) => write!(f, "the system gives no random numbers: {error}"),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Snapshot(error) => error.fmt(f),
            LoadError::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}
impl std::error::Error for LoadError {}

impl From<SnapshotError> for LoadError {
    fn from(error: SnapshotError) -> LoadError {
        LoadError::Snapshot(error)
    }
}

impl From<Unreadable> for LoadError {
    fn from(error: Unreadable) -> LoadError {
        LoadError::Unreadable(error)
    }
}

/// Opens the data directory, reads the state into memory and starts the loop on a thread of its own.
pub fn start(setup: Setup, dir: &Path, adopt_copy: bool) -> Result<Started, StartError> {
    let boot = Boot(random_u64()?);
    let node = setup.settings.me;
    let options = Options { adopt_copy, ..Options::new(dir, &setup.cluster.name, node, boot) };
    let opened = storage::open(&options).map_err(StartError::Storage)?;
    for finding in &opened.findings {
        tracing::warn!("{finding}");
    }
    let (base, store) = load_newest(&opened.snapshots, setup.settings.mode).map_err(StartError::State)?;
    let (handle, desk) = channel(ASKS_MOST, opened.snapshots.clone());
    let (end, ended) = oneshot::channel();
    let (ready, started) = std::sync::mpsc::sync_channel(1);
    let life = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(StartError::Io(error)))),
        };
        let lived = runtime.block_on(async move {
            let parts = Parts { setup: Arc::new(setup), opened, base, store };
            match parts.assemble(desk) {
                Ok((engine, sources)) => {
                    let _ = ready.send(Ok(()));
                    Some(run(engine, sources).await)
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    None
                }
            }
        });
        // The disk is closed by now.
        if let Some(why) = lived {
            if matches!(why, End::Fault(Fault::Odd)) {
                start_over(&options);
            }
            let _ = end.send(why);
        }
    };
    thread::Builder::new().name("loop".to_string()).spawn(life).map_err(StartError::Io)?;
    match started.recv() {
        Ok(Ok(())) => Ok(Started { handle, ended }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::Io(io::Error::other("the loop's thread has died"))),
    }
}

/// This state differs from the majority's: the node comes back as a new disk, with nothing (P25).
fn start_over(options: &Options) {
    let why = "the state differed from that of a majority at the same record";
    match storage::start_over(options, why) {
        Ok(Some(folder)) => tracing::error!(folder = %folder.display(), "the odd state is set aside"),
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "the odd state could not be set aside"),
    }
}

struct Parts {
    setup: Arc<Setup>,
    opened: Opened,
    base: Boundary,
    store: Store,
}

impl Parts {
    fn assemble(self, desk: Desk) -> Result<(Engine, Sources), StartError> {
        let Parts { setup, opened, base, store } = self;
        let Desk { asks, peers, signs, feed, channels } = desk;
        feed.open(base.meta.at, setup.settings.is_available()).map_err(StartError::Io)?;
        let (network, arrived) = Network::start(&setup).map_err(StartError::Network)?;
        let (told, taken) = mpsc::channel(1);
        let tell = move |taken| drop(told.blocking_send(taken));
        let taker = Taker::start(opened.snapshots.clone(), tell).map_err(StartError::Io)?;
        let (report, disk) = watch::channel(DiskState::default());
        let running = opened.disk.start(move |said| report.send_modify(|state| state.note(said)));
        let running = running.map_err(StartError::Storage)?;
        let core = Node::new(setup.settings.clone(), opened.recovered, clock::now());
        let snapshot_index = base.index();
        // What a history includes is for the core to say, also where it has only just begun to.
        let meta = core.log().meta_at(snapshot_index);
        let engine = Engine {
            setup,
            core,
            states: States::new(store),
            meta,
            origin: base.origin,
            boundary: None,
            lines: opened.lines,
            disk: running,
            durable: Seq::default(),
            disk_full: false,
            held: Held::default(),
            jobs: Vec::new(),
            appends: Vec::new(),
            network: Arc::new(network),
            answers: Answers::default(),
            snapshots: opened.snapshots,
            taker,
            snapshot_index,
            pending: Pending::default(),
            leasing: Leasing::default(),
            brought: None,
            rebased: None,
            inputs: VecDeque::new(),
            signs,
            feed,
            channels,
            led_at: clock::now().mono,
            end: None,
        };
        Ok((engine, Sources { asks, peers, arrived, taken, disk }))
    }
}

/// The loop's parts on the current runtime, for a test to turn by hand.
#[cfg(test)]
pub fn assemble(setup: Setup, dir: &Path) -> Result<(Engine, Sources), StartError> {
    let options = Options::new(dir, &setup.cluster.name, setup.settings.me, Boot(1));
    let opened = storage::open(&options).map_err(StartError::Storage)?;
    let (base, store) = load_newest(&opened.snapshots, setup.settings.mode).map_err(StartError::State)?;
    let (_, desk) = channel(ASKS_MOST, opened.snapshots.clone());
    Parts { setup: Arc::new(setup), opened, base, store }.assemble(desk)
}

impl DiskState {
    fn note(&mut self, report: Report) {
        match report {
            Report::Durable(seq) => self.durable = self.durable.max(seq),
            Report::Full(full) => self.full = full,
            Report::Failed(error) => self.failed = Some(Arc::new(error)),
        }
    }
}

pub fn load_newest(snapshots: &Mutex<Snapshots>, mode: Mode) -> Result<(Boundary, Store), LoadError> {
    let snapshots = snapshots.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let boundary = snapshots.newest().cloned().unwrap_or_default();
    let mut loader = loader(mode, &boundary.meta);
    snapshots.load(|table, key, value| loader.add(table, key, value).map_err(LoadError::Unreadable))?;
    let store = loader.finish(boundary.meta.at, boundary.meta.stamp);
    Ok((boundary, store))
}

/// Only where histories may part does a state remember more than what is in it.
fn loader(mode: Mode, meta: &SnapshotMeta) -> Loader {
    match mode {
        Mode::Safe => Loader::default(),
        Mode::Available => Loader::with_sides(meta.vector.clone().unwrap_or_else(|| Vector::linear(meta.at))),
    }
}

/// Reads a received snapshot into a store.
pub fn load(incoming: &Incoming, mode: Mode) -> Result<Store, LoadError> {
    let mut loader = loader(mode, &incoming.boundary().meta);
    incoming.load(|table, key, value| loader.add(table, key, value).map_err(LoadError::Unreadable))?;
    let meta = &incoming.boundary().meta;
    Ok(loader.finish(meta.at, meta.stamp))
}

/// Never zero.
fn random_u64() -> Result<u64, StartError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(StartError::Random)?;
    Ok(u64::from_le_bytes(bytes) | 1)
}
