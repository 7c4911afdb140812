//! Starts the loop from a data directory, and reads the loop's sources in the order of their urgency.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io, thread};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot, watch};

use super::chronicle::Chronicle;
use super::clock;
use super::end::End;
use super::engine::{DiskEnd, Engine, PREPARED_MOST, Unsynced, Wiring};
use super::handle::{Ask, Desk, Handle, PeerAsk, channel};
use super::replies::CallChunk;
use super::setup::Setup;
use super::snapshots::{SnapshotWriter, Taken};
use super::transport::{Arrived, Network};
use crate::protocol::{Fault, Seq};
use crate::replica::{In, Prepared, Replica, Start};
use crate::storage::node::{DiskState, Encoder, LoadError, starting};
use crate::storage::snapshot::Snapshots;
use crate::storage::{self, Idle, Lines, Opened, Options, StorageError};
use crate::types::{Boot, Time};

/// A running node.
#[derive(Debug)]
pub struct Started {
    pub handle: Handle,
    /// The runtime of the loop's thread. What runs there must be short and must not block, because the loop waits meanwhile.
    pub runtime: runtime::Handle,
    /// The end of the loop. The process must not continue without the loop.
    pub ended: oneshot::Receiver<End>,
}

/// The operator's statements about the disk, for this start only.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskWords {
    /// The disk was copied, and the original will never start again. The copy is still admitted as a new disk, because the
    /// original may be in use after all (P27).
    pub adopt_copy: bool,
    /// The disk's promises count, even if it may have lost some: for a cluster with so many doubted disks that no majority is
    /// left to admit them (P27).
    pub trust_disk: bool,
}

#[derive(Debug)]
pub enum StartError {
    Storage(StorageError),
    State(LoadError),
    Io(io::Error),
    Network(reqwest::Error),
    /// The system provides no random numbers.
    Random(getrandom::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Storage(error) => error.fmt(f),
            StartError::State(error) => write!(f, "cannot read the newest snapshot: {error}"),
            StartError::Io(error) => write!(f, "cannot start the node's threads: {error}"),
            StartError::Network(error) => write!(f, "cannot set up calls to other nodes: {error}"),
            StartError::Random(error) => write!(f, "cannot get random numbers from the system: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Opens the data directory, reads the state into memory and starts the loop on a separate thread.
pub fn start(setup: Arc<Setup>, dir: &Path, words: DiskWords) -> Result<Started, StartError> {
    let boot = Boot(random_u64()?);
    let node = setup.settings.me;
    let mode = setup.settings.mode;
    let DiskWords { adopt_copy, trust_disk } = words;
    let options =
        Options { mode, adopt_copy, trust_disk, ..Options::new(dir, &setup.cluster.name, node, boot) };
    start_on(setup, options)
}

/// The time after the loop's end in which its thread still sends what is ready: answers on open connections, and messages for which a
/// link is free. Others are lost, as in a crash.
const LAST_WORDS: Duration = Duration::from_millis(10);

/// Does the same as [`start`] on a given disk, which may be a simulated one. The state is read before the loop's thread starts.
/// The parts that need the loop's runtime are made on that thread, and `ready` reports their errors, so that no caller gets a
/// handle to a loop that did not start.
pub fn start_on(setup: Arc<Setup>, options: Options) -> Result<Started, StartError> {
    let opened = storage::open(&options).map_err(StartError::Storage)?;
    close_to_others(&options.dir);
    for finding in &opened.findings {
        tracing::warn!("{finding}");
    }
    let Opened { disk, recovered, lines, snapshots, .. } = opened;
    let (settings, every) = (setup.settings.clone(), setup.snapshot_every);
    let replica = starting(settings, every, recovered, &snapshots).map_err(StartError::State)?;
    let chronicle = Chronicle::open(&options.dir, &setup, replica.last_index());
    let (handle, desk) = channel(ASKS_MOST, snapshots.clone());
    let (end, ended) = oneshot::channel();
    let (ready, started) = std::sync::mpsc::sync_channel(1);
    let life = move || {
        // For `scripts/torture --bug`. No release enables this feature.
        #[cfg(feature = "mutants")]
        if let Ok(name) = std::env::var("ELDEST_MUTANT") {
            let bug = crate::protocol::mutant::named(&name);
            crate::protocol::mutant::set(Some(bug.expect("ELDEST_MUTANT names a known bug")));
        }
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(StartError::Io(error)))),
        };
        let lived = runtime.block_on(async move {
            let parts = Parts { setup, disk, lines, snapshots, replica, chronicle };
            match parts.assemble(desk) {
                Ok((mut engine, sources)) => {
                    let _ = ready.send(Ok(runtime::Handle::current()));
                    let why = run(&mut engine, sources).await;
                    tokio::time::sleep(LAST_WORDS).await;
                    Some((why, engine))
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    None
                }
            }
        });
        // Closing the disk may take long, so connections of peers end before it.
        runtime.shutdown_background();
        // The engine closes the disk, because setting the state aside takes the lock on the directory again. The end is reported after
        // that, because the process exits once it is reported. Otherwise the next process could start with this state, and the fault
        // would be detected again (P25).
        if let Some((why, engine)) = lived {
            drop(engine);
            match why {
                End::Fault(Fault::Odd) => {
                    start_over(&options, "the state differed from that of a majority at the same record");
                }
                End::Fault(Fault::Forgot) => {
                    start_over(
                        &options,
                        "the log ended before a record that this disk had acknowledged to its leader",
                    );
                }
                // Any other end leaves the data in place. A stranger may have said that this node was removed (P51), and a newer
                // version can read a record whose format this one does not know.
                _ => {}
            }
            let _ = end.send(why);
        }
    };
    thread::Builder::new().name("loop".to_string()).spawn(life).map_err(StartError::Io)?;
    match started.recv() {
        Ok(Ok(runtime)) => Ok(Started { handle, runtime, ended }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::Io(io::Error::other("the loop's thread has died"))),
    }
}

