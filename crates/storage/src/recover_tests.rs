//! Cut and damaged directories: the records are recovered, or the loss is reported.

use std::fs;
use std::path::Path;

use super::*;
use crate::read_dir;
use crate::segment::list;
use crate::testing::{
    Dice, Hand, Image, TempDir, image, incoming, is_doubtful, make_original, options, reopen, restore,
    some_records, vote,
};
use crate::types::{Index, Position};
use crate::writer::Job;

/// A directory with several segments, batches and markers, and its content.
struct Sample {
    image: Image,
    records: Vec<Record>,
    /// A marker or a head vouches for records up to this index.
    synced: Index,
    incarnation: Incarnation,
}

impl Sample {
    fn make(seed: u64, batches: u64) -> Sample {
        let dir = TempDir::new();
        let mut rng = Dice::new(seed);
        let Opened { disk, mut lines, recovered, .. } = reopen(dir.path());
        let mut hand = Hand::new(disk);
        hand.queue(Job::Vote(vote(3)));
        hand.run();
        let mut records = Vec::new();
        for _ in 0..batches {
            let after = Position::new(vote(3).promise.epoch, records.len() as u64);
            let count = 1 + rng.below(4);
            let batch = some_records(&mut rng, after, 3, count);
            let lines = lines.append(&batch);
            records.extend(batch.iter().cloned());
            hand.queue(Job::Append { records: batch.into(), lines });
            hand.run();
        }
        let synced = read_dir(dir.path(), |_| {}).unwrap().synced;
        assert!(synced < records.len() as u64, "the last batch has no marker");
        Sample { image: image(dir.path()), records, synced, incarnation: recovered.incarnation }
    }

    fn put(&self, dir: &Path) {
        restore(&self.image, dir);
        make_original(dir);
    }

    fn segments(&self) -> Vec<std::path::PathBuf> {
        self.image.keys().filter(|path| path.starts_with(LOG_DIR)).cloned().collect()
    }

    /// The log must be a prefix. If it lacks a record that was vouched for, this loss is reported with its place.
    fn check(&self, dir: &Path, what: &str) -> Opened {
        let opened = reopen(dir);
        let found = &opened.recovered.records;
        assert!(*found == self.records[..found.len()], "{what}");
        assert_eq!(opened.recovered.base, SnapshotMeta::default(), "{what}");
        if (found.len() as u64) < self.synced {
            assert!(is_doubtful(&opened), "{what}: lost without a word: {:?}", opened.findings);
        }
        if is_doubtful(&opened) {
            let recovered = &opened.recovered;
            assert!(!recovered.vote.admitted && recovered.vote.formed, "{what}");
            assert_ne!(recovered.incarnation, self.incarnation, "{what}");
        }
        opened
    }
}

/// A decision at one start does not come up again at the next.
fn settles(dir: &Path, opened: Opened, what: &str) {
    let before = opened.recovered.clone();
    drop(opened);
    let again = reopen(dir);
    assert_eq!(again.findings, [], "{what}");
    assert!(again.recovered == before, "{what}");
    assert_eq!(read_dir(dir, |_| {}).unwrap().bad, None, "{what}");
}

fn why(dir: &Path) -> String {
    let read = |name: &str| fs::read_to_string(dir.join("quarantine").join(name).join("why.txt"));
    read("0001").unwrap_or_default()
}

#[test]
fn an_undamaged_log_comes_back_whole() {
    for seed in 0..20 {
        let sample = Sample::make(seed, 12);
        let dir = TempDir::new();
        sample.put(dir.path());
        let opened = sample.check(dir.path(), "whole");
        assert_eq!((opened.recovered.records.len(), opened.findings.len()), (sample.records.len(), 0));
        assert_eq!(opened.recovered.vote, vote(3));
    }
}

/// The power fails in the middle of the last write: everything after some byte is blank.
#[test]
fn a_cut_at_any_byte_of_the_end_is_torn() {
    let sample = Sample::make(1, 12);
    let last = sample.segments().pop().unwrap();
    let bytes = &sample.image[&last];
    let written = crate::text::written(bytes);
    let head = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let dir = TempDir::new();
    for cut in head + 1..=written {
        sample.put(dir.path());
        let mut torn = bytes.clone();
        torn[cut..].fill(b'\n');
        fs::write(dir.path().join(&last), torn).unwrap();
        let what = format!("cut at {cut}");
        let opened = sample.check(dir.path(), &what);
        assert!(!is_doubtful(&opened), "{what}: {:?}", opened.findings);
        assert_eq!(opened.recovered.vote, vote(3), "{what}");
        settles(dir.path(), opened, &what);
    }
}

/// The file system loses the end of a file.
#[test]
fn a_shortened_file_gives_a_prefix() {
    let sample = Sample::make(2, 10);
    let dir = TempDir::new();
    for path in sample.segments() {
        for length in 0..sample.image[&path].len() {
            sample.put(dir.path());
            fs::write(dir.path().join(&path), &sample.image[&path][..length]).unwrap();
            let what = format!("{} shortened to {length}", path.display());
            let opened = sample.check(dir.path(), &what);
            assert!(!is_doubtful(&opened) || why(dir.path()).contains(".log, byte"), "{what}");
        }
    }
}

