//! The contents of a disk after a power failure: everything synced, and any part of the rest.
//!
//! The library `shim.c` keeps an image of all synced data. A folder becomes what the image says, or stays as
//! the process left it. A file's bytes become those of the image, with some part of the newer ones. Files
//! that stay keep their inodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::harness::Rng;

/// The size of the writes that a disk makes in one step.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
struct Tree {
    folders: BTreeSet<PathBuf>,
    /// Files by path, with their inodes.
    files: BTreeMap<PathBuf, u64>,
}

#[derive(Debug, Default)]
struct Lost {
    /// Folders that do not have their newest names.
    names: u32,
    files: u32,
    bytes: usize,
}

/// Turns the folder into one that a power cut might have left. The process that wrote to it has ended.
pub fn fail(data: &Path, image: &Path, rng: &mut Rng) -> String {
    let Ok(root) = fs::metadata(data) else { return "no disk yet".to_string() };
    let (mut before, mut after, mut lost) = (Tree::default(), Tree::default(), Lost::default());
    walk(data, &mut before);
    choose(data, Some(root.ino()), image, rng, &mut after, &mut lost);
    let limbo = data.with_extension("limbo");
    fs::create_dir_all(&limbo).expect("a place for files without a name");
    put_names(&before, &after, &limbo);
    for (path, inode) in &after.files {
        let durable = fs::read(image.join(format!("b{inode}"))).unwrap_or_default();
        // A file that was removed gets its synced contents.
        let written = if path.exists() { read(path) } else { durable.clone() };
        let left = torn(&durable, &written, rng);
        if left != written || !path.exists() {
            (lost.files, lost.bytes) = (lost.files + 1, lost.bytes + differing(&left, &written).len());
            write(path, &left);
        }
    }
    fs::remove_dir_all(&limbo).expect("limbo is ours");
    let Lost { names, files, bytes } = lost;
    format!("lost: {names} names, {bytes} bytes of {files} files")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes in place, so that the file stays the same one.
fn write(path: &Path, bytes: &[u8]) {
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).expect("room for what was there");
    file.set_len(bytes.len() as u64).expect("a shorter file");
}

fn walk(folder: &Path, tree: &mut Tree) {
    for (name, inode, is_dir) in listed(folder) {
        let path = folder.join(name);
        if is_dir {
            walk(&path, tree);
            tree.folders.insert(path);
        } else {
            tree.files.insert(path, inode);
        }
    }
}

type Names = BTreeSet<(String, u64, bool)>;

fn listed(folder: &Path) -> Names {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entry = |entry: fs::DirEntry| {
        let about = entry.metadata().ok()?;
        Some((entry.file_name().into_string().ok()?, about.ino(), about.is_dir()))
    };
    entries.filter_map(entry).collect()
}

/// The names that were durable in the folder of this inode.
fn durable_names(image: &Path, inode: u64) -> Names {
    let text = fs::read_to_string(image.join(format!("d{inode}"))).unwrap_or_default();
    let entry = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (inode, kind, name) = (words.next()?, words.next()?, words.next()?);
        Some((name.to_string(), inode.parse().ok()?, kind == "d"))
    };
    text.lines().filter_map(entry).collect()
}

/// Decides for the folder and those in it whether they have their newest names.
fn choose(folder: &Path, inode: Option<u64>, image: &Path, rng: &mut Rng, tree: &mut Tree, lost: &mut Lost) {
    let there = fs::metadata(folder).is_ok_and(|about| Some(about.ino()) == inode);
    let durable = inode.map(|inode| durable_names(image, inode)).unwrap_or_default();
    let newest = if there { listed(folder) } else { durable.clone() };
    let goes_back = durable != newest && rng.below(3) < 2;
    lost.names += u32::from(goes_back);
    for (name, inode, is_dir) in if goes_back { durable } else { newest } {
        let path = folder.join(name);
        if is_dir {
            choose(&path, Some(inode), image, rng, tree, lost);
            tree.folders.insert(path);
        } else {
            tree.files.insert(path, inode);
        }
    }
}

/// Puts every file that stays in its place; files that are to be created again are missing.
fn put_names(before: &Tree, after: &Tree, limbo: &Path) {
    let waiting = |inode: &u64| limbo.join(inode.to_string());
    for (path, inode) in before.files.iter().filter(|(path, inode)| after.files.get(*path) != Some(inode)) {
        fs::rename(path, waiting(inode)).expect("the same file system");
    }
    // Inner folders come first.
    for folder in before.folders.difference(&after.folders).collect::<Vec<_>>().into_iter().rev() {
        fs::remove_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    for folder in after.folders.difference(&before.folders) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder");
    }
    for (path, inode) in after.files.iter().filter(|(path, _)| !path.exists()) {
        if waiting(inode).exists() {
            fs::rename(waiting(inode), path).expect("the same file system");
        }
    }
}

/// The places at which the two differ.
fn differing(one: &[u8], other: &[u8]) -> Vec<usize> {
    let longest = one.len().max(other.len());
    (0..longest).filter(|at| one.get(*at) != other.get(*at)).collect()
}

/// All synced bytes, and some of the others.
fn torn(durable: &[u8], written: &[u8], rng: &mut Rng) -> Vec<u8> {
    let newer = differing(durable, written);
    let (Some(first), Some(last)) = (newer.first(), newer.last()) else { return durable.to_vec() };
    let cut = first + rng.below((last - first + 1) as u64) as usize;
    let mut left = durable.to_vec();
    let mut take = |at: usize, byte: Option<u8>| {
        if left.len() <= at {
            left.resize(at + 1, 0);
        }
        left[at] = byte.unwrap_or_default();
    };
    match rng.below(8) {
        0..=2 => {}
        3 => return written.to_vec(),
        4 => newer.iter().filter(|at| **at < cut).for_each(|at| take(*at, written.get(*at).copied())),
        5 => {
            // The rest of the sector at which it was cut is zeros.
            newer.iter().filter(|at| **at < cut).for_each(|at| take(*at, written.get(*at).copied()));
            let end = (cut / SECTOR + 1) * SECTOR;
            newer.iter().filter(|at| (cut..end).contains(*at)).for_each(|at| take(*at, None));
        }
        // Sectors are written in any order.
        _ => {
            let sectors: BTreeSet<usize> = newer.iter().map(|at| at / SECTOR).collect();
            let kept: BTreeSet<usize> = sectors.into_iter().filter(|_| rng.below(2) == 0).collect();
            let taken = newer.iter().filter(|at| kept.contains(&(**at / SECTOR)));
            taken.for_each(|at| take(*at, written.get(*at).copied()));
        }
    }
    left
}