/// Removes other users' access. A directory that belongs to another user is left alone, and the node starts anyway: it may be mounted that
/// way.
fn close_to_others(dir: &Path) {
    match storage::close_to_others(dir) {
        Ok(0) => {}
        Ok(count) => {
            tracing::info!(count, data = %dir.display(), "removed access for other users from this node's files")
        }
        Err(error) => {
            tracing::warn!(%error, data = %dir.display(), "cannot remove access for other users from this node's files")
        }
    }
}

/// This disk cannot be used any more: the node returns as a new one, without data (P25, P27).
fn start_over(options: &Options, why: &str) {
    match storage::start_over(options, why) {
        Ok(Some(folder)) => tracing::error!(folder = %folder.display(), "the state is set aside: {why}"),
        Ok(None) => {}
        Err(error) => tracing::error!(%error, "cannot set the state aside"),
    }
}

struct Parts {
    setup: Arc<Setup>,
    disk: Idle,
    lines: Lines,
    snapshots: Arc<Mutex<Snapshots>>,
    replica: Start,
    chronicle: Chronicle,
}

impl Parts {
    /// The directory follows the log before the network starts, because the network makes a link to each member in the directory.
    /// In available mode the topology file alone names the members (P43).
    fn assemble(self, desk: Desk) -> Result<(Engine, LoopSources), StartError> {
        let Parts { setup, disk, lines, snapshots, replica, chronicle } = self;
        let Desk { asks, chunks, peers, signs, reads, numbers, feed, channels, gone } = desk;
        let (at, history) = (replica.store.applied(), replica.store.history());
        feed.open(at, setup.settings.is_available(), history).map_err(StartError::Io)?;
        let roster = replica.roster();
        let by_log = roster.members().filter(|_| !setup.settings.is_available());
        if let Some(members) = by_log {
            setup.directory.follow(roster.cluster(), members);
        }
        let (network, arrived) = Network::start(&setup).map_err(StartError::Network)?;
        // One place is enough, because the replica orders one snapshot at a time. While the loop is busy, the snapshots' thread
        // waits with its report.
        let (told, taken) = mpsc::channel(1);
        let tell = move |taken| drop(told.blocking_send(taken));
        let snapshot_writer = SnapshotWriter::start(snapshots.clone(), tell).map_err(StartError::Io)?;
        let (report, reports) = watch::channel(DiskState::default());
        let (prepared, outcomes) = mpsc::channel(PREPARED_MOST);
        let running = disk.start(move |said| report.send_modify(|state| state.note(said)));
        let disk_end = DiskEnd {
            encoder: Encoder::new(lines),
            disk: running.map_err(StartError::Storage)?,
            durable: Seq::default(),
            promised: Seq::default(),
            full: false,
            unsynced: Unsynced::default(),
            jobs: Vec::new(),
            appends: Vec::new(),
        };
        let network = Arc::new(network);
        let wiring = Wiring {
            setup,
            network,
            snapshots,
            snapshot_writer,
            prepared,
            signs,
            reads,
            numbers,
            feed,
            channels,
            chronicle,
        };
        let engine = Engine::new(Replica::new(replica, clock::now()), disk_end, wiring);
        Ok((
            engine,
            LoopSources { asks, chunks, gone, peers, arrived, taken, prepared: outcomes, disk: reports },
        ))
    }
}

