//! The readable output for a log, good or bad.

use super::*;
use crate::recover::Opened;
use crate::testing::{Dice, Hand, TempDir, reopen, some_records, vote};
use crate::writer::Job;

fn make(dir: &Path) -> Vec<Record> {
    let Opened { disk, mut lines, .. } = reopen(dir);
    let mut hand = Hand::new(disk);
    hand.queue(Job::Vote(vote(3)));
    let records = some_records(&mut Dice::new(1), Position::ZERO, 3, 30);
    for batch in records.chunks(5) {
        let lines = lines.append(batch);
        hand.queue(Job::Append { records: batch.into(), lines });
        hand.run();
    }
    records
}

#[derive(Debug, Default)]
struct Shown {
    records: Vec<Record>,
    starts: Vec<Index>,
    segments: usize,
    markers: usize,
    bad: Vec<Bad>,
}

fn shown(dir: &Path) -> (Shown, LogEnd) {
    let mut shown = Shown::default();
    let end = read_dir(dir, |item| match item {
        LogItem::Start { after, .. } => shown.starts.push(after.index),
        LogItem::Segment { .. } => shown.segments += 1,
        LogItem::Record { record, line } => {
            assert!(line.starts_with(record.index().to_string().as_bytes()));
            shown.records.push(record);
        }
        LogItem::Marker { .. } => shown.markers += 1,
        LogItem::Bad(bad) => shown.bad.push(bad.clone()),
    });
    (shown, end.unwrap())
}

#[test]
fn a_log_in_use_is_shown_as_it_is() {
    let dir = TempDir::new();
    let records = make(dir.path());
    let _in_use = reopen(dir.path());
    for dir in [dir.path().to_path_buf(), dir.path().join("log")] {
        let (shown, end) = shown(&dir);
        assert_eq!((shown.records, shown.starts, shown.bad), (records.clone(), vec![0], vec![]));
        assert!(shown.segments > 2 && shown.markers > 0);
        assert_eq!((end.last.index, end.bad), (30, None));
        assert!(end.synced >= 20);
    }
}

/// The place of the bad line is shown, and so are the records after the next head.
#[test]
fn a_bad_line_is_shown_with_its_place() {
    let dir = TempDir::new();
    let records = make(dir.path());
    let second = segment::list(&Files::default(), &dir.path().join("log")).unwrap()[1];
    let path = segment::path(&dir.path().join("log"), second);
    let mut bytes = Files::default().read(&path).unwrap();
    let offset = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[offset + 3] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (shown, end) = shown(dir.path());
    let [bad, _gap @ ..] = &shown.bad[..] else { panic!("nothing is bad") };
    assert_eq!((&bad.path, bad.offset, bad.index), (&path, offset as u64, second));
    assert!(bad.to_string().contains("checksum") || bad.to_string().contains("readable"), "{bad}");
    assert_eq!(shown.starts.len(), 2);
    let after = shown.starts[1];
    let expected = records.iter().filter(|record| record.index() < second || record.index() > after);
    assert_eq!(shown.records, expected.cloned().collect::<Vec<_>>());
    assert_eq!(end.last.index, 30);
}

#[test]
fn nothing_is_nothing() {
    let dir = TempDir::new();
    let (shown, end) = shown(dir.path());
    assert_eq!((shown.records.len(), end), (0, LogEnd::default()));
}
