//! Available mode: a log has the vector of the histories that it includes, and claims no others (P31).

use std::sync::{Arc, Mutex};

use super::files::Simulated;
use super::meta::Boundary;
use super::recover::{Opened, Options, open};
use super::snapshot::Snapshots;
use super::testing::{Dice, Hand, NODE, simulated, some_records, vote};
use super::writer::Job;
use crate::protocol::{Mode, SnapshotMeta};
use crate::types::{Epoch, Position, Vector};

fn available(disk: &Simulated) -> Options {
    Options { mode: Mode::Available, ..simulated(disk) }
}

/// Writes records of a third epoch, whose leader split off at 20, and of a fifth epoch. Returns their meta at 45.
fn write(opened: Opened, mut whole: SnapshotMeta) -> (Hand, Boundary, SnapshotMeta, Arc<Mutex<Snapshots>>) {
    let Opened { disk, mut lines, snapshots, .. } = opened;
    let mut hand = Hand::new(disk);
    hand.queue(Job::Vote(vote(9)));
    let mut at = SnapshotMeta::default();
    for (epoch, count) in [(3, 20), (5, 40)] {
        for record in some_records(&mut Dice::new(epoch), whole.at, epoch, count) {
            let lines = lines.append(std::slice::from_ref(&record));
            whole.absorb(&record);
            hand.queue(Job::Append { records: vec![record].into(), lines });
            hand.run();
            if whole.at.index == 45 {
                at = whole.clone();
            }
        }
    }
    let chain = lines.chain_at(45).unwrap();
    (hand, Boundary { meta: at, chain, origin: 0 }, whole, snapshots)
}

fn blank(vector: Option<Vector>) -> SnapshotMeta {
    SnapshotMeta { vector, ..SnapshotMeta::default() }
}

/// However often the log begins a segment, loses one, and is opened: it does not include records that were written on another
/// side in an elder epoch.
#[test]
fn a_log_claims_no_history_but_its_own() {
    let disk = Simulated::new(1);
    let (mut hand, boundary, whole, snapshots) =
        write(open(&available(&disk)).unwrap(), blank(Some(Vector::default())));
    snapshots.lock().unwrap().add(0, boundary, []).unwrap();
    drop((hand, snapshots));
    let opened = open(&available(&disk)).unwrap();
    assert_eq!((opened.recovered.base.at.index, opened.recovered.records.len()), (0, 60), "all can be sent");
    hand = Hand::new(opened.disk);
    hand.queue(Job::Trim { upto: 45 });
    hand.run();
    drop((hand, opened.snapshots));
    for _ in 0..2 {
        let opened = open(&available(&disk)).unwrap();
        let base = &opened.recovered.base;
        assert!(base.at.index > 20 && base.at.index <= 45, "{:?}", base.at);
        let elsewhere = Position::new(Epoch::new(3, NODE), 25);
        assert!(!base.vector.as_ref().unwrap().covers(elsewhere), "{:?}", base.vector);
        let mut end = base.clone();
        opened.recovered.records.iter().for_each(|record| end.absorb(record));
        assert_eq!(end, whole);
    }
}

/// An older program wrote logs without a vector. Such a log begins at the snapshot, which has one.
#[test]
fn a_snapshot_says_what_a_log_includes() {
    let disk = Simulated::new(2);
    let (mut hand, mut boundary, whole, snapshots) = write(open(&simulated(&disk)).unwrap(), blank(None));
    let mut vector = Vector::default();
    vector.note(Position::new(Epoch::new(3, NODE), 20));
    vector.note(boundary.meta.at);
    boundary.meta.vector = Some(vector);
    snapshots.lock().unwrap().add(0, boundary.clone(), []).unwrap();
    hand.queue(Job::Trim { upto: 45 });
    hand.run();
    drop((hand, snapshots));
    let opened = open(&available(&disk)).unwrap();
    assert_eq!(opened.recovered.base, boundary.meta);
    assert_eq!(opened.recovered.records.last().map(|record| record.position), Some(whole.at));
    assert_eq!(opened.recovered.records.len(), 15);
    assert_eq!(opened.lines.chain_at(45), Some(boundary.chain));
}

/// A log from safe mode has no branches, and safe mode does not use vectors.
#[test]
fn a_log_of_safe_mode_is_one_history() {
    let disk = Simulated::new(3);
    let (hand, boundary, _, snapshots) = write(open(&simulated(&disk)).unwrap(), blank(None));
    snapshots.lock().unwrap().add(0, boundary, []).unwrap();
    drop((hand, snapshots));
    assert_eq!(open(&simulated(&disk)).unwrap().recovered.base.vector, None);
    let opened = open(&available(&disk)).unwrap();
    assert_eq!(opened.recovered.base.vector, Some(Vector::linear(opened.recovered.base.at)));
}