/// Returns a random number that is not zero. No process has the boot 0: it stands for a greeting (`transport/greeting.rs`).
fn random_u64() -> Result<u64, StartError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(StartError::Random)?;
    Ok(u64::from_le_bytes(bytes) | 1)
}

/// The maximum number of calls that wait for the loop, of clients and of peers each: as many as it handles in a few milliseconds. Beyond
/// it clients are refused at once (429), and calls of peers wait, which slows the sender down.
pub const ASKS_MOST: usize = 4096;
/// The number of calls that are handled before the loop reads the disk's and the peers' messages again. One chunk of a stream may come
/// with them, so that neither kind of client delays the other for long.
const CALLS_PER_TURN: usize = 64;

/// The number of clients' calls that are handled, over several turns, before peers' connections on this thread are served again, if
/// the loop does not wait in between: they take a few milliseconds. A chunk of a stream may add 1,024.
const CALLS_PER_YIELD: usize = 256;

/// All sources of inputs to the loop. `gone` is apart from `asks` because a disconnect must overtake the calls that wait there
/// (P41). `chunks` is apart because one of its entries is up to 1,024 calls.
#[derive(Debug)]
pub struct LoopSources {
    pub asks: mpsc::Receiver<Ask>,
    pub chunks: mpsc::Receiver<CallChunk>,
    pub gone: mpsc::Receiver<In>,
    pub peers: mpsc::Receiver<PeerAsk>,
    pub arrived: mpsc::Receiver<Arrived>,
    pub taken: mpsc::Receiver<Taken>,
    pub prepared: mpsc::Receiver<Prepared>,
    pub disk: watch::Receiver<DiskState>,
}

/// Runs until the end. Sources are read in the order of urgency: first the disk, then peers, and clients last. A report of the
/// disk releases acknowledgements and approvals that clients and candidates wait for (P29). Timers run after every branch, so a
/// flood from one source puts a timer off by one batch at most. `flush` comes last: writes that one pass has caused are synced
/// together.
pub async fn run(engine: &mut Engine, mut sources: LoopSources) -> End {
    let mut asks = Vec::with_capacity(CALLS_PER_TURN);
    let mut peers = Vec::with_capacity(CALLS_PER_TURN);
    let mut calls = 0;
    loop {
        // Disconnected callers must leave the queue of waiters before any call moves it (P41).
        while let Ok(word) = sources.gone.try_recv() {
            engine.gone(word);
        }
        let due = until(engine.deadline());
        tokio::select! {
            biased;
            Ok(()) = sources.disk.changed() => {
                let state = sources.disk.borrow_and_update().clone();
                engine.disk_reports(state);
            }
            // A timer that is due does not wait behind messages. The last branch waits for a timer only while no source has
            // anything.
            () = tokio::time::sleep(due), if due.is_zero() => {}
            _ = sources.peers.recv_many(&mut peers, CALLS_PER_TURN) => {
                peers.drain(..).for_each(|ask| engine.on_peer_question(ask));
            }
            Some(arrived) = sources.arrived.recv() => engine.arrived(arrived),
            Some(taken) = sources.taken.recv() => engine.snapshot_taken(taken),
            Some(prepared) = sources.prepared.recv() => engine.is_prepared(prepared),
            Some(word) = sources.gone.recv() => engine.gone(word),
            _ = sources.asks.recv_many(&mut asks, CALLS_PER_TURN) => {
                let chunk = sources.chunks.try_recv().ok();
                calls += asks.len() + chunk.as_ref().map_or(0, |chunk| chunk.calls.len());
                engine.asked(asks.drain(..), chunk);
            }
            Some(chunk) = sources.chunks.recv() => {
                calls += chunk.calls.len();
                engine.asked([].into_iter(), Some(chunk));
            }
            () = tokio::time::sleep(due) => {}
        }
        engine.tick();
        engine.flush();
        if let Some(end) = engine.end.take() {
            engine.signs.advise(None);
            engine.replies.end();
            engine.reads.end();
            engine.channels.end();
            return end;
        }
        // This thread also serves connections of peers. They need not wait until no call of a client is left, which may be never.
        if calls >= CALLS_PER_YIELD {
            calls = 0;
            tokio::task::yield_now().await;
        }
    }
}

fn until(deadline: Time) -> Duration {
    /// An early wake-up costs nothing, and the bound keeps the sleep within the range of every clock.
    const LONGEST: Duration = Duration::from_secs(3600);
    Duration::from_micros(deadline.since(clock::now().mono).0).min(LONGEST)
}
