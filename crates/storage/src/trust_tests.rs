//! An operator trusts a doubtful disk: the effect, and the cases without effect.

use std::fs;
use std::path::Path;

use super::*;
use crate::testing::{
    Hand, NODE, TempDir, image, is_doubtful, make_original, options, payload, record, reopen, restore, vote,
};
use crate::types::{Entry, Founding};
use crate::writer::Job;

/// The incarnation of this disk in the log of `made`.
const SEAT: Incarnation = Incarnation(77);

/// A founder's directory with two records.
fn made(dir: &Path) {
    let mut opened = reopen(dir);
    let mut hand = Hand::new(opened.disk);
    let founding = Founding { founders: [(NODE, SEAT)].into(), ..Founding::default() };
    let lead = record(2, 1, Entry::Lead { founding: Some(founding.into()) });
    let records = vec![lead, record(2, 2, payload("{}"))];
    let lines = opened.lines.append(&records);
    hand.queue(Job::Vote(vote(2)));
    hand.queue(Job::Append { records: records.into(), lines });
    hand.run();
}

fn trusting(dir: &Path) -> Options {
    Options { trust_disk: true, ..options(dir) }
}

fn counts(opened: &Opened) -> (Incarnation, bool, bool, u64, usize) {
    let Recovered { incarnation, vote, records, .. } = &opened.recovered;
    (*incarnation, vote.formed, vote.admitted, vote.promise.epoch.counter, records.len())
}

/// The disk takes up the incarnation in its own log, at once or after it has waited in vain.
#[test]
fn a_disk_that_an_operator_trusts_counts_again() {
    for waited in [false, true] {
        let dir = TempDir::new();
        made(dir.path());
        fs::remove_file(dir.path().join(VOTE_FILE)).unwrap();
        if waited {
            let doubted = reopen(dir.path());
            assert!(is_doubtful(&doubted) && !doubted.recovered.vote.admitted);
        }
        let trusted = open(&trusting(dir.path())).unwrap();
        assert!(trusted.findings.contains(&Finding::Trusted), "{:?}", trusted.findings);
        assert_eq!(counts(&trusted), (SEAT, true, true, 2, 2));
        drop(trusted);
        let after = reopen(dir.path());
        assert_eq!((counts(&after), after.findings), ((SEAT, true, true, 2, 2), Vec::new()));
    }
}

#[test]
fn a_healthy_disk_needs_no_trust() {
    let dir = TempDir::new();
    made(dir.path());
    let before = reopen(dir.path()).recovered.incarnation;
    let opened = open(&trusting(dir.path())).unwrap();
    assert_eq!((opened.recovered.incarnation, opened.findings), (before, Vec::new()));
}

#[test]
fn where_nothing_is_left_there_is_nothing_to_trust() {
    let dir = TempDir::new();
    made(dir.path());
    fs::remove_file(dir.path().join(VOTE_FILE)).unwrap();
    fs::remove_dir_all(dir.path().join(LOG_DIR)).unwrap();
    let bare = open(&trusting(dir.path())).unwrap();
    assert!(bare.findings.contains(&Finding::NothingToTrust) && !bare.recovered.vote.admitted);
}

/// A copy's original may still be in use, and in available mode no disk waits to be admitted.
#[test]
fn a_copy_and_a_side_are_not_trusted() {
    let (dir, copy) = (TempDir::new(), TempDir::new());
    made(dir.path());
    restore(&image(dir.path()), copy.path());
    let adopted = open(&Options { adopt_copy: true, ..trusting(copy.path()) }).unwrap();
    assert!(!adopted.recovered.vote.admitted && !adopted.findings.contains(&Finding::Trusted));
    drop(adopted);
    make_original(dir.path());
    fs::remove_file(dir.path().join(VOTE_FILE)).unwrap();
    let side = open(&Options { mode: Mode::Available, ..trusting(dir.path()) }).unwrap();
    assert!(!side.recovered.vote.admitted && !side.findings.contains(&Finding::Trusted));
}
