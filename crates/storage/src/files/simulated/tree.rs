//! Folders and files as the program sees them, and their durable part.
//!
//! ```text
//!  durable ── changes, in order ──► now          for the names of all folders, and for the bytes of each file
//!  sync: the changes are applied to `durable`
//!  power failure (`loss.rs`): some of the changes are applied, and `now` is reset to `durable`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::super::real::{How, Look};

pub type Inode = u64;

const ROOT: Inode = 1;

/// The place of a name: its folder, and the name in it.
pub type NamePlace = (Inode, String);

pub type Names = BTreeMap<NamePlace, Inode>;

#[derive(Clone, Debug)]
pub struct Tree {
    pub nodes: BTreeMap<Inode, Node>,
    last: Inode,
    pub names: Names,
    pub durable: Names,
    /// The changes that lead from `durable` to `names`, in order.
    pub changes: Vec<NameChange>,
}

#[derive(Clone, Debug)]
pub enum Node {
    Dir,
    File(Data),
}

/// An atomic change of names. Each place gets a new file or folder, or is removed.
#[derive(Clone, Debug)]
pub struct NameChange(Vec<(NamePlace, Option<Inode>)>);

/// A file's bytes, and the changes to them since they were durable.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub now: Vec<u8>,
    pub durable: Vec<u8>,
    pub changes: Vec<DataChange>,
}

#[derive(Clone, Debug)]
pub enum DataChange {
    Emptied,
    Wrote { offset: usize, bytes: Vec<u8> },
}

impl NameChange {
    pub fn dirs(&self) -> impl Iterator<Item = Inode> + '_ {
        self.0.iter().map(|((dir, _), _)| *dir)
    }

    pub fn apply(&self, names: &mut Names) {
        for (place, inode) in &self.0 {
            match inode {
                Some(inode) => names.insert(place.clone(), *inode),
                None => names.remove(place),
            };
        }
    }
}

impl Data {
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.now, offset, bytes);
        self.changes.push(DataChange::Wrote { offset, bytes: bytes.to_vec() });
    }

    fn empty(&mut self) {
        self.now.clear();
        self.changes.push(DataChange::Emptied);
    }

    pub fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

impl DataChange {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            DataChange::Emptied => bytes.clear(),
            DataChange::Wrote { offset, bytes: written } => put(bytes, offset, &written),
        }
    }
}

/// Bytes between the old end and the offset become zero.
pub fn put(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    if bytes.len() < offset + written.len() && !written.is_empty() {
        bytes.resize(offset + written.len(), 0);
    }
    if !written.is_empty() {
        bytes[offset..offset + written.len()].copy_from_slice(written);
    }
}

impl Default for Tree {
    fn default() -> Tree {
        let nodes = BTreeMap::from([(ROOT, Node::Dir)]);
        Tree { nodes, last: ROOT, names: Names::new(), durable: Names::new(), changes: Vec::new() }
    }
}

