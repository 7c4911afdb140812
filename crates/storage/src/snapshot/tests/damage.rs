//! Files are cut at every byte, and every bit is flipped: the result is an older good state and a report, never a wrong value.

use super::*;
use crate::snapshot::{Why, inspect};

/// Three files, and the state at the end of each.
fn small_chain() -> (Folder, BTreeMap<Index, State>) {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let (mut state, mut rng, mut states) = (State::new(), Dice::new(3), BTreeMap::from([(0, State::new())]));
    for to in [10, 20, 30] {
        let changes = random_changes(&mut rng, 3, 4);
        add(&mut snapshots, to, &changes);
        apply(&mut state, &changes);
        states.insert(to, state.clone());
    }
    (folder, states)
}

/// Checks the state that a start finds, and that the chain continues from there.
fn expect_older(folder: &Folder, states: &BTreeMap<Index, State>, file: usize, what: &str) {
    let expected = [0, 10, 20][file];
    let found = inspect(&folder.0).unwrap();
    let (mut snapshots, opening) = folder.open();
    assert_eq!(opening.newest.map_or(0, |newest| newest.index()), expected, "{what}");
    assert_eq!(load(&snapshots), states[&expected], "{what}");
    assert_eq!(opening.bad.len(), 3 - file, "{what}: the bad one, and what is out of reach");
    assert_eq!(found.bad(), opening.bad);
    add(&mut snapshots, 30, &whole(&states[&30]));
    let (snapshots, opening) = folder.open();
    assert_eq!((index(&snapshots), opening.bad.len()), (30, 0), "{what}");
}

/// Each damaged version of a file's bytes.
fn damages(bytes: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> + '_ {
    let cuts = (0..bytes.len()).map(|at| (format!("cut at {at}"), bytes[..at].to_vec()));
    let flips = (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        (format!("bit {bit} flipped"), flipped)
    });
    cuts.chain(flips).chain([("appended".to_string(), [bytes, b"\n"].concat())])
}

#[test]
fn damage_costs_newer_states_and_nothing_else() {
    let (folder, states) = small_chain();
    for (file, path) in folder.files().iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        for (what, damaged) in damages(&bytes) {
            let copy = folder.copy();
            fs::write(&copy.files()[file], damaged).unwrap();
            expect_older(&copy, &states, file, &what);
        }
    }
}

#[test]
fn a_missing_file_is_the_same() {
    let (folder, states) = small_chain();
    for (file, reported) in [(0, 2), (1, 1), (2, 0)] {
        let copy = folder.copy();
        fs::remove_file(&copy.files()[file]).unwrap();
        let (snapshots, opening) = copy.open();
        assert_eq!(load(&snapshots), states[&[0, 10, 20][file]]);
        assert_eq!(opening.bad.len(), reported);
        assert!(opening.bad.iter().all(|flaw| flaw.why == Why::OutOfReach));
    }
}

#[test]
fn a_damaged_stream_is_refused() {
    let (folder, _) = small_chain();
    let (snapshots, _) = folder.open();
    let bytes = export(&snapshots);
    let files: Vec<u64> = snapshots.chain.iter().map(|piece| piece.written.bytes).collect();
    // A stream that is cut between two files is an older state, complete in itself. The head of the message has the intended
    // state.
    let older = [files[0], files[0] + files[1]];
    for (what, damaged) in damages(&bytes) {
        let imported = import(snapshots.importer().unwrap(), &damaged);
        let is_older = older.contains(&(damaged.len() as u64));
        assert_eq!(imported.is_ok(), is_older, "{what}");
    }
    assert!(import(snapshots.importer().unwrap(), &bytes).is_ok());
    assert_eq!(list(&folder.0).len(), 1, "nothing of it is left");
}

#[test]
fn what_goes_bad_later_is_noticed_when_it_is_read() {
    let (folder, _) = small_chain();
    let bytes = fs::read(&folder.files()[1]).unwrap();
    for (what, damaged) in damages(&bytes) {
        let copy = folder.copy();
        let (mut snapshots, _) = copy.open();
        for to in 31..40 {
            add(&mut snapshots, to, &Changes::new());
        }
        let merge = snapshots.plan_merge().unwrap().unwrap();
        fs::write(&copy.files()[1], damaged).unwrap();
        assert!(matches!(snapshots.load(|_, _, _| Ok(())), Err(SnapshotError::Bad(_))), "{what}");
        assert!(matches!(merge.run(), Err(SnapshotError::Bad(_))), "{what}");
        assert_eq!(list(&copy.0).len(), 1, "{what}: nothing unfinished is left");
    }
}

#[test]
fn bad_files_are_kept_aside() {
    let (folder, _) = small_chain();
    let path = folder.files()[1].clone();
    fs::write(&path, "eldest-snapshot 2 from=10 {}\n").unwrap();
    let (mut snapshots, opening) = folder.open();
    assert_eq!((opening.bad[0].line, &opening.bad[0].why), (1, &Why::Version));
    assert!(path.exists(), "looking changes nothing");
    add(&mut snapshots, 20, &Changes::new());
    assert_eq!(
        fs::read_to_string(path.with_extension("snap.bad")).unwrap(),
        "eldest-snapshot 2 from=10 {}\n"
    );
    assert_eq!(index(&folder.open().0), 20, "the old file from 20 to 30 is not reached again");
}