#[test]
fn a_bit_flipped_anywhere_in_the_log_is_found() {
    let sample = Sample::make(3, 10);
    let dir = TempDir::new();
    for path in sample.segments() {
        for at in 0..sample.image[&path].len() {
            sample.put(dir.path());
            let mut bytes = sample.image[&path].clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(dir.path().join(&path), bytes).unwrap();
            let what = format!("{} byte {at}", path.display());
            let opened = sample.check(dir.path(), &what);
            assert!(!opened.findings.is_empty() || opened.recovered.records == sample.records, "{what}");
            if is_doubtful(&opened) {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                assert!(why(dir.path()).contains(&name), "{what}: {}", why(dir.path()));
            }
            settles(dir.path(), opened, &what);
        }
    }
}

#[test]
fn a_lost_segment_is_noticed() {
    let sample = Sample::make(4, 16);
    let segments = sample.segments();
    assert!(segments.len() > 2);
    let dir = TempDir::new();
    // The loss of the newest segment leaves no trace: it cannot be distinguished from a segment that never existed.
    for path in &segments[..segments.len() - 1] {
        sample.put(dir.path());
        fs::remove_file(dir.path().join(path)).unwrap();
        let opened = sample.check(dir.path(), &path.display().to_string());
        assert!(is_doubtful(&opened), "{path:?}");
        settles(dir.path(), opened, "a lost segment");
    }
    sample.put(dir.path());
    fs::remove_dir_all(dir.path().join(LOG_DIR)).unwrap();
    let opened = sample.check(dir.path(), "no log");
    assert!(is_doubtful(&opened));
    settles(dir.path(), opened, "a lost segment");
}

#[test]
fn a_damaged_promise_file() {
    let sample = Sample::make(5, 4);
    let dir = TempDir::new();
    let promise = Path::new(VOTE_FILE);
    for at in 0..sample.image[promise].len() {
        if at % 4096 > 600 {
            continue;
        }
        sample.put(dir.path());
        let mut bytes = sample.image[promise].clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(dir.path().join(promise), bytes).unwrap();
        let opened = sample.check(dir.path(), &format!("vote byte {at}"));
        assert_eq!(opened.recovered.vote, vote(3), "{at}");
        assert!(!is_doubtful(&opened));
    }
    for bytes in [None, Some(&b""[..]), Some(b"eldest-vote 1 what\n")] {
        sample.put(dir.path());
        match bytes {
            Some(bytes) => fs::write(dir.path().join(promise), bytes).unwrap(),
            None => fs::remove_file(dir.path().join(promise)).unwrap(),
        }
        let opened = sample.check(dir.path(), "no promise");
        assert!(is_doubtful(&opened) && opened.recovered.records == sample.records);
        settles(dir.path(), opened, "");
    }
}

#[test]
fn a_promise_below_the_log_is_stale() {
    let sample = Sample::make(6, 4);
    let dir = TempDir::new();
    sample.put(dir.path());
    let old = Stored { vote: vote(2), incarnation: sample.incarnation };
    VoteFile::create(&Files::default(), dir.path(), old).unwrap();
    let opened = sample.check(dir.path(), "stale");
    let stale = Doubt::StalePromise { promise: vote(2).promise.epoch, log: vote(3).promise.epoch };
    assert!(opened.findings.contains(&Finding::Doubtful(stale)), "{:?}", opened.findings);
}

#[test]
fn a_copied_directory_is_a_new_disk() {
    let sample = Sample::make(7, 4);
    let dir = TempDir::new();
    restore(&sample.image, dir.path());
    assert!(matches!(open(&options(dir.path())), Err(StorageError::Copied { .. })));
    let adopted = open(&Options { adopt_copy: true, ..options(dir.path()) }).unwrap();
    assert!(adopted.findings.contains(&Finding::Doubtful(Doubt::Copied)));
    assert_eq!(adopted.recovered.records, sample.records);
    assert!(!adopted.recovered.vote.admitted && adopted.recovered.incarnation != sample.incarnation);
    settles(dir.path(), adopted, "adopted");
}

