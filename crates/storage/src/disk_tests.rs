//! The threads of the disk: order, full disks, failures, and the end.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::files::Simulated;
use crate::protocol::Vote;
use crate::recover::Opened;
use crate::testing::{Dice, TempDir, is_doubtful, rebase, reopen, simulated, some_records, vote};
use crate::types::Position;
use crate::vote::VoteFile;
use crate::{Boundary, Idle, open};

/// More time than any step takes on a busy machine. Only a hang waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

fn running(idle: Idle) -> (Disk, Receiver<Report>) {
    let (sender, reports) = channel();
    let disk = idle.start(move |report| drop(sender.send(report))).unwrap();
    (disk, reports)
}

/// Collects reports up to the first that fits.
fn wait(reports: &Receiver<Report>, fits: impl Fn(&Report) -> bool) -> Vec<Report> {
    let mut seen = Vec::new();
    loop {
        let report = reports.recv_timeout(PATIENCE).expect("a report comes");
        let done = fits(&report);
        seen.push(report);
        if done {
            return seen;
        }
    }
}

fn durable(seq: u64) -> impl Fn(&Report) -> bool {
    move |report| matches!(report, Report::Durable(Seq(upto)) if *upto >= seq)
}

fn append(opened_lines: &mut crate::Lines, rng: &mut Dice, count: u64) -> Job {
    let after = Position::new(vote(3).promise.epoch, opened_lines.last());
    let records = some_records(rng, after, 3, count);
    let lines = opened_lines.append(&records);
    Job::Append { records: records.into(), lines }
}

#[test]
fn what_is_reported_is_there() {
    let dir = TempDir::new();
    let mut rng = Dice::new(1);
    let Opened { disk, mut lines, .. } = reopen(dir.path());
    let (disk, reports) = running(disk);
    disk.submit(Seq(1), Job::Vote(vote(3)));
    for seq in 2..200 {
        disk.submit(Seq(seq), append(&mut lines, &mut rng, 1 + seq % 3));
    }
    let seen = wait(&reports, durable(199));
    let order: Vec<u64> =
        seen.iter().map(|report| if let Report::Durable(seq) = report { seq.0 } else { 0 }).collect();
    assert!(order.is_sorted() && order[0] > 0, "{order:?}");
    assert!(disk.counted().syncs > 0 && disk.counted().bytes > 0);
    drop(disk);
    let again = reopen(dir.path());
    assert_eq!((again.recovered.records.len() as u64, again.recovered.vote), (lines.last(), vote(3)));
    assert_eq!(again.lines.chain_at(lines.last()), lines.chain_at(lines.last()));
    assert_eq!(again.findings, []);
}

/// A quiet log gets a marker of its durable part.
#[test]
fn a_marker_comes_when_nothing_else_does() {
    let dir = TempDir::new();
    let Opened { disk, mut lines, .. } = reopen(dir.path());
    let (disk, reports) = running(disk);
    disk.submit(Seq(1), Job::Vote(vote(3)));
    disk.submit(Seq(2), append(&mut lines, &mut Dice::new(1), 2));
    wait(&reports, durable(2));
    let began = Instant::now();
    while crate::read_dir(dir.path(), |_| {}).unwrap().synced < 2 {
        assert!(began.elapsed() < PATIENCE, "no marker came");
        std::thread::yield_now();
    }
    drop(disk);
}

#[test]
fn a_full_disk_waits_and_goes_on() {
    let machine = Simulated::new(1);
    let mut rng = Dice::new(1);
    let Opened { disk, mut lines, .. } = open(&simulated(&machine)).unwrap();
    machine.limit(Path::new("/"), 0);
    let (disk, reports) = running(disk);
    wait(&reports, |report| matches!(report, Report::Full(true)));
    // There is still room in the current segment, and in the promise file.
    disk.submit(Seq(1), Job::Vote(vote(3)));
    disk.submit(Seq(2), append(&mut lines, &mut rng, 1));
    let seen = wait(&reports, durable(2));
    assert!(seen.iter().all(|report| matches!(report, Report::Durable(_))), "{seen:?}");
    for seq in 3..9 {
        disk.submit(Seq(seq), append(&mut lines, &mut rng, 20));
    }
    machine.lift_limit();
    let seen = wait(&reports, durable(8));
    let room =
        seen.iter().position(|report| matches!(report, Report::Full(false))).expect("it is told of room");
    assert!(
        seen[..room].iter().all(|report| !durable(3)(report)),
        "reported before there was room: {seen:?}"
    );
    drop(disk);
    let again = open(&simulated(&machine)).unwrap();
    assert_eq!(again.recovered.records.len() as u64, lines.last());
}

