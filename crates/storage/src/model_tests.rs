//! Compares random histories with a plain list.

use std::path::Path;
use std::sync::{Arc, Mutex};

use super::files::Files;
use super::lines::Lines;
use super::meta::Boundary;
use super::read::{LogItem, read_dir};
use super::recover::{Opened, SNAPSHOTS_DIR};
use super::segment::list;
use super::snapshot::Snapshots;
use super::testing::{Dice, Hand, TempDir, incoming, rebase, reopen, some_records, vote};
use super::writer::Job;
use crate::types::{Index, Position, Record};

/// The expected content of the disk, in the simplest form.
#[derive(Debug)]
struct Plain {
    /// The boundary of the known state, below the log's first record.
    snapshot: Boundary,
    /// All records since the last installation, trimmed or not.
    records: Vec<Record>,
    installed: Boundary,
    epoch: u64,
}

impl Plain {
    fn last(&self) -> Position {
        self.records.last().map_or(self.installed.meta.at, |record| record.position)
    }

    /// The boundary after this record.
    fn boundary(&self, index: Index, chain: u32) -> Boundary {
        let mut boundary = self.installed.clone();
        for record in self.records.iter().take_while(|record| record.index() <= index) {
            boundary.meta.absorb(record);
        }
        Boundary { chain, ..boundary }
    }
}

#[derive(Debug)]
struct Pair {
    hand: Hand,
    lines: Lines,
    snapshots: Arc<Mutex<Snapshots>>,
    plain: Plain,
}

impl Pair {
    fn step(&mut self, rng: &mut Dice) {
        let (last, first) = (self.plain.last().index, self.plain.snapshot.index());
        match rng.below(14) {
            0 => {
                self.plain.epoch += 1;
                self.hand.queue(Job::Vote(vote(self.plain.epoch)));
            }
            1 if last > first => {
                let above = first + rng.below(last - first + 1);
                self.hand.queue(Job::Truncate { above });
                self.lines.truncate(above);
                self.plain.records.retain(|record| record.index() <= above);
                // The records that replace them are another history.
                self.plain.epoch += 1;
                self.hand.queue(Job::Vote(vote(self.plain.epoch)));
            }
            2 if last > first => self.take_snapshot(first + 1 + rng.below(last - first)),
            3 if first > 0 => self.hand.queue(Job::Trim { upto: first - rng.below(first.min(4)) }),
            4 if rng.one_in(3) => {
                let at = last + 1 + rng.below(30);
                self.install(rng, at);
            }
            5 | 6 => self.hand.run(),
            7 => {
                self.hand.run();
                self.hand.mark();
            }
            _ => {
                let records = some_records(rng, self.plain.last(), self.plain.epoch, rng.clone().below(6));
                let lines = self.lines.append(&records);
                self.plain.records.extend(records.iter().cloned());
                self.hand.queue(Job::Append { records: records.into(), lines });
            }
        }
    }

    fn take_snapshot(&mut self, at: Index) {
        let boundary = self.plain.boundary(at, self.lines.chain_at(at).unwrap());
        self.hand.run();
        self.snapshots.lock().unwrap().add(0, boundary.clone(), []).unwrap();
        self.plain.snapshot = boundary;
    }

    fn install(&mut self, rng: &mut Dice, at: Index) {
        let mut boundary = Boundary { chain: rng.roll() as u32, ..Boundary::default() };
        boundary.meta.at = Position::new(vote(self.plain.epoch).promise.epoch, at);
        let job = match rng.below(3) {
            0 => Job::Install(incoming(&self.snapshots.lock().unwrap(), &boundary).unwrap()),
            kind => Job::Rebase(rebase(&boundary, kind == 1)),
        };
        self.hand.queue(job);
        self.hand.run();
        self.lines.reset(&boundary);
        let epoch = self.plain.epoch;
        self.plain = Plain { snapshot: boundary.clone(), records: Vec::new(), installed: boundary, epoch };
    }

