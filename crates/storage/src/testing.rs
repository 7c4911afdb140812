//! Helpers that the tests of this module share: records, and temporary directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use std::os::unix::fs::MetadataExt;

use super::disk::Idle;
pub use super::files::Dice;
use super::files::Simulated;
use super::finding::Finding;
use super::identity::IDENTITY_FILE;
use super::meta::Boundary;
use super::recover::{Opened, Options, open};
use super::snapshot::{Change, Incoming, Rebase, Rows, SnapshotError, Snapshots};
use super::step::DiskWriter;
use super::writer::{Job, Report};
use crate::protocol::{Seq, Term, Vote};
use crate::types::{
    Boot, ClaimId, ClusterId, Entry, Epoch, Format, Founding, Incarnation, Index, KeyedCall, Member, NodeId,
    Owner, Payload, Position, Record, Span, Stamp, Text, WallTime,
};

pub const CLUSTER: &str = "test";
pub const NODE: NodeId = NodeId(1);
/// Three to five records.
pub const SMALL_SEGMENT: u64 = 640;

/// A directory that is removed when the test ends. It is in memory if there is such a file system, because these tests sync a
/// lot.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let dir = root.join(format!("eldest-storage-{}-{number}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        TempDir(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn options(dir: &Path) -> Options {
    Options { segment_bytes: SMALL_SEGMENT, ..Options::new(dir, CLUSTER, NODE, Boot(7)) }
}

/// Options for a disk in memory.
pub fn simulated(disk: &Simulated) -> Options {
    Options { files: disk.files(), ..options(Path::new("/node")) }
}

pub fn reopen(dir: &Path) -> Opened {
    open(&options(dir)).unwrap()
}

pub fn is_doubtful(opened: &Opened) -> bool {
    opened.findings.iter().any(Finding::is_doubt)
}

/// Turns a copy of a directory into an original.
pub fn make_original(dir: &Path) {
    let path = dir.join(IDENTITY_FILE);
    let Ok(bytes) = fs::read(&path) else {
        return;
    };
    if let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(&bytes) {
        json["inode"] = fs::metadata(&path).unwrap().ino().into();
        // Without a checksum, as an older program wrote it: only such an identity can be changed by hand.
        json["format"] = 1.into();
        json.as_object_mut().unwrap().remove("checksum");
        fs::write(&path, json.to_string()).unwrap();
    }
}

pub fn payload(text: &str) -> Entry {
    Entry::Client(Payload { kind: 1, format: Format(1), call: None, text: Text::from(text) })
}

pub fn record(epoch: u64, index: Index, entry: Entry) -> Record {
    let stamp = Stamp { wall: WallTime(1_763_737_161_000_000 + index), cluster: Span(index * 1000) };
    Record { position: Position::new(Epoch::new(epoch, NODE), index), stamp, entry }
}

/// One entry of any kind that a log may have.
pub fn any_entry(rng: &mut Dice) -> Entry {
    let node = NodeId(1 + rng.below(5) as u32);
    let owner = if rng.one_in(2) { Owner::Operator } else { Owner::Merge };
    match rng.below(12) {
        0 => Entry::Lead { founding: None },
        1 => {
            let founder = |node| (NodeId(node), Incarnation(u64::from(node) * 77));
            let members = rng.one_in(2).then(|| (1..=3).map(|node| Member::founder(NodeId(node))).collect());
            let cluster = ClusterId(if members.is_some() { u128::from(rng.roll()) } else { 0 });
            let founders = (1..=3).map(founder).collect();
            Entry::Lead { founding: Some(Box::new(Founding { founders, cluster, members })) }
        }
        2 => Entry::Rejoin { node, incarnation: Incarnation(rng.roll()) },
        5 => {
            let members =
                (1..=node.0).map(|id| Member { votes: rng.one_in(2), ..Member::founder(NodeId(id)) });
            Entry::Members { members: members.collect() }
        }
        3 => Entry::ServiceDown {
            owner,
            ttl: Span(rng.below(1 << 40)),
            reason: Text::from("a \"new\"\nline = 1 deadbeef"),
        },
        4 => Entry::ServiceUp { owner },
        _ => any_payload(rng),
    }
}

