//! Helpers that the tests of snapshots share: a temporary folder, a seeded generator, states as plain maps.

mod crash;
mod damage;
mod economy;
mod model;
mod transfer;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Change, Importer, Incoming, Opening, SnapshotError, Snapshots};
use crate::Boundary;
use crate::files::{Dice, Files};
use crate::protocol::SnapshotMeta;
use crate::types::{Epoch, Index, NodeId, Position};

/// Table and key to value.
type State = BTreeMap<(String, String), String>;

/// Table and key to the new value, or to `None`.
type Changes = BTreeMap<(String, String), Option<String>>;

/// A temporary folder, in memory if there is such a file system: the speed of the disk does not matter to these tests.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = Folder(base.join(format!("eldest-snapshot-{}-{number}", std::process::id())));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    /// Another folder with the same content.
    fn copy(&self) -> Folder {
        let copy = Folder::new();
        copy_folder(&self.0, &copy.0);
        copy
    }

    fn open(&self) -> (Snapshots, Opening) {
        Snapshots::open(&Files::default(), &self.0).unwrap()
    }

    /// The files of the only chain, in order.
    fn files(&self) -> Vec<PathBuf> {
        list(&list(&self.0)[0])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for path in list(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn boundary(index: Index) -> Boundary {
    let meta = SnapshotMeta { at: Position::new(Epoch::new(7, NodeId(1)), index), ..SnapshotMeta::default() };
    Boundary { meta, chain: 0x0102_0304, origin: 0 }
}

/// A few keys in two tables, awkward ones among them, a third of them deleted.
fn random_changes(rng: &mut Dice, keys: usize, count: usize) -> Changes {
    let mut changes = Changes::new();
    for _ in 0..count {
        let table = ["doc", "user_2"][rng.place(2)].to_string();
        let odd = ["", "\n", "\"", "\\", "é", "\u{0}", " -"][rng.place(7)];
        let key = format!("{odd}{}", rng.place(keys));
        let value = (rng.place(3) > 0).then(|| format!("{{\"n\":{},\"t\":\"a b\\n\"}}", rng.roll()));
        changes.insert((table, key), value);
    }
    changes
}

fn as_changes(changes: &Changes) -> impl Iterator<Item = Change<'_>> {
    changes.iter().map(|((table, key), value)| Change {
        table,
        key: key.into(),
        value: value.as_ref().map(|value| value.into()),
    })
}

fn whole(state: &State) -> Changes {
    state.iter().map(|(place, value)| (place.clone(), Some(value.clone()))).collect()
}

fn apply(state: &mut State, changes: &Changes) {
    for (place, value) in changes {
        match value {
            Some(value) => state.insert(place.clone(), value.clone()),
            None => state.remove(place),
        };
    }
}

/// Adds changes on top of the newest state.
fn add(snapshots: &mut Snapshots, to: Index, changes: &Changes) {
    let since = index(snapshots);
    snapshots.add(since, boundary(to), as_changes(changes)).unwrap();
}

fn index(snapshots: &Snapshots) -> Index {
    snapshots.newest().map_or(0, Boundary::index)
}

fn collect(state: &mut State) -> impl FnMut(&str, &str, &str) -> Result<(), SnapshotError> {
    |table, key, value| {
        let place = (table.to_string(), key.to_string());
        assert!(state.last_key_value().is_none_or(|(last, _)| *last < place), "out of order");
        state.insert(place, value.to_string());
        Ok(())
    }
}

fn load(snapshots: &Snapshots) -> State {
    let mut state = State::new();
    snapshots.load(collect(&mut state)).unwrap();
    state
}

fn merge_all(snapshots: &mut Snapshots) {
    while let Some(merge) = snapshots.plan_merge().unwrap() {
        assert!(snapshots.commit_merge(merge.run().unwrap()).unwrap());
    }
}

fn export(snapshots: &Snapshots) -> Vec<u8> {
    let mut export = snapshots.export().unwrap().unwrap();
    let mut bytes = Vec::new();
    export.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, export.length());
    bytes
}

fn import(mut importer: Importer, bytes: &[u8]) -> Result<Incoming, SnapshotError> {
    importer.write(bytes)?;
    importer.finish()
}
