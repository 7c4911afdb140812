//! Compares random lives of a chain with a plain map.

use std::mem;

use super::*;
use crate::snapshot::{CHAIN_FILES_MAX, Merged};

#[derive(Debug)]
struct Life {
    rng: Dice,
    folder: Folder,
    snapshots: Snapshots,
    state: State,
    index: Index,
    /// A merge that is complete but not committed yet.
    merged: Option<Merged>,
}

impl Life {
    fn new(seed: u64) -> Life {
        let folder = Folder::new();
        let (snapshots, opening) = folder.open();
        assert!(opening.newest.is_none() && opening.bad.is_empty());
        let (rng, state) = (Dice::new(seed), State::new());
        Life { rng, folder, snapshots, state, index: 0, merged: None }
    }

    fn step(&mut self) {
        match self.rng.place(20) {
            0..=11 => self.add(),
            12 => self.add_whole(),
            13..=15 => self.run_merge(),
            16 | 17 => self.end_merge(),
            18 => self.reopen(),
            _ => self.install(),
        }
        assert_eq!(index(&self.snapshots), self.index);
        assert_eq!(load(&self.snapshots), self.state);
    }

    fn add(&mut self) {
        let count = self.rng.place(12);
        let changes = random_changes(&mut self.rng, 30, count);
        self.index += 1 + self.rng.place(10) as u64;
        add(&mut self.snapshots, self.index, &changes);
        apply(&mut self.state, &changes);
    }

    fn add_whole(&mut self) {
        self.index += 1;
        self.snapshots.add(0, boundary(self.index), as_changes(&whole(&self.state))).unwrap();
    }

    fn run_merge(&mut self) {
        if let Some(merge) = self.snapshots.plan_merge().unwrap() {
            self.merged = Some(merge.run().unwrap());
        }
    }

    /// Commits or drops the merge. The chain may have been replaced meanwhile.
    fn end_merge(&mut self) {
        if let Some(merged) = self.merged.take().filter(|_| self.rng.place(4) > 0) {
            self.snapshots.commit_merge(merged).unwrap();
        }
    }

    fn reopen(&mut self) {
        self.merged = None;
        let (snapshots, opening) = self.folder.open();
        assert_eq!(opening.bad, []);
        assert_eq!(opening.newest.as_ref(), snapshots.newest());
        self.snapshots = snapshots;
    }

    /// A peer sends this state, after more was added here.
    fn install(&mut self) {
        let Some(mut export) = self.snapshots.export().unwrap() else {
            return;
        };
        let (state, index) = (self.state.clone(), self.index);
        for _ in 0..self.rng.place(4) {
            self.add();
            merge_all(&mut self.snapshots);
        }
        let mut importer = self.snapshots.importer().unwrap();
        let mut buffer = vec![0; 1 + self.rng.place(300)];
        loop {
            match export.read(&mut buffer).unwrap() {
                0 => break,
                read => importer.write(&buffer[..read]).unwrap(),
            }
        }
        let incoming = importer.finish().unwrap();
        assert_eq!(incoming.boundary(), export.boundary());
        let mut loaded = State::new();
        incoming.load(collect(&mut loaded)).unwrap();
        assert_eq!(loaded, state);
        self.snapshots.install(incoming).unwrap();
        (self.state, self.index) = (state, index);
    }
}

#[test]
fn every_life_is_the_maps() {
    for seed in 0..40 {
        let mut life = Life::new(seed);
        for _ in 0..150 {
            life.step();
        }
        life.merged = None;
        merge_all(&mut life.snapshots);
        assert_eq!(load(&life.snapshots), life.state);
        assert!(life.snapshots.chain.len() <= CHAIN_FILES_MAX);
        life.reopen();
        assert_eq!(mem::take(&mut life.state), load(&life.snapshots));
        assert_eq!(list(&life.folder.0).len(), 1, "nothing else is left");
    }
}

#[test]
fn a_whole_state_holds_no_deletions() {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let mut rng = Dice::new(1);
    for to in 1..=9 {
        add(&mut snapshots, to, &random_changes(&mut rng, 5, 10));
    }
    merge_all(&mut snapshots);
    let files = folder.files();
    assert_eq!(files.len(), 1);
    assert!(!fs::read_to_string(&files[0]).unwrap().lines().any(|line| line.ends_with(" -")));
}

#[test]
fn only_what_goes_on_from_the_newest_is_added() {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let none = Changes::new();
    let refused = |snapshots: &mut Snapshots, since, to| {
        let added = snapshots.add(since, boundary(to), as_changes(&none));
        matches!(added, Err(SnapshotError::NotOnTop { .. }))
    };
    assert!(refused(&mut snapshots, 0, 0));
    assert!(refused(&mut snapshots, 5, 10));
    add(&mut snapshots, 10, &none);
    assert!(refused(&mut snapshots, 10, 10));
    assert!(refused(&mut snapshots, 9, 11));
    assert!(refused(&mut snapshots, 0, 10), "an older whole state does not replace a newer one");
    add(&mut snapshots, 11, &none);
    assert_eq!(index(&folder.open().0), 11);
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let folder = Folder::new();
    let (mut snapshots, _) = folder.open();
    let change = |key: &'static str, value: &'static str| Change {
        table: "doc",
        key: key.into(),
        value: Some(value.into()),
    };
    let cases = [[change("a", "1"), change("a", "2")], [change("b", "1"), change("a", "2")]];
    for (since, to) in [(0, 10), (10, 20)] {
        for case in cases.iter().cloned().chain([[change("a", "1"), change("b", "2\n3")]]) {
            let error = snapshots.add(since, boundary(to), case).unwrap_err();
            assert!(matches!(error, SnapshotError::Unfit { .. }), "{error}");
            assert!(list(&folder.0).iter().all(|path| path.is_dir() && path.extension().is_none()));
        }
        snapshots.add(since, boundary(to), [change("a", "1")]).unwrap();
    }
    assert_eq!(index(&folder.open().0), 20);
}

#[test]
fn a_full_disk_is_known_as_such() {
    let of =
        |number| SnapshotError::Io { path: PathBuf::new(), error: std::io::Error::from_raw_os_error(number) };
    let (enospc, edquot, eio) = (28, 122, 5);
    assert!(of(enospc).is_full() && of(edquot).is_full() && !of(eio).is_full());
}
