//! The promise file: the effect of a torn or damaged slot.

use super::*;
use crate::testing::{TempDir, vote};

fn stored(epoch: u64) -> Stored {
    Stored { vote: vote(epoch), incarnation: Incarnation(9) }
}

fn read(dir: &TempDir) -> Result<Found, Lost> {
    VoteFile::read(&Files::default(), &dir.path().join(VOTE_FILE)).unwrap()
}

fn put(dir: &TempDir, bytes: &[u8]) {
    std::fs::write(dir.path().join(VOTE_FILE), bytes).unwrap();
}

fn bytes(dir: &TempDir) -> Vec<u8> {
    std::fs::read(dir.path().join(VOTE_FILE)).unwrap()
}

#[test]
fn the_last_vote_is_found() {
    let dir = TempDir::new();
    assert_eq!(read(&dir), Err(Lost::Missing));
    let mut file = VoteFile::create(&Files::default(), dir.path(), stored(1)).unwrap();
    assert_eq!(read(&dir).unwrap().stored, stored(1));
    for epoch in 2..9 {
        file.write(&vote(epoch)).unwrap();
        assert_eq!(read(&dir).unwrap().stored, stored(epoch));
        if epoch % 2 == 0 {
            file.finish().unwrap();
            assert_eq!(read(&dir).unwrap().stored, stored(epoch));
        }
    }
}

#[test]
fn a_write_cut_short_leaves_the_vote_before() {
    let dir = TempDir::new();
    let mut file = VoteFile::create(&Files::default(), dir.path(), stored(1)).unwrap();
    file.write(&vote(2)).unwrap();
    file.finish().unwrap();
    let before = bytes(&dir);
    file.write(&vote(3)).unwrap();
    let after = bytes(&dir);
    for cut in 0..LINE_BYTES {
        put(&dir, &[&after[..cut], &before[cut..]].concat());
        let found = read(&dir).unwrap();
        assert!([stored(2), stored(3)].contains(&found.stored), "{cut}");
        let mut file = VoteFile::resume(&Files::default(), dir.path(), &found).unwrap();
        let again = read(&dir).unwrap();
        assert_eq!((again.stored, again.bad_twin), (found.stored, None));
        file.write(&vote(4)).unwrap();
        assert_eq!(read(&dir).unwrap().stored, stored(4));
    }
}

#[test]
fn one_damaged_slot_costs_nothing() {
    let dir = TempDir::new();
    let mut file = VoteFile::create(&Files::default(), dir.path(), stored(1)).unwrap();
    file.write(&vote(2)).unwrap();
    file.finish().unwrap();
    let good = bytes(&dir);
    for at in (0..LINE_BYTES).chain(SLOT_BYTES..SLOT_BYTES + LINE_BYTES) {
        let mut flipped = good.clone();
        flipped[at] ^= 4;
        put(&dir, &flipped);
        assert_eq!(read(&dir).unwrap().stored, stored(2), "{at}");
    }
}

/// An earlier version wrote a single line, and reads no other.
#[test]
fn an_earlier_version_says_nothing_of_leases() {
    let dir = TempDir::new();
    drop(VoteFile::create(&Files::default(), dir.path(), stored(3)).unwrap());
    let mut bytes = bytes(&dir);
    for slot in [0, SLOT_BYTES] {
        let first = bytes[slot..].iter().position(|byte| *byte == b'\n').unwrap();
        bytes[slot + first..slot + LINE_BYTES].fill(b'\n');
    }
    put(&dir, &bytes);
    let found = read(&dir).unwrap();
    assert_eq!(found.stored.vote, Vote { lease: Span::ZERO, ..vote(3) });
    drop(VoteFile::resume(&Files::default(), dir.path(), &found).unwrap());
    assert_eq!(read(&dir).unwrap().bad_twin, None);
}

#[test]
fn without_a_good_slot_the_promise_is_lost() {
    let dir = TempDir::new();
    drop(VoteFile::create(&Files::default(), dir.path(), stored(1)).unwrap());
    let mut both = bytes(&dir);
    both[20] ^= 1;
    both[SLOT_BYTES + 30] ^= 1;
    for bytes in [&both[..], b"", &vec![b'\n'; 2 * SLOT_BYTES], b"eldest-vote"] {
        put(&dir, bytes);
        assert!(matches!(read(&dir), Err(Lost::NoGoodSlot(_))));
    }
}
