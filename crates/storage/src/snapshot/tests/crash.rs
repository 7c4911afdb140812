//! A crash at every step of adding, merging and installing leaves the state before or the state after, and no other files.
//!
//! The test does the steps by hand on copies of the directory: a crash leaves the files as they are between two steps.

use super::*;

/// Eight files in one chain, with merges due.
fn chain() -> (Folder, State) {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let (mut state, mut rng) = (State::new(), Dice::new(5));
    for to in 1..=9 {
        let changes = random_changes(&mut rng, 20, 5);
        add(&mut snapshots, to, &changes);
        apply(&mut state, &changes);
    }
    (folder, state)
}

fn expect(folder: &Folder, to: Index, state: &State, files: usize, what: &str) {
    let (snapshots, opening) = folder.open();
    assert_eq!(opening.bad, [], "{what}");
    assert_eq!((index(&snapshots), &load(&snapshots)), (to, state), "{what}");
    assert_eq!(list(&folder.0).len(), 1, "{what}: nothing else is left");
    assert_eq!(folder.files().len(), files, "{what}");
    let (again, _) = folder.open();
    assert_eq!(load(&again), *state, "{what}, opened twice");
}

/// Every subset of the paths, because a crash may leave removals in any order.
fn selections(paths: &[PathBuf]) -> impl Iterator<Item = Vec<&PathBuf>> {
    let chosen = |bits: u32, at: usize| bits >> at & 1 == 1;
    (0..1u32 << paths.len()).map(move |bits| {
        let some = paths.iter().enumerate().filter(|(at, _)| chosen(bits, *at));
        some.map(|(_, path)| path).collect()
    })
}

#[test]
fn while_adding() {
    let (folder, state) = chain();
    let after = folder.copy();
    add(&mut after.open().0, 10, &random_changes(&mut Dice::new(6), 20, 5));
    let bytes = fs::read(after.files().last().unwrap()).unwrap();
    for length in 0..=bytes.len() {
        let copy = folder.copy();
        fs::write(copy.0.join("1.tmp"), &bytes[..length]).unwrap();
        expect(&copy, 9, &state, 9, &format!("{length} bytes written"));
    }
    let state = load(&after.open().0);
    expect(&after, 10, &state, 10, "named");
}

#[test]
fn while_adding_a_whole_state() {
    let (folder, state) = chain();
    let after = folder.copy();
    let changes = random_changes(&mut Dice::new(7), 20, 5);
    let mut other = State::new();
    apply(&mut other, &changes);
    after.open().0.add(0, boundary(12), as_changes(&changes)).unwrap();
    replaced_step_by_step(&folder, (9, &state), &after, (12, &other));
}

#[test]
fn while_installing() {
    let (folder, state) = chain();
    let peer = Folder::new();
    let (mut sender, _) = peer.open();
    let (mut other, mut rng) = (State::new(), Dice::new(8));
    for to in [5, 7] {
        let changes = random_changes(&mut rng, 20, 5);
        add(&mut sender, to, &changes);
        apply(&mut other, &changes);
    }
    let after = folder.copy();
    let (mut receiver, _) = after.open();
    let incoming = import(receiver.importer().unwrap(), &export(&sender)).unwrap();
    receiver.install(incoming).unwrap();
    replaced_step_by_step(&folder, (9, &state), &after, (7, &other));
}

/// A chain is replaced by another: half written, complete, named, and the old one removed piece by piece.
fn replaced_step_by_step(before: &Folder, old: (Index, &State), after: &Folder, new: (Index, &State)) {
    let (old_files, new_files) = (before.files(), after.files());
    let old_name = list(&before.0)[0].file_name().unwrap().to_owned();
    for some in selections(&new_files) {
        let copy = before.copy();
        let unfinished = copy.0.join("1.tmp");
        fs::create_dir(&unfinished).unwrap();
        for file in &some {
            fs::copy(file, unfinished.join(file.file_name().unwrap())).unwrap();
        }
        expect(&copy, old.0, old.1, old_files.len(), &format!("not named, with {some:?}"));
    }
    for some in selections(&old_files) {
        let copy = after.copy();
        let rest = copy.0.join(&old_name);
        fs::create_dir(&rest).unwrap();
        for file in &some {
            fs::copy(file, rest.join(file.file_name().unwrap())).unwrap();
        }
        expect(&copy, new.0, new.1, new_files.len(), &format!("named, with {some:?}"));
    }
    expect(after, new.0, new.1, new_files.len(), "done");
}

#[test]
fn while_merging() {
    let (folder, state) = chain();
    let after = folder.copy();
    let (mut snapshots, _) = after.open();
    let merged = snapshots.plan_merge().unwrap().unwrap().run().unwrap();
    expect(&after.copy(), 9, &state, 9, "run");
    assert!(snapshots.commit_merge(merged).unwrap());
    assert_eq!(after.files().len(), 1);
    expect(&after, 9, &state, 1, "committed");
    let result = &after.files()[0];
    for some in selections(&folder.files()) {
        let copy = folder.copy();
        let chain = list(&copy.0)[0].clone();
        fs::copy(result, chain.join(result.file_name().unwrap())).unwrap();
        for file in &some {
            fs::remove_file(chain.join(file.file_name().unwrap())).unwrap();
        }
        expect(&copy, 9, &state, 1, &format!("committed, without {some:?}"));
    }
}

/// The inputs of a merge are still there, and its result has become bad: nothing is lost.
#[test]
fn a_bad_result_beside_its_inputs() {
    let (folder, state) = chain();
    let after = folder.copy();
    merge_all(&mut after.open().0);
    let name = after.files()[0].file_name().unwrap().to_owned();
    let bytes = fs::read(&after.files()[0]).unwrap();
    let result = list(&folder.0)[0].join(name);
    fs::write(&result, &bytes[..bytes.len() - 1]).unwrap();
    let (mut snapshots, opening) = folder.open();
    assert_eq!((index(&snapshots), load(&snapshots)), (9, state.clone()));
    assert_eq!(opening.bad.len(), 1);
    merge_all(&mut snapshots);
    assert!(result.with_extension("snap.bad").exists());
    assert_eq!(load(&folder.open().0), state);
}
