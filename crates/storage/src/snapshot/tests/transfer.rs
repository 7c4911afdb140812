//! Merges, exports and imports that overlap.

use super::*;
use crate::snapshot::Why;

fn filled(to: Index) -> (Folder, Snapshots, State) {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let (mut state, mut rng) = (State::new(), Dice::new(9));
    for index in 1..=to {
        let changes = random_changes(&mut rng, 20, 5);
        add(&mut snapshots, index, &changes);
        apply(&mut state, &changes);
    }
    (folder, snapshots, state)
}

#[test]
fn an_export_outlives_merge_and_installation() {
    let (_folder, mut snapshots, state) = filled(9);
    let mut export = snapshots.export().unwrap().unwrap();
    merge_all(&mut snapshots);
    snapshots.add(0, boundary(10), []).unwrap();
    let mut bytes = Vec::new();
    export.read_to_end(&mut bytes).unwrap();
    let incoming = import(snapshots.importer().unwrap(), &bytes).unwrap();
    let mut loaded = State::new();
    incoming.load(collect(&mut loaded)).unwrap();
    assert_eq!((incoming.boundary().index(), loaded), (9, state));
}

#[test]
fn a_merge_that_an_installation_overtook_is_dropped() {
    let (folder, mut snapshots, _) = filled(9);
    let before = snapshots.plan_merge().unwrap().unwrap();
    let incoming = import(snapshots.importer().unwrap(), &export(&snapshots)).unwrap();
    snapshots.install(incoming).unwrap();
    let merged = before.run().unwrap();
    assert!(!snapshots.commit_merge(merged).unwrap());
    assert_eq!((list(&folder.0).len(), folder.files().len()), (1, 9));
}

#[test]
fn two_merges_at_once_share_no_file() {
    let (_folder, mut snapshots, mut state) = filled(9);
    let first = snapshots.plan_merge().unwrap().unwrap();
    assert!(snapshots.plan_merge().unwrap().is_none());
    let changes = random_changes(&mut Dice::new(10), 20, 5);
    for to in 10..18 {
        add(&mut snapshots, to, &changes);
    }
    apply(&mut state, &changes);
    let second = snapshots.plan_merge().unwrap().unwrap();
    let (first, second) = (first.run().unwrap(), second.run().unwrap());
    assert!(snapshots.commit_merge(second).unwrap());
    assert!(snapshots.commit_merge(first).unwrap());
    assert_eq!((load(&snapshots), snapshots.chain.len()), (state, 2));
}

#[test]
fn a_merge_that_is_dropped_may_be_planned_again() {
    let (folder, snapshots, _) = filled(9);
    drop(snapshots.plan_merge().unwrap().unwrap());
    drop(snapshots.plan_merge().unwrap().unwrap().run().unwrap());
    assert!(snapshots.plan_merge().unwrap().is_some());
    assert_eq!(list(&folder.0).len(), 1, "nothing unfinished is left");
}

#[test]
fn the_newest_state_is_the_one_installed() {
    let (_sender, peer, state) = filled(5);
    let (folder, mut snapshots, _) = filled(9);
    let incoming = import(snapshots.importer().unwrap(), &export(&peer)).unwrap();
    assert_eq!(index(&snapshots), 9, "not before it is installed");
    snapshots.install(incoming).unwrap();
    for snapshots in [snapshots, folder.open().0] {
        assert_eq!((index(&snapshots), load(&snapshots)), (5, state.clone()));
    }
    assert!(list(&folder.0).iter().all(|path| path.ends_with("00000002")));
}

#[test]
fn what_is_no_stream_of_a_chain_is_refused() {
    let (_folder, snapshots, _) = filled(2);
    let bytes = export(&snapshots);
    let split = snapshots.chain[0].written.bytes as usize;
    let (first, second) = bytes.split_at(split);
    let why = |bytes: &[u8]| match import(snapshots.importer().unwrap(), bytes) {
        Err(SnapshotError::Bad(flaw)) => flaw.why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(b""), Why::Unfinished);
    assert_eq!(why(second), Why::NotAdjacent { expected: 0 });
    assert_eq!(why(&[first, first].concat()), Why::NotAdjacent { expected: 1 });
    assert_eq!(why(&[first, second, b"x"].concat()), Why::Unfinished);
    assert_eq!(why(&[first, b"\xff\n"].concat()), Why::NotUtf8);
    assert_eq!(why(&[first, b"end 0 00000000\n"].concat()), Why::Head);
    assert_eq!(why(b"eldest-snapshot 1 from=0 {}\n"), Why::Boundary);
}

#[test]
fn after_an_error_an_importer_takes_nothing_more() {
    let (folder, snapshots, _) = filled(2);
    let bytes = export(&snapshots);
    let mut importer = snapshots.importer().unwrap();
    assert!(importer.write(b"no head\n").is_err());
    assert!(importer.write(&bytes).is_err());
    assert!(importer.finish().is_err());
    let mut importer = snapshots.importer().unwrap();
    importer.write(&bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(list(&folder.0).len(), 2);
    drop(importer);
    assert_eq!(list(&folder.0).len(), 1);
}
