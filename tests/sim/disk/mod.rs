//! A machine's disk: the product's own storage on files in memory. The files forget what was not synced, tear
//! what was under way, refuse, and run out of room.
//!
//! ```text
//!  machine    Simulated files, which outlive every process           here
//!  process    the writer, the snapshots, what waits for them         mounted.rs
//!  onlooker   what the writer has said, against what is found again  durable.rs
//! ```

mod durable;
mod mounted;

use std::io;
use std::path::Path;

use eldest::protocol::{Mode, Settings};
use eldest::replica::Start;
use eldest::types::{Boot, Index, NodeId, Position, Span};
use eldest_storage::files::Simulated;
use eldest_storage::files::simulated::{Fault, Loss};
use eldest_storage::node::starting;
use eldest_storage::{LogItem, Options, read_in, start_over};

use crate::checks::Violation;
use crate::rng::Rng;
use crate::state::State;

pub use durable::{Change, Durable, Snapshot};
pub use mounted::Mounted;

/// Records from one snapshot to the next.
pub const BOUNDARY: Index = 10;

const DIR: &str = "/node";
const SNAPSHOTS: &str = "/node/snapshots";
const CLUSTER: &str = "sim";

/// A death comes within this many operations on files, at most.
const DYING_OPERATIONS: u64 = 24;

#[derive(Debug)]
pub struct Disk {
    files: Simulated,
    rng: Rng,
    /// The length of its log's segments.
    pub segment_bytes: u64,
    /// An onlooker's knowledge of it.
    pub durable: Durable,
    /// The process's end of the disk, while there is a process.
    pub mounted: Option<Mounted>,
    /// The room for files is limited.
    is_short: bool,
    /// Snapshots find no room now and then, although there is some for records.
    pub failing: Option<Rng>,
    /// For the next start an operator says that the disk counts, no matter what it has forgotten.
    trusted: bool,
}

/// An earlier content of a disk.
#[derive(Debug)]
pub struct Copy {
    files: Simulated,
    durable: Durable,
}

/// A process does not start, because its disk refuses.
#[derive(Debug)]
pub struct Refused(pub String);

impl Disk {
    pub fn new(seed: u64) -> Disk {
        Disk::of(seed, State::default())
    }

    /// A blank disk of a node that begins with this state.
    pub fn of(seed: u64, state: State) -> Disk {
        let mut rng = Rng::new(seed);
        Disk {
            files: Simulated::new(rng.next()),
            rng,
            segment_bytes: 4096,
            durable: Durable::of(state),
            mounted: None,
            is_short: false,
            failing: None,
            trusted: false,
        }
    }

    fn options(&self, node: NodeId, boot: Boot, mode: Mode) -> Options {
        let options = Options::new(Path::new(DIR), CLUSTER, node, boot);
        let (segment_bytes, trust_disk) = (self.segment_bytes, self.trusted);
        Options { files: self.files.files(), segment_bytes, mode, trust_disk, ..options }
    }

