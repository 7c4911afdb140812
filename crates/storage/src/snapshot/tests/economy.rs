//! Counts the bytes that are written per changed byte.

use super::*;
use crate::snapshot::{CHAIN_FILES_MAX, Merge};

const KEYS: usize = 20_000;

/// The size of an entry, including its key.
const VALUE_BYTES: usize = 100;

fn value(n: u64) -> String {
    format!("\"{n:0>VALUE_BYTES$}\"")
}

fn place(key: usize) -> (String, String) {
    ("doc".to_string(), format!("key-{key:06}"))
}

fn ten_changes(rng: &mut Dice, mut pick: impl FnMut(&mut Dice) -> usize) -> Changes {
    let mut changes = Changes::new();
    while changes.len() < 10 {
        changes.insert(place(pick(rng)), Some(value(rng.roll())));
    }
    changes
}

/// The written bytes as a multiple of the changed bytes.
fn amplification(deltas: u64, mut pick: impl FnMut(&mut Dice) -> usize) -> f64 {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let store: Changes = (0..KEYS).map(|key| (place(key), Some(value(0)))).collect();
    add(&mut snapshots, 1, &store);
    let (mut rng, mut changed, mut written) = (Dice::new(11), 0, 0);
    for to in 2..deltas + 2 {
        add(&mut snapshots, to, &ten_changes(&mut rng, &mut pick));
        changed += snapshots.chain.last().unwrap().written.bytes;
        while let Some(merge) = snapshots.plan_merge().unwrap() {
            let merged = merge.run().unwrap();
            written += merged.piece.written.bytes;
            snapshots.commit_merge(merged).unwrap();
        }
        assert!(snapshots.chain.len() <= CHAIN_FILES_MAX);
    }
    (changed + written) as f64 / changed as f64
}

/// One for the change itself, about one for each level of the deltas, and three for the whole state.
#[test]
fn writing_is_bounded_by_the_change() {
    let spread = amplification(20_000, |rng| rng.place(KEYS));
    assert!(spread < 6.0, "{spread}");
    let hot = amplification(5_000, |rng| rng.place(50));
    assert!(hot < 2.5, "{hot}");
    println!("written for a byte changed: {spread:.2} spread over the store, {hot:.2} on a few keys");
}

/// The cost of a snapshot is that of its changes, however large the store is.
#[test]
fn a_delta_costs_what_it_holds() {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    add(&mut snapshots, 1, &(0..KEYS).map(|key| (place(key), Some(value(0)))).collect());
    let changes = ten_changes(&mut Dice::new(12), |rng| rng.place(KEYS));
    add(&mut snapshots, 2, &changes);
    let bytes = fs::metadata(&folder.files()[1]).unwrap().len() as usize;
    assert!(bytes < 10 * (VALUE_BYTES + 40) + 300, "{bytes}");
}

/// A merge needs a buffer and a line or two for each file, not the files.
#[test]
fn merging_reads_through_small_buffers() {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    add(&mut snapshots, 1, &(0..KEYS).map(|key| (place(key), Some(value(0)))).collect());
    add(&mut snapshots, 2, &(0..KEYS).map(|key| (place(key), Some(value(1)))).collect());
    let Merge { inputs, .. } = snapshots.plan_merge().unwrap().unwrap();
    for input in inputs {
        let bytes = input.file.size().unwrap();
        let reader = crate::snapshot::reader::FileReader::new(input.file, input.stretch);
        assert!(reader.unwrap().buffer_bytes() as u64 * 8 < bytes);
    }
}
