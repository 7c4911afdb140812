//! Copies of the state that a node keeps by itself, on a thread of their own. The loop is asked for a view, as by any reader, and the
//! rest is between this thread and the folder. Nothing that goes wrong here stops anything else.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;

use super::api::{Handle, Level};
use super::clock;
use super::setup::Setup;
use crate::storage::node::backup::Copies;

/// What the notice is about.
const MATTER: &str = "backup";

#[derive(Clone, Debug)]
pub struct Schedule {
    pub folder: PathBuf,
    pub every: Duration,
    pub keep: usize,
}

impl Schedule {
    /// One copy at once, so that a node that starts often has some; then one at each interval, until the loop has ended.
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
        // A node that has nothing yet, or ends, has nothing to keep.
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
                    tracing::info!(index = view.index, bytes, dir = %self.folder.display(), "a copy of the state is kept");
                }
            }
            Err(error) => {
                backups.failures.add(1);
                let dir = self.folder.display();
                tracing::warn!(%error, %dir, "no copy of the state could be kept");
                let notice = format!(
                    "no copy of the state could be kept in {dir}: {error}. It is tried again every {} s (backup.every_ms)",
                    self.every.as_secs_f64()
                );
                setup.notices.set(MATTER, Some(notice));
            }
        }
    }
}