/// A snapshot replaces a damaged part below it.
#[test]
fn a_snapshot_replaces_a_damaged_part() {
    let sample = Sample::make(8, 14);
    let at = sample.records.len() as u64 / 2;
    let dir = TempDir::new();
    let mut replaced = 0;
    for path in sample.segments() {
        for byte in (0..sample.image[&path].len()).step_by(3) {
            sample.put(dir.path());
            add_snapshot(dir.path(), &sample, at);
            let mut bytes = sample.image[&path].clone();
            bytes[byte] ^= 2;
            fs::write(dir.path().join(&path), bytes).unwrap();
            let what = format!("{} byte {byte}", path.display());
            let opened = reopen(dir.path());
            let (base, records) = (opened.recovered.base.index(), &opened.recovered.records);
            assert!(base <= at, "{what}");
            let expected = &sample.records[base as usize..];
            assert_eq!(*records, expected[..records.len()], "{what}");
            assert!(base + records.len() as u64 >= at, "{what}");
            let whole = records.len() == expected.len();
            assert!(whole || is_doubtful(&opened) || base + records.len() as u64 >= sample.synced, "{what}");
            replaced += usize::from(
                opened.findings.iter().any(|found| matches!(found, Finding::Replaced(_))) && whole,
            );
            settles(dir.path(), opened, &what);
        }
    }
    assert!(replaced > 50, "{replaced}");
}

/// Adds a snapshot as this node would: with the boundary of the log at that record.
fn add_snapshot(dir: &Path, sample: &Sample, at: Index) {
    let mut boundary = Boundary::default();
    let mut line = Vec::new();
    for record in &sample.records[..at as usize] {
        boundary.chain = crate::line::encode(record, boundary.chain, &mut line);
        boundary.meta.absorb(record);
    }
    let (mut snapshots, _) = Snapshots::open(&Files::default(), &dir.join(SNAPSHOTS_DIR)).unwrap();
    snapshots.add(0, boundary, []).unwrap();
}

#[test]
fn a_bad_snapshot_is_replaced_by_the_log_or_missed() {
    let sample = Sample::make(9, 14);
    let dir = TempDir::new();
    for trimmed in [false, true] {
        sample.put(dir.path());
        add_snapshot(dir.path(), &sample, 12);
        if trimmed {
            let mut hand = Hand::new(reopen(dir.path()).disk);
            hand.queue(Job::Trim { upto: 12 });
            hand.run();
            assert!(list(&Files::default(), &dir.path().join(LOG_DIR)).unwrap()[0] > 1);
        }
        let snapshots = image(&dir.path().join(SNAPSHOTS_DIR));
        let path = snapshots.keys().next().unwrap();
        fs::write(dir.path().join(SNAPSHOTS_DIR).join(path), "nonsense\n").unwrap();
        let opened = reopen(dir.path());
        assert_eq!(is_doubtful(&opened), trimmed, "{:?}", opened.findings);
        assert!(opened.findings.iter().any(|found| matches!(found, Finding::BadSnapshot(_))));
        assert!(why(dir.path()).contains(".snap"));
        assert_eq!(opened.recovered.records.is_empty(), trimmed);
        settles(dir.path(), opened, "");
    }
}

/// The crash comes after the snapshot was installed and before the log followed.
#[test]
fn a_snapshot_ahead_of_the_log_takes_its_place() {
    let sample = Sample::make(10, 6);
    let dir = TempDir::new();
    for (index, epoch) in [(1000, 3), (5, 2)] {
        sample.put(dir.path());
        let (mut snapshots, _) = Snapshots::open(&Files::default(), &dir.path().join(SNAPSHOTS_DIR)).unwrap();
        let mut boundary = Boundary { chain: 77, ..Boundary::default() };
        boundary.meta.at = Position::new(vote(epoch).promise.epoch, index);
        snapshots.install(incoming(&snapshots, &boundary).unwrap()).unwrap();
        drop(snapshots);
        let opened = reopen(dir.path());
        assert!(!is_doubtful(&opened), "{:?}", opened.findings);
        assert_eq!((&opened.recovered.base, opened.recovered.records.len()), (&boundary.meta, 0));
        assert_eq!(opened.lines.chain_at(index), Some(77));
        assert_eq!(opened.recovered.incarnation, sample.incarnation);
        settles(dir.path(), opened, "ahead");
    }
}

#[test]
fn old_records_are_kept_within_a_bound() {
    let dir = TempDir::new();
    let mut opened = open(&Options { segment_bytes: 1 << 20, ..options(dir.path()) }).unwrap();
    let mut hand = Hand::new(opened.disk);
    let count = crate::gather::RECORDS_KEPT_MAX + 500;
    let records = some_records(&mut Dice::new(1), Position::ZERO, 3, count);
    hand.queue(Job::Vote(vote(3)));
    let lines = opened.lines.append(&records);
    hand.queue(Job::Append { records: records.clone().into(), lines });
    hand.run();
    drop(hand);
    let sample =
        Sample { image: image(dir.path()), records, synced: 0, incarnation: opened.recovered.incarnation };
    add_snapshot(dir.path(), &sample, count - 100);
    let opened = reopen(dir.path());
    assert_eq!((opened.recovered.base.index(), opened.recovered.records.len()), (400, count as usize - 400));
    assert_eq!(opened.recovered.records, sample.records[400..]);
    assert_eq!(opened.lines.last(), count);
    assert!(opened.lines.slice(399, 2).is_none() && opened.lines.slice(400, 2).is_some());
}