fn any_payload(rng: &mut Dice) -> Entry {
    let format = Format(if rng.one_in(5) { 2 + rng.below(9) as u16 } else { 1 });
    let key = u128::from(rng.roll()) << 64 | u128::from(rng.roll());
    let call = rng.one_in(3).then(|| KeyedCall { key, body: rng.roll(), who: rng.roll() as u32 });
    let kind = if rng.one_in(4) { 100 } else { 1 + rng.below(5) as u16 };
    let text = format!("{{\"n\":{},\"s\":\"{}\"}}", rng.roll(), "äß|= 1 x".repeat(rng.below(6) as usize));
    Entry::Client(Payload { kind, format, call, text: Text::from(text) })
}

/// Some records after this position, all of one epoch.
pub fn some_records(rng: &mut Dice, after: Position, epoch: u64, count: u64) -> Vec<Record> {
    (1..=count).map(|n| record(epoch, after.index + n, any_entry(rng))).collect()
}

pub fn vote(epoch: u64) -> Vote {
    let promise = Term { epoch: Epoch::new(epoch, NODE), claim: ClaimId(epoch * 11) };
    Vote { promise, formed: true, admitted: true, lease: Span::millis(epoch) }
}

/// A state from a peer, as the receiver has it after the check.
pub fn incoming(receiver: &Snapshots, boundary: &Boundary) -> Result<Incoming, SnapshotError> {
    let (mut peer, _) = Snapshots::open(&Simulated::new(0).files(), Path::new("/peer"))?;
    peer.add(0, boundary.clone(), Two(boundary.index()).changes(true))?;
    let mut export = peer.export()?.expect("it has one");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut export, &mut bytes).unwrap();
    let mut importer = receiver.importer()?;
    importer.write(&bytes)?;
    importer.finish()
}

/// A state of two rows; the second one is new at every rebase.
#[derive(Debug)]
struct Two(Index);

impl Rows for Two {
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_> {
        let row = |(key, value): (String, String)| Change {
            table: "doc",
            key: key.into(),
            value: Some(value.into()),
        };
        Box::new(rows_at(self.0).into_iter().skip(usize::from(!whole)).map(row))
    }
}

pub fn rows_at(index: Index) -> Vec<(String, String)> {
    vec![("always".to_string(), "1".to_string()), ("newest".to_string(), index.to_string())]
}

pub fn rows(snapshots: &Snapshots) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let load = snapshots.load::<SnapshotError>(|_, key, value| {
        rows.push((key.to_string(), value.to_string()));
        Ok(())
    });
    load.unwrap();
    rows
}

pub fn rebase(boundary: &Boundary, whole: bool) -> Rebase {
    Rebase { boundary: boundary.clone(), rows: Box::new(Two(boundary.index())), whole }
}

/// Every file of a directory tree, by its path below the root.
pub type Image = BTreeMap<PathBuf, Vec<u8>>;

pub fn image(root: &Path) -> Image {
    let mut image = Image::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                image.insert(path.strip_prefix(root).unwrap().to_path_buf(), bytes);
            }
        }
    }
    image
}

/// Creates a directory with exactly this content.
pub fn restore(image: &Image, root: &Path) {
    if root.exists() {
        fs::remove_dir_all(root).unwrap();
    }
    fs::create_dir_all(root).unwrap();
    for (path, bytes) in image {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A writer without its threads: the test allocates segments, and counts.
#[derive(Debug)]
pub struct Hand {
    pub writer: DiskWriter,
    jobs: Vec<(Seq, Job)>,
    pub seq: u64,
    pub durable: u64,
}

impl Hand {
    pub fn new(idle: Idle) -> Hand {
        Hand { writer: idle.into_writer(), jobs: Vec::new(), seq: 0, durable: 0 }
    }

    pub fn queue(&mut self, job: Job) {
        self.seq += 1;
        self.jobs.push((Seq(self.seq), job));
    }

    /// Does all queued jobs.
    pub fn run(&mut self) {
        self.step();
        while self.durable < self.seq {
            self.make_room();
        }
    }

    /// Writes the marker of the durable part.
    pub fn mark(&mut self) {
        let durable = &mut self.durable;
        self.writer.step([], &mut |report| note(durable, report));
    }

    fn step(&mut self) {
        let jobs = std::mem::take(&mut self.jobs);
        let durable = &mut self.durable;
        self.writer.step(jobs, &mut |report| note(durable, report));
    }

    fn make_room(&mut self) {
        let durable = &mut self.durable;
        self.writer.make_room(&mut |report| note(durable, report));
    }
}

fn note(durable: &mut u64, report: Report) {
    match report {
        Report::Durable(Seq(seq)) => *durable = seq.max(*durable),
        Report::Promised(_) => {}
        report => panic!("{report:?}"),
    }
}
