//! One test at a time on the whole machine: for tests that use the same addresses.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// More than all other tests take together.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Ends a turn when it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// The lock is held for as long as this is open.
    _lock: File,
}

/// The lock is a file, because another run on this machine may use the same addresses.
pub fn wait_for_turn(lock: &Path) -> Turn {
    let file = File::options().create(true).truncate(false).write(true).open(lock);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", lock.display()));
    let (tell, locked) = channel();
    std::thread::spawn(move || {
        let done = flock(&file, FlockOperation::LockExclusive).map(|()| file);
        // It is too late for a test that has given up.
        let _ = tell.send(done);
    });
    let locked = locked.recv_timeout(PATIENCE);
    let locked = locked.unwrap_or_else(|_| panic!("another run has kept {} for an hour", lock.display()));
    Turn { _lock: locked.unwrap_or_else(|error| panic!("{}: {error}", lock.display())) }
}