    /// Opens the disk, as a process does first. What it finds must be what was written.
    pub fn open(&mut self, boot: Boot, settings: Settings) -> Result<Result<Start, Refused>, Violation> {
        // The head of a segment names every member.
        self.segment_bytes = self.segment_bytes.max(512 * settings.members.len() as u64);
        let opened = match eldest_storage::open(&self.options(settings.me, boot, settings.mode)) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(Refused(error.to_string()))),
        };
        let doubtful = opened.findings.iter().any(|finding| finding.is_doubt());
        let (me, recovered) = (settings.me, opened.recovered.clone());
        let start = match starting(settings, BOUNDARY, opened.recovered, &opened.snapshots) {
            Ok(start) => start,
            Err(error) => return Ok(Err(Refused(error.to_string()))),
        };
        let findings = || format!("{me}: {:?}", opened.findings);
        self.durable.found(&recovered, &start, doubtful, findings)?;
        self.trusted = false;
        self.mounted = Some(Mounted::new(opened.disk, opened.lines, opened.snapshots));
        Ok(Ok(start))
    }

    /// The process is gone, or its machine with it: what was under way ends in the middle of some operation.
    pub fn die(&mut self, power: bool) {
        if let Some(mounted) = self.mounted.as_mut().filter(|mounted| mounted.is_busy()) {
            self.files.schedule(self.rng.below(DYING_OPERATIONS), Fault::Power);
            mounted.go_on_a_little(&mut self.rng);
        }
        if power {
            self.files.cut_power(Loss::Some)
        } else {
            self.files.kill()
        }
        // The process reaches no file any more.
        self.mounted = None;
    }

    /// Whether the power went in the middle of an operation.
    pub fn lost_power(&self) -> bool {
        self.files.is_dead()
    }

    /// Whether a fault has come since the process began.
    pub fn was_struck(&self) -> bool {
        self.files.struck().is_some()
    }

    /// One of the next operations on files is refused, or is the last one before the power goes.
    pub fn turns_bad(&mut self, rng: &mut Rng) {
        let fault = if rng.chance(500) { Fault::Power } else { Fault::Refuse(io::ErrorKind::Other) };
        self.files.schedule(rng.skewed(0, 100), fault);
    }

    /// The medium works again.
    pub fn mend(&mut self) {
        self.files.clear_faults();
        self.failing = None;
    }

    /// From now on files can grow by this many bytes in all.
    pub fn run_short(&mut self, bytes: u64) {
        self.is_short = true;
        self.files.limit(Path::new(DIR), bytes);
    }

    pub fn give_room(&mut self) {
        self.is_short = false;
        self.files.lift_limit();
    }

    /// The disk has room, and its process does not still wait for any.
    pub fn has_room(&self) -> bool {
        !self.is_short && !self.mounted.as_ref().is_some_and(|mounted| mounted.heard.full)
    }

    /// Writes the snapshot that is under way. It may find less room than records do.
    pub fn write_snapshot(&mut self) -> Option<mounted::Taken> {
        let fails = self.failing.as_mut().is_some_and(|rng| rng.chance(400)) && !self.is_short;
        if fails {
            self.files.limit(Path::new(SNAPSHOTS), self.rng.below(400));
        }
        let taken = self.mounted.as_mut()?.write_snapshot();
        if fails {
            self.files.lift_limit();
        }
        taken
    }

    /// A blank disk is put in.
    pub fn wipe(&mut self, seed: u64) {
        let blank = self.durable.snapshot.state.blank();
        *self =
            Disk { segment_bytes: self.segment_bytes, failing: self.failing.take(), ..Disk::of(seed, blank) };
    }

    pub fn is_trusted(&mut self) {
        self.trusted = true;
        self.durable.is_trusted();
    }

    /// Copies the disk while no process has it.
    pub fn copy(&mut self) -> Copy {
        Copy { files: self.files.fork(self.rng.next()), durable: self.durable.clone() }
    }

    /// Puts a copy back. All that came since is gone, and nothing on the disk says so.
    pub fn put_back(&mut self, copy: &Copy) {
        self.files = copy.files.fork(self.rng.next());
        self.durable = copy.durable.clone();
    }

    /// Sets the state aside, as the program does at the end of a process that has diverged.
    pub fn start_over(&mut self, node: NodeId) {
        // Without room the program ends, and the node is found to have diverged again, until an operator has
        // made room.
        self.give_room();
        start_over(&self.options(node, Boot::default(), Mode::Safe), "odd")
            .expect("a disk that does not refuse");
        self.files.kill();
        self.durable.starts_over();
    }

    /// A bit flips in a record that the log says is synced. The node finds it when it starts (P27).
    pub fn damage(&mut self, rng: &mut Rng) -> bool {
        let above = self.durable.covered();
        let mut lines: Vec<(Index, Vec<u8>)> = Vec::new();
        let log = read_in(&self.files.files(), Path::new(DIR), |item| {
            if let LogItem::Record { record, line } = item {
                lines.push((record.index(), line.to_vec()));
            }
        });
        // The last batch has no marker yet: damage there cannot be told from a torn write.
        let synced = log.map_or(0, |end| end.synced);
        lines.retain(|(index, _)| *index > above && *index <= synced);
        if lines.is_empty() {
            return false;
        }
        let (index, line) = rng.pick(&lines);
        let (at, bit) = (rng.below(line.len() as u64) as usize, rng.below(8));
        let files = self.files.image().into_iter();
        let mut places = files.filter_map(|(path, bytes)| {
            let found = bytes.windows(line.len()).position(|window| window == &line[..])?;
            path.starts_with("/node/log").then_some((path, found))
        });
        let (path, found) = places.next().expect("a line that was read is in some file");
        self.files.damage(&path, |bytes| bytes[found + at] ^= 1 << bit);
        self.durable.is_damaged_at(*index);
        true
    }

    /// A bit flips in one slot of the promise file, or in each. Nothing happens where the slots differ,
    /// because a process that ended between the two has only one good slot.
    pub fn spoil_promise(&mut self, rng: &mut Rng, both: bool) -> bool {
        const SLOT: usize = 4096;
        const WRITTEN: usize = 512;
        let path = Path::new("/node/vote");
        let Some(bytes) = self.files.image().remove(path) else { return false };
        let line = |slot: usize| bytes[slot * SLOT..].iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let lines = [line(0), line(1)];
        let same = bytes[..WRITTEN] == bytes[SLOT..SLOT + WRITTEN];
        if !same || lines[0] == 0 {
            return false;
        }
        let first = rng.below(2) as usize;
        for slot in if both { vec![0, 1] } else { vec![first] } {
            let (at, bit) = (slot * SLOT + rng.below(lines[slot] as u64) as usize, rng.below(8));
            self.files.damage(path, |bytes| bytes[at] ^= 1 << bit);
        }
        if both {
            self.durable.loses_promise();
        }
        true
    }

    /// An earlier version has written the promise file: one line in each slot, which says nothing of leases.
    pub fn says_nothing_of_leases(&mut self) {
        self.files.damage(Path::new("/node/vote"), |bytes| {
            let ends = |at: &usize| bytes[*at..].starts_with(b"eldest-disk");
            let lines: Vec<usize> = (0..bytes.len()).filter(ends).collect();
            for at in lines {
                bytes[at..].iter_mut().take_while(|byte| **byte != b'\n').for_each(|byte| *byte = b'\n');
            }
        });
        self.durable.vote.lease = Span::ZERO;
    }

    /// Every record that is on the disk or under way to it.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        self.durable.positions()
    }
}