    /// Stops, starts, and compares everything.
    fn restart(mut self, dir: &Path, what: &str) -> Pair {
        self.hand.run();
        let Pair { hand, plain, lines: before, .. } = self;
        drop(hand);
        let Opened { disk, recovered, lines, snapshots, findings } = reopen(dir);
        assert_eq!(findings, [], "{what}");
        let base = recovered.base.index();
        let above = plain.records.iter().filter(|record| record.index() > base).cloned();
        assert_eq!(recovered.records, above.collect::<Vec<_>>(), "{what}");
        assert_eq!(recovered.base, plain.boundary(base, 0).meta, "{what}");
        assert!(base <= plain.snapshot.index(), "{what}");
        assert_eq!(recovered.vote, vote(plain.epoch), "{what}");
        for index in base..=plain.last().index {
            let same = before.chain_at(index).is_none_or(|chain| lines.chain_at(index) == Some(chain));
            assert!(same, "{what}: checksum of {index}");
        }
        compare_files(dir, &plain, what);
        let hand = Hand::new(disk);
        Pair { hand, lines, snapshots, plain }
    }
}

/// Every segment can be read, and together they equal the list.
fn compare_files(dir: &Path, plain: &Plain, what: &str) {
    let mut found = Vec::new();
    let end = read_dir(dir, |item| match item {
        LogItem::Record { record, .. } => found.push(record),
        LogItem::Bad(bad) => panic!("{what}: {bad}"),
        _ => {}
    });
    assert_eq!(end.unwrap().last, plain.last(), "{what}");
    let from = found.first().map_or(plain.last().index + 1, Record::index);
    let expected = plain.records.iter().filter(|record| record.index() >= from);
    assert_eq!(found, expected.cloned().collect::<Vec<_>>(), "{what}");
    let segments = list(&Files::default(), &dir.join("log")).unwrap();
    assert!(segments[0] <= plain.snapshot.index() + 1, "{what}: trimmed too far");
}

#[test]
fn a_disk_holds_what_a_list_holds() {
    for seed in 0..40 {
        let dir = TempDir::new();
        let mut rng = Dice::new(seed);
        let Opened { disk, lines, snapshots, .. } = reopen(dir.path());
        let mut hand = Hand::new(disk);
        hand.queue(Job::Vote(vote(3)));
        let (snapshot, installed) = (Boundary::default(), Boundary::default());
        let plain = Plain { snapshot, records: Vec::new(), installed, epoch: 3 };
        let mut pair = Pair { hand, lines, snapshots, plain };
        for round in 0..8 {
            for _ in 0..rng.below(25) {
                pair.step(&mut rng);
            }
            pair = pair.restart(dir.path(), &format!("seed {seed}, round {round}"));
        }
        drop(pair);
        assert!(Snapshots::open(&Files::default(), &dir.path().join(SNAPSHOTS_DIR)).is_ok());
    }
}

/// A record that needs a whole segment is not cut, and neither is a batch over several segments.
#[test]
fn big_records_have_room() {
    let dir = TempDir::new();
    let Opened { disk, mut lines, .. } = reopen(dir.path());
    let mut hand = Hand::new(disk);
    hand.queue(Job::Vote(vote(3)));
    let lengths = [10, 600, 5_000, 10, 640, 1_300_000, 1];
    let text = |(index, length): (usize, &usize)| {
        let text = format!("{{\"x\":\"{}\"}}", "x".repeat(*length));
        super::testing::record(3, index as u64 + 1, super::testing::payload(&text))
    };
    let records: Vec<Record> = lengths.iter().enumerate().map(text).collect();
    let bytes = lines.append(&records);
    hand.queue(Job::Append { records: records.clone().into(), lines: bytes });
    hand.run();
    drop(hand);
    let again = reopen(dir.path());
    assert_eq!((again.findings, again.recovered.records), (Vec::new(), records));
}
