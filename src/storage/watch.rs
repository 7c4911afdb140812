//! For tests of crashes: what a directory looks like after every single change of a file, and what would be left
//! of it if the power failed then.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::recover::SNAPSHOTS_DIR;

/// What happened to a file on this thread.
#[derive(Debug)]
pub enum Event<'a> {
    Changed,
    Synced(&'a Path),
    SyncedDir(&'a Path),
}

/// Every file of a directory tree, by its path below the root.
pub type Image = BTreeMap<PathBuf, Vec<u8>>;

/// Told of the image as a dying process leaves it, and of the one that a power failure does.
type Seen = Box<dyn FnMut(&Image, &Image)>;

/// Takes images of one directory. The durable one holds each file as of its last sync, under the names as of the
/// last sync of its directory.
struct Watch {
    root: PathBuf,
    synced: BTreeMap<u64, Vec<u8>>,
    names: BTreeMap<PathBuf, u64>,
    seen: Seen,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Begins to watch what this thread does to the files below `root`.
pub fn start(root: &Path, seen: impl FnMut(&Image, &Image) + 'static) {
    let mut watch = Watch {
        root: root.to_path_buf(),
        synced: BTreeMap::new(),
        names: BTreeMap::new(),
        seen: Box::new(seen),
    };
    // What was there before is durable.
    for (path, bytes) in image(root) {
        let inode = inode(&root.join(&path));
        watch.synced.insert(inode, bytes);
        watch.names.insert(path, inode);
    }
    WATCH.with(|cell| *cell.borrow_mut() = Some(watch));
}

pub fn stop() {
    WATCH.with(|cell| *cell.borrow_mut() = None);
}

pub fn tell(event: Event<'_>) {
    WATCH.with(|cell| {
        if let Some(watch) = cell.borrow_mut().as_mut() {
            watch.tell(&event);
        }
    });
}

/// Writes only the first part, then only the second one: how a power failure may tear it.
pub fn tear(file: &File, bytes: &[u8], offset: u64) {
    let watched = WATCH.with(|cell| cell.borrow().is_some());
    if !watched || bytes.len() < 2 {
        return;
    }
    let mut before = vec![0; bytes.len()];
    let length = file.read_at(&mut before, offset).expect("a test's file can be read");
    if length < bytes.len() {
        return;
    }
    let middle = bytes.len() / 2;
    file.write_all_at(&bytes[..middle], offset).expect("a test's file can be written");
    tell(Event::Changed);
    file.write_all_at(&before, offset).expect("a test's file can be written");
    file.write_all_at(&bytes[middle..], offset + middle as u64).expect("a test's file can be written");
    tell(Event::Changed);
}

impl Watch {
    fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Changed => {}
            Event::Synced(path) => {
                let bytes = fs::read(path).expect("what was synced can be read");
                self.synced.insert(inode(path), bytes);
            }
            Event::SyncedDir(dir) => self.sync_names(dir),
        }
        let durable = self.names.iter().map(|(path, inode)| {
            let bytes = self.synced.get(inode).cloned();
            (path.clone(), bytes.unwrap_or_default())
        });
        let now = image(&self.root);
        // The snapshots answer for themselves, in tests of their own.
        let theirs = |path: &PathBuf| path.starts_with(SNAPSHOTS_DIR);
        let mut durable: Image = durable.filter(|(path, _)| !theirs(path)).collect();
        durable.extend(
            now.iter().filter(|(path, _)| theirs(path)).map(|(path, bytes)| (path.clone(), bytes.clone())),
        );
        (self.seen)(&now, &durable);
    }

    fn sync_names(&mut self, dir: &Path) {
        let Ok(below) = dir.strip_prefix(&self.root) else {
            return;
        };
        self.names.retain(|path, _| path.parent() != Some(below));
        for path in image(&self.root).into_keys().filter(|path| path.parent() == Some(below)) {
            let inode = inode(&self.root.join(&path));
            self.names.insert(path, inode);
        }
    }
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).expect("a test's file is there").ino()
}

pub fn image(root: &Path) -> Image {
    let mut image = Image::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("a test's directory can be read") {
            let path = entry.expect("a test's directory can be read").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).expect("a test's file can be read");
                image.insert(path.strip_prefix(root).expect("it is below").to_path_buf(), bytes);
            }
        }
    }
    image
}

/// Makes a directory that holds exactly this.
pub fn restore(image: &Image, root: &Path) {
    if root.exists() {
        fs::remove_dir_all(root).expect("a test's directory can be removed");
    }
    fs::create_dir_all(root).expect("a test's directory can be made");
    for (path, bytes) in image {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("a test's directory can be made");
        fs::write(path, bytes).expect("a test's file can be written");
    }
}