/// P24: a promise does not wait for room. The other parts of its vote wait for the records, and no older vote undoes the
/// promise.
#[test]
fn a_promise_goes_ahead_of_what_finds_no_room() {
    let machine = Simulated::new(1);
    let Opened { disk, mut lines, .. } = open(&simulated(&machine)).unwrap();
    machine.limit(Path::new("/"), 0);
    let (disk, reports) = running(disk);
    let plain = |counter| Vote { formed: false, admitted: false, ..vote(counter) };
    disk.submit(Seq(1), Job::Vote(plain(3)));
    disk.submit(Seq(2), append(&mut lines, &mut Dice::new(1), 50));
    wait(&reports, |report| matches!(report, Report::Full(true)));
    disk.submit(Seq(3), Job::Vote(vote(4)));
    disk.submit(Seq(4), append(&mut lines, &mut Dice::new(2), 1));
    disk.submit(Seq(5), Job::Vote(vote(8)));
    let seen = wait(&reports, |report| matches!(report, Report::Promised(Seq(5))));
    assert!(!seen.iter().any(durable(2)), "{seen:?}");
    let found = VoteFile::read(&machine.files(), Path::new("/node/vote")).unwrap().unwrap();
    assert_eq!(found.stored.vote, plain(8));
    machine.lift_limit();
    wait(&reports, durable(5));
    drop(disk);
    let again = open(&simulated(&machine)).unwrap();
    assert_eq!((again.recovered.vote, again.recovered.records.len()), (vote(8), 51));
}

/// Waiting for room does not delay the end.
#[test]
fn a_full_disk_can_be_closed() {
    let machine = Simulated::new(1);
    let Opened { disk, mut lines, .. } = open(&simulated(&machine)).unwrap();
    machine.limit(Path::new("/"), 0);
    let (disk, reports) = running(disk);
    disk.submit(Seq(1), Job::Vote(vote(3)));
    disk.submit(Seq(2), append(&mut lines, &mut Dice::new(1), 50));
    wait(&reports, |report| matches!(report, Report::Full(true)));
    drop(disk);
    machine.lift_limit();
    let again = open(&simulated(&machine)).unwrap();
    // These records were never reported, so only those with room are there.
    assert!(!is_doubtful(&again) && again.recovered.records.len() < 50);
}

/// The writer waits for no spare segment, so only the writer itself can retry.
#[test]
fn a_rebase_without_room_is_tried_again() {
    let machine = Simulated::new(1);
    let Opened { disk, mut lines, snapshots, .. } = open(&simulated(&machine)).unwrap();
    let (disk, reports) = running(disk);
    disk.submit(Seq(1), Job::Vote(vote(4)));
    disk.submit(Seq(2), append(&mut lines, &mut Dice::new(1), 3));
    wait(&reports, durable(2));
    machine.limit(Path::new("/node/snapshots"), 0);
    let mut boundary = Boundary { chain: 5, ..Boundary::default() };
    boundary.meta.at = Position::new(vote(4).promise.epoch, 10);
    disk.submit(Seq(3), Job::Rebase(rebase(&boundary, false)));
    let seen = wait(&reports, |report| matches!(report, Report::Full(true)));
    assert!(!seen.iter().any(durable(3)), "{seen:?}");
    machine.lift_limit();
    let seen = wait(&reports, durable(3));
    assert!(seen.iter().any(|report| matches!(report, Report::Full(false))), "{seen:?}");
    drop((disk, snapshots));
    let again = open(&simulated(&machine)).unwrap();
    assert_eq!((again.recovered.base, again.findings), (boundary.meta, Vec::new()));
}

#[test]
fn after_a_failure_nothing_is_written() {
    let dir = TempDir::new();
    let Opened { disk, mut lines, .. } = reopen(dir.path());
    let (disk, reports) = running(disk);
    disk.submit(Seq(1), Job::Vote(vote(3)));
    disk.submit(Seq(2), append(&mut lines, &mut Dice::new(1), 2));
    wait(&reports, durable(2));
    let log = dir.path().join("log");
    std::fs::rename(&log, dir.path().join("gone")).unwrap();
    disk.submit(Seq(3), append(&mut lines, &mut Dice::new(1), 50));
    wait(&reports, |report| matches!(report, Report::Failed(_)));
    disk.submit(Seq(4), Job::Vote(vote(9)));
    drop(disk);
    assert_eq!(reports.try_iter().count(), 0, "nothing comes after a failure");
    std::fs::rename(dir.path().join("gone"), &log).unwrap();
    let again = reopen(dir.path());
    assert_eq!(again.recovered.vote, vote(3));
    assert!(!is_doubtful(&again));
}

#[test]
fn one_process_at_a_time() {
    let dir = TempDir::new();
    let first = reopen(dir.path());
    let error = crate::open(&crate::testing::options(dir.path())).unwrap_err();
    assert!(matches!(error, StorageError::InUse { .. }), "{error}");
    drop(first);
    reopen(dir.path());
}
