//! The disk of one node, as the driver uses it: a queue, the thread that works on it, and the thread that allocates segments
//! ahead.
//!
//! ```text
//!  submit ─► Inbox ─► eldest-disk: Work::run ─► DiskWriter::round ─► report
//!              ▲           │ want(size)
//!              └─ Room ── eldest-room: make_room
//! ```
//!
//! Jobs that arrive during a sync wait in the inbox and share the next sync. A segment is allocated on the other thread,
//! because filling it takes a sync for each MiB, and the log needs the next segment only later.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::counters::{Counted, Counters};
use super::error::StorageError;
use super::files::Lock;
use super::segment::{self, Spare};
use super::step::{DiskWriter, Room};
use super::writer::{Job, Report, Writer};
use crate::protocol::Seq;

/// After this much quiet, a marker in the log says how far the log is durable. It is long compared with a write, and short
/// compared with the time between crashes.
pub const MARK_AFTER: Duration = Duration::from_millis(100);

/// The interval at which a full disk is tried again: soon enough for people, and rarely enough not to matter.
pub const ROOM_RETRY: Duration = Duration::from_millis(250);

/// A disk whose directory is open and locked, without a writer so far.
#[derive(Debug)]
pub struct Idle(DiskWriter);

/// The running disk. Dropping it finishes the queued jobs, as far as there is room, and waits for them.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    writer: Option<JoinHandle<()>>,
    /// The lock is held until the writer has ended.
    _lock: Arc<dyn Lock>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bounded by the core: a leader takes no writes beyond `Limits::uncommitted`, and sends a follower at most
    /// `Limits::inflight` appends at a time. So `submit` never has to wait, and the loop that calls it keeps sending
    /// heartbeats.
    inbox: Mutex<Inbox>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Inbox {
    jobs: Vec<(Seq, Job)>,
    /// At most one answer is outstanding, because the next size is asked for only when the spare has come. A newer refusal
    /// may replace an older one.
    room: Option<Room>,
    stop: bool,
    /// The writer has failed: jobs are no longer taken from the inbox.
    closed: bool,
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.room.is_none() && !self.stop
    }
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, change: impl FnOnce(&mut Inbox)) {
        let mut inbox = self.inbox();
        if !inbox.closed {
            change(&mut inbox);
            self.arrived.notify_one();
        }
    }

    /// Returns all jobs that have arrived, or none if the deadline passed first.
    fn take(&self, deadline: Option<Instant>) -> Inbox {
        let mut inbox = self.inbox();
        while inbox.is_empty() {
            inbox = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => break,
                Some(left) => match self.arrived.wait_timeout(inbox, left) {
                    Ok((inbox, _)) => inbox,
                    Err(poisoned) => poisoned.into_inner().0,
                },
                None => self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner),
            };
        }
        std::mem::take(&mut inbox)
    }
}

impl Idle {
    pub(super) fn new(writer: Writer, lock: Box<dyn Lock>, counters: Arc<Counters>) -> Idle {
        Idle(DiskWriter::new(writer, lock, counters))
    }

    /// Starts the threads. `report` is called on the writer's thread.
    pub fn start(self, report: impl FnMut(Report) + Send + 'static) -> Result<Disk, StorageError> {
        Disk::start(self.0, report)
    }

    /// Runs without threads: all work happens in the caller's calls.
    pub fn into_writer(self) -> DiskWriter {
        self.0
    }
}

impl Disk {
    fn start(disk: DiskWriter, report: impl FnMut(Report) + Send + 'static) -> Result<Disk, StorageError> {
        let shared = Arc::new(Shared::default());
        let (want, wants) = channel();
        let (files, dir) = disk.place();
        let failed = StorageError::io("start a thread for", &dir);
        let (counters, lock) = (disk.counters(), disk.lock());
        let room = Arc::clone(&shared);
        let rooms = std::thread::Builder::new().name("eldest-room".to_string());
        let rooms = rooms.spawn({
            let dir = dir.clone();
            move || make_room(&wants, &room, |size| segment::allocate(&files, &dir, size))
        });
        let rooms = rooms.map_err(failed)?;
        let work = Work { disk, shared: Arc::clone(&shared), report: Box::new(report), want, asked: None };
        let thread = std::thread::Builder::new().name("eldest-disk".to_string());
        let thread = thread.spawn(move || {
            work.run();
            // The writer has ended, so the channel of the other thread is closed.
            let _ = rooms.join();
        });
        let writer = Some(thread.map_err(StorageError::io("start a thread for", &dir))?);
        Ok(Disk { shared, counters, writer, _lock: lock })
    }

    /// Never blocks. After a failure jobs are neither done nor reported.
    pub fn submit(&self, seq: Seq, job: Job) {
        self.shared.put(|inbox| inbox.jobs.push((seq, job)));
    }

    /// Jobs that are submitted together are synced together.
    pub fn submit_all(&self, jobs: impl Iterator<Item = (Seq, Job)>) {
        self.shared.put(|inbox| inbox.jobs.extend(jobs));
    }

    pub fn counted(&self) -> Counted {
        self.counters.now()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.shared.put(|inbox| inbox.stop = true);
        if let Some(writer) = self.writer.take() {
            // A panic in the thread has already been printed, and durability is no longer reported.
            let _ = writer.join();
        }
    }
}

/// The writer's thread.
struct Work {
    disk: DiskWriter,
    shared: Arc<Shared>,
    report: Box<dyn FnMut(Report) + Send>,
    want: Sender<u64>,
    /// The size of the segment that is being allocated.
    asked: Option<u64>,
}

impl Work {
    fn run(mut self) {
        while !self.disk.has_failed() {
            self.ask_for_room();
            let deadline = self.patience().map(|patience| Instant::now() + patience);
            let Inbox { jobs, room, stop, .. } = self.shared.take(deadline);
            // After a refusal the other thread keeps trying, so the request stays open.
            if let Some(Ok(_)) = room {
                self.asked = None;
            }
            self.disk.round(room, jobs, &mut self.report);
            if stop {
                // A clean end leaves a marker, so that later damage to the newest records is not taken for a torn write.
                return self.disk.step([], &mut self.report);
            }
        }
        // From here on jobs are dropped: the node ends, but until then nothing may pile up.
        *self.shared.inbox() = Inbox { closed: true, ..Inbox::default() };
    }

    /// The longest wait for jobs, if there is work to do without them. `None` waits for a job: a quiet node with a marked
    /// log does not wake up.
    fn patience(&self) -> Option<Duration> {
        let idle = self.disk.is_unmarked().then_some(MARK_AFTER);
        idle.or(self.disk.is_starved().then_some(ROOM_RETRY))
    }

    fn ask_for_room(&mut self) {
        let wanted = self.disk.wanted();
        if wanted.is_some() && self.asked.is_none() {
            self.asked = wanted;
            // The receiver lives as long as this sender.
            let _ = wanted.map(|size| self.want.send(size));
        }
    }
}

/// The other thread: allocates the requested segments, and retries while the disk is full.
fn make_room(
    wants: &Receiver<u64>,
    shared: &Shared,
    mut allocate: impl FnMut(u64) -> Result<Spare, StorageError>,
) {
    while let Ok(size) = wants.recv() {
        loop {
            let room = allocate(size);
            let full = room.as_ref().is_err_and(StorageError::is_full);
            shared.put(|inbox| inbox.room = Some(room));
            if !full {
                break;
            }
            // If the wait ends early, the writer has ended: it asks for no other size while this request is open.
            if wants.recv_timeout(ROOM_RETRY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
