//! Writes snapshots and scheduled backups, on separate threads.
//!
//! ```text
//!   Out::Snapshot ──► thread `snapshots`: take ── Taken ──► the loop
//!                         └── wakes ──► thread `merges`: merge_once, until no merge is due
//!   Schedule ───────► thread `backups`: Handle::read ──► Copies::add
//! ```

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};
use tokio::runtime::Handle as Runtime;

use super::clock;
use super::handle::Handle;
use super::handle::Level;
use super::setup::Setup;
use crate::replica::SnapshotOrder;
use crate::storage::Boundary;
use crate::storage::node::backup::Copies;
use crate::storage::node::{merge_once, take};
use crate::storage::snapshot::{SnapshotError, Snapshots};
use crate::types::Index;

/// The result of writing a snapshot.
pub type Taken = Result<Index, SnapshotError>;

/// Snapshots are written and merged on separate threads; the replica decides when one is due. A merge locks the chain only when
/// it begins and when it ends (`merge_once`), so the next snapshot does not wait for it.
#[derive(Debug)]
pub struct SnapshotWriter {
    jobs: SyncSender<(Boundary, SnapshotOrder)>,
}

impl SnapshotWriter {
    /// Starts the threads. `tell` is called at the end of every snapshot, on the snapshots' thread.
    pub fn start(
        snapshots: Arc<Mutex<Snapshots>>,
        tell: impl Fn(Taken) + Send + 'static,
    ) -> std::io::Result<SnapshotWriter> {
        let (jobs, queue) = sync_channel(1);
        let (wake, woken) = sync_channel(1);
        let chain = snapshots.clone();
        thread::Builder::new().name("snapshots".to_string()).spawn(move || {
            for (boundary, order) in queue {
                tell(take(&chain, boundary, order));
                // A full queue means that the merger has been woken already.
                let _ = wake.try_send(());
            }
        })?;
        thread::Builder::new().name("merges".to_string()).spawn(move || merge_all(&snapshots, &woken))?;
        Ok(SnapshotWriter { jobs })
    }

    pub fn write(&self, boundary: Boundary, order: SnapshotOrder) {
        // The queue has room, because at most one snapshot is pending. If the thread has ended, the process ends, too.
        let _ = self.jobs.try_send((boundary, order));
    }
}

fn merge_all(snapshots: &Mutex<Snapshots>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        loop {
            match merge_once(snapshots) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    // The chain is as good as before, only longer. The next snapshot asks for a merge again.
                    tracing::warn!(%error, "cannot merge snapshots");
                    break;
                }
            }
        }
    }
}

/// The name under which this module sets its notice.
const MATTER: &str = "backup";

/// Backups that a node writes by itself, on a separate thread. The thread asks the loop for a view, as any reader does, and then works
/// only with the folder. An error here stops nothing else.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub folder: PathBuf,
    pub every: Duration,
    pub keep: usize,
}

impl Schedule {
    /// Writes one backup at once, so that even a node that starts often has some; then one at each interval, until the loop has ended.
    pub fn start(self, handle: Handle, setup: Arc<Setup>, runtime: Runtime) -> io::Result<()> {
        handle.numbers().backups.is_scheduled(self.every);
        let work = move || {
            loop {
                self.copy(&handle, &setup, &runtime);
                let ended =
                    runtime.block_on(async { tokio::time::timeout(self.every, handle.ended()).await });
                if ended.is_ok() {
                    return;
                }
            }
        };
        thread::Builder::new().name("backups".to_string()).spawn(work).map(drop)
    }

    fn copy(&self, handle: &Handle, setup: &Setup, runtime: &Runtime) {
        // A node that has no data yet, or that stops, has nothing to back up. A local read needs no leader, so a node that is cut
        // off still backs up what it has.
        let Ok(view) = runtime.block_on(handle.read(Level::Local)) else { return };
        if view.index == 0 {
            return;
        }
        let copies = Copies::new(self.folder.clone(), self.keep);
        let backups = &handle.numbers().backups;
        match copies.add(&setup.home(), &view.store, clock::now().wall) {
            Ok(written) => {
                backups.succeeded(clock::now().wall, written);
                setup.notices.set(MATTER, None);
                if let Some(bytes) = written {
                    tracing::info!(index = view.index, bytes, dir = %self.folder.display(), "saved a copy of \
                        the state");
                }
            }
            Err(error) => {
                backups.failures.add(1);
                let dir = self.folder.display();
                tracing::warn!(%error, %dir, "cannot save a copy of the state");
                let notice = format!(
                    "cannot save a copy of the state in {dir}: {error}. The node tries again every {} s \
                        (backup.every_ms)",
                    self.every.as_secs_f64()
                );
                setup.notices.set(MATTER, Some(notice));
            }
        }
    }
}