impl Tree {
    /// The folder of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<NamePlace> {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
        let dir = self.find(path.parent().unwrap_or(Path::new("")))?;
        match self.nodes[&dir] {
            Node::Dir => Ok((dir, name.to_string())),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Relative paths begin at the root, too.
    fn find(&self, path: &Path) -> io::Result<Inode> {
        let mut at = ROOT;
        for component in path.components() {
            if let Component::Normal(name) = component {
                let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
                at = *self.names.get(&(at, name.to_string())).ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(at)
    }

    fn is_dir(&self, inode: Inode) -> bool {
        matches!(self.nodes[&inode], Node::Dir)
    }

    fn change(&mut self, change: Vec<(NamePlace, Option<Inode>)>) {
        let change = NameChange(change);
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    fn add(&mut self, place: NamePlace, node: Node) -> Inode {
        self.last += 1;
        self.nodes.insert(self.last, node);
        self.change(vec![(place, Some(self.last))]);
        self.last
    }

    /// The bytes of an open file.
    pub fn data(&mut self, inode: Inode) -> &mut Data {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(data)) => data,
            _ => unreachable!("a file that is open stays"),
        }
    }

    pub fn data_at(&mut self, path: &Path) -> io::Result<&mut Data> {
        let inode = self.find(path)?;
        if self.is_dir(inode) { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(self.data(inode)) }
    }

    pub fn look(&self, path: &Path) -> io::Result<Look> {
        let inode = self.find(path)?;
        Ok(Look { is_dir: self.is_dir(inode), inode })
    }

    pub fn open(&mut self, path: &Path, how: How) -> io::Result<Inode> {
        let place = self.place(path)?;
        match (self.names.get(&place).copied(), how) {
            (Some(_), How::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(inode), _) if self.is_dir(inode) => Err(io::ErrorKind::IsADirectory.into()),
            (Some(inode), How::Create) => {
                self.data(inode).empty();
                Ok(inode)
            }
            (Some(inode), How::Read | How::Write) => Ok(inode),
            (None, How::Create | How::CreateNew) => Ok(self.add(place, Node::File(Data::default()))),
            (None, How::Read | How::Write) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn make_dir(&mut self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        if self.names.contains_key(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.add(place, Node::Dir);
        Ok(())
    }

    /// A file may replace an existing file; a folder may replace nothing.
    /// As on the machine, it is one change: a crash leaves the file under one of the two names.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let inode = *self.names.get(&from).ok_or(io::ErrorKind::NotFound)?;
        if let Some(there) = self.names.get(&to).filter(|there| self.is_dir(**there) || self.is_dir(inode)) {
            let kind =
                if self.is_dir(*there) { io::ErrorKind::IsADirectory } else { io::ErrorKind::NotADirectory };
            return Err(kind.into());
        }
        self.change(vec![(from, None), (to, Some(inode))]);
        Ok(())
    }

    pub fn remove(&mut self, path: &Path, dir: bool) -> io::Result<()> {
        let place = self.place(path)?;
        let inode = *self.names.get(&place).ok_or(io::ErrorKind::NotFound)?;
        match (self.is_dir(inode), dir) {
            (true, false) => Err(io::ErrorKind::IsADirectory.into()),
            (false, true) => Err(io::ErrorKind::NotADirectory.into()),
            (true, true) if self.inside(inode).next().is_some() => {
                Err(io::ErrorKind::DirectoryNotEmpty.into())
            }
            _ => {
                self.change(vec![(place, None)]);
                Ok(())
            }
        }
    }

    fn inside(&self, dir: Inode) -> impl Iterator<Item = (&String, Inode)> {
        let from = self.names.range((dir, String::new())..);
        from.take_while(move |((at, _), _)| *at == dir).map(|((_, name), inode)| (name, *inode))
    }

    pub fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inode = self.find(dir)?;
        if !self.is_dir(inode) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(self.inside(inode).map(|(name, _)| name.into()).collect())
    }

    /// Every change in the folder becomes durable, and so do earlier changes in other folders that must come first.
    pub fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let mut dirs = BTreeSet::from([self.find(dir)?]);
        let mut later = Vec::new();
        let mut due = Vec::new();
        for change in self.changes.drain(..).rev() {
            if change.dirs().any(|dir| dirs.contains(&dir)) {
                dirs.extend(change.dirs());
                due.push(change);
            } else {
                later.push(change);
            }
        }
        due.iter().rev().for_each(|change| change.apply(&mut self.durable));
        later.reverse();
        self.changes = later;
        Ok(())
    }

    pub fn is_below(&self, inode: Inode, folder: &Path) -> bool {
        let mut at = inode;
        let folder = self.find(folder).ok();
        while Some(at) != folder {
            match self.names.iter().find(|(_, named)| **named == at) {
                Some(((dir, _), _)) => at = *dir,
                None => return false,
            }
        }
        true
    }

    pub fn image(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut image = BTreeMap::new();
        let mut dirs = vec![(ROOT, PathBuf::from("/"))];
        while let Some((dir, path)) = dirs.pop() {
            for (name, inode) in self.inside(dir) {
                match &self.nodes[&inode] {
                    Node::Dir => dirs.push((inode, path.join(name))),
                    Node::File(data) => drop(image.insert(path.join(name), data.now.clone())),
                }
            }
        }
        image
    }

    /// Drops files that no name leads to. No file is open. A file whose name is only pending stays: a power failure may bring
    /// the name back.
    pub fn collect(&mut self) {
        let pending = self.changes.iter().flat_map(|change| change.0.iter().filter_map(|(_, inode)| *inode));
        let named = self.names.values().chain(self.durable.values()).copied();
        let kept: BTreeSet<Inode> = named.chain(pending).chain([ROOT]).collect();
        self.nodes.retain(|inode, _| kept.contains(inode));
    }
}
