//! Snapshots are written and merged on threads of their own; when one is due, the replica says.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::replica::SnapshotOrder;
use crate::storage::Boundary;
use crate::storage::node::{merge_once, take};
use crate::storage::snapshot::{SnapshotError, Snapshots};
use crate::types::Index;

/// What became of a snapshot.
pub type Taken = Result<Index, SnapshotError>;

#[derive(Debug)]
pub struct SnapshotWriter {
    jobs: SyncSender<(Boundary, SnapshotOrder)>,
}

impl SnapshotWriter {
    /// `tell` hears of every snapshot's end, on the snapshots' own thread.
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
        // There is room: at most one is on its way. A thread that has ended has ended the process.
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
                    // The chain is as good as before, only longer. The next snapshot asks again.
                    tracing::warn!(%error, "snapshots could not be merged");
                    break;
                }
            }
        }
    }
}
