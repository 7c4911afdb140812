//! Files in memory. The power of their machine can fail at every operation.
//!
//! ```text
//!  Simulated ── files() ─► Files ─► one start of the program
//!      │                            tree.rs: the files that it sees, and their durable part
//!      ├─ schedule(after, fault)    the operation that fails, or at which the power fails
//!      ├─ hold_syncs(), let_syncs_go()   a disk that does not answer for a time
//!      ├─ kill()                    the process ends; everything that it wrote is still there
//!      └─ cut_power(loss)           the power fails; only a part of the unsynced data is left
//! ```
//!
//! A power failure keeps any sectors of a file's unsynced writes, one of them torn at any byte. It keeps the name changes of a
//! folder up to some change, and a change that concerns two folders happens in both or in neither. A file's data and its name
//! are independent. Journaling file systems keep more than this, but none of them guarantees that to programs. Everything
//! follows from the seed.

mod loss;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::access::Files;
use super::real::{FileSystem, Handle, How, Lock, Look};
use Operation::{Change, Read};
pub use loss::Dice;
use tree::{Inode, Tree};

pub use loss::Loss;

/// The fault at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation begins, and is the last one: `cut_power` decides how far it came.
    Power,
    /// The operation does nothing and returns this error.
    Refuse(io::ErrorKind),
}

/// The kind of operation at which a fault occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read changes nothing: a power failure at a read is the same as one at the change before or after it.
    Read,
    Change,
}

/// A machine's disk. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct Simulated {
    machine: Arc<Mutex<Machine>>,
    syncs: Arc<Syncs>,
}

/// Syncs wait here while they are held. The gate is apart from the machine, so that reads and writes continue while a sync
/// waits.
#[derive(Debug, Default)]
struct Syncs {
    gate: Mutex<Gate>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    is_held: bool,
    waiting: usize,
}

impl Syncs {
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self) {
        let mut gate = self.gate();
        gate.waiting += 1;
        while gate.is_held {
            gate = self.opened.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.waiting -= 1;
    }
}

#[derive(Clone, Debug)]
struct Machine {
    tree: Tree,
    dice: Dice,
    /// The start of the program that may use the disk. Files that an earlier start has open do not work any more. So a killed
    /// process writes nothing after the next one has started.
    start: u64,
    powered: bool,
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    struck: Option<Operation>,
    /// Files below this folder can grow by this much in total.
    room: Option<(PathBuf, u64)>,
    locked: Vec<PathBuf>,
}

impl Simulated {
    /// An empty disk.
    pub fn new(seed: u64) -> Simulated {
        let machine = Machine {
            tree: Tree::default(),
            dice: Dice::new(seed),
            start: 0,
            powered: true,
            operations: 0,
            faults: BTreeMap::new(),
            struck: None,
            room: None,
            locked: Vec::new(),
        };
        Simulated { machine: Arc::new(Mutex::new(machine)), syncs: Arc::default() }
    }

    /// The files for a program that starts now, until it is killed or the power fails.
    pub fn files(&self) -> Files {
        let start = self.machine().start;
        let (machine, syncs) = (Arc::clone(&self.machine), Arc::clone(&self.syncs));
        Files::new(Mounted { machine, syncs, start })
    }

    /// Another disk with the same content, to try another outcome. Open files still belong to this disk.
    pub fn fork(&self, seed: u64) -> Simulated {
        let mut machine = self.machine().clone();
        machine.dice = Dice::new(seed);
        Simulated { machine: Arc::new(Mutex::new(machine)), syncs: Arc::default() }
    }

    /// From now on no sync ends until the syncs are released.
    pub fn hold_syncs(&self) {
        self.syncs.gate().is_held = true;
    }

    pub fn let_syncs_go(&self) {
        self.syncs.gate().is_held = false;
        self.syncs.opened.notify_all();
    }

    /// The number of syncs that have begun and not ended.
    pub fn syncs_waiting(&self) -> usize {
        self.syncs.gate().waiting
    }

    /// The number of operations so far, including reads.
    pub fn operations(&self) -> u64 {
        self.machine().operations
    }

    /// Schedules a fault for the operation that comes after this many others.
    pub fn schedule(&self, after: u64, fault: Fault) {
        let mut machine = self.machine();
        let at = machine.operations + after + 1;
        machine.faults.insert(at, fault);
    }

    /// Cancels the scheduled faults that have not occurred.
    pub fn clear_faults(&self) {
        self.machine().faults.clear();
    }

    /// The operation at which the last scheduled fault occurred, if one has occurred since the start.
    pub fn struck(&self) -> Option<Operation> {
        self.machine().struck
    }

    /// Whether a scheduled power failure has occurred.
    pub fn is_dead(&self) -> bool {
        !self.machine().powered
    }

    /// From now on files below this folder can grow by this many bytes in total. Their existing bytes can be rewritten.
    pub fn limit(&self, folder: &Path, bytes: u64) {
        self.machine().room = Some((folder.to_path_buf(), bytes));
    }

    pub fn lift_limit(&self) {
        self.machine().room = None;
    }

    /// The process ends. Everything that it wrote is there, and no more of it is durable than before.
    pub fn kill(&self) {
        self.machine().end();
    }

    /// The power fails, and comes back. Everything that is left is durable.
    pub fn cut_power(&self, loss: Loss) {
        let mut machine = self.machine();
        machine.end();
        let Machine { tree, dice, .. } = &mut *machine;
        loss::lose(tree, dice, loss);
    }

    /// Every file and its content, in the order of the paths.
    pub fn image(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.machine().tree.image()
    }

    /// Changes a file's bytes unnoticed and durably, as a bad medium does. Returns `None` if there is no such file.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
        let mut machine = self.machine();
        let data = machine.tree.data_at(path).ok()?;
        change(&mut data.now);
        data.sync();
        data.durable.clone_from(&data.now);
        Some(())
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine {
    fn end(&mut self) {
        self.start += 1;
        self.powered = true;
        self.faults.clear();
        self.struck = None;
        self.locked.clear();
        self.tree.collect();
    }

    /// Counts an operation. Returns true if the power fails once the operation has begun.
    fn begin(&mut self, operation: Operation) -> io::Result<bool> {
        self.operations += 1;
        let fault = self.faults.remove(&self.operations);
        self.struck = fault.map(|_| operation).or(self.struck);
        match fault {
            Some(Fault::Refuse(kind)) => Err(kind.into()),
            Some(Fault::Power) => {
                self.powered = false;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Reserves room for a file that grows, and returns how much of it was granted.
    fn grow(&mut self, inode: Inode, by: u64) -> u64 {
        let Some((folder, left)) = &mut self.room else {
            return by;
        };
        if !self.tree.is_below(inode, folder) {
            return by;
        }
        let given = by.min(*left);
        *left -= given;
        given
    }
}

/// The disk as one start of the program sees it.
#[derive(Clone, Debug)]
struct Mounted {
    machine: Arc<Mutex<Machine>>,
    syncs: Arc<Syncs>,
    start: u64,
}

impl Mounted {
    /// Does one operation, if the machine still runs.
    fn run<T>(
        &self,
        kind: Operation,
        operation: impl FnOnce(&mut Machine) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if machine.start != self.start || !machine.powered {
            return Err(no_power());
        }
        let last = machine.begin(kind)?;
        let done = operation(&mut machine);
        if last { Err(no_power()) } else { done }
    }

    /// Does an operation that makes data durable. If the power fails at the operation, nothing becomes durable here. This is
    /// the worst case; `cut_power` may still keep the data by chance.
    fn run_sync(&self, operation: impl FnOnce(&mut Machine) -> io::Result<()>) -> io::Result<()> {
        self.syncs.pass();
        self.run(Change, |machine| if machine.powered { operation(machine) } else { Ok(()) })
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is cut")
}

impl FileSystem for Mounted {
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>> {
        let kind = if matches!(how, How::Read | How::Write) { Read } else { Change };
        let inode = self.run(kind, |machine| machine.tree.open(path, how))?;
        Ok(Box::new(OpenFile { mounted: self.clone(), inode }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.run(Read, |machine| Ok(machine.tree.data_at(path)?.now.clone()))
    }

    fn look(&self, path: &Path) -> io::Result<Look> {
        self.run(Read, |machine| machine.tree.look(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.run(Change, |machine| machine.tree.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.run(Change, |machine| machine.tree.remove(path, false))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.run(Change, |machine| machine.tree.remove(path, true))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.run(Change, |machine| machine.tree.make_dir(path))
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.run(Read, |machine| machine.tree.names(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.run_sync(|machine| machine.tree.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let locked = self.run(Change, |machine| {
            machine.tree.open(path, How::Create)?;
            let free = !machine.locked.iter().any(|locked| locked == path);
            if free {
                machine.locked.push(path.to_path_buf());
            }
            Ok(free)
        })?;
        let held = || Held { mounted: self.clone(), path: path.to_path_buf() };
        Ok(locked.then(|| Box::new(held()) as Box<dyn Lock>))
    }

    fn draw(&self) -> io::Result<u64> {
        self.run(Read, |machine| Ok(machine.dice.roll()))
    }
}

#[derive(Debug)]
struct OpenFile {
    mounted: Mounted,
    inode: Inode,
}

impl Handle for OpenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.mounted.run(Read, |machine| {
            let bytes = &machine.tree.data(self.inode).now;
            let from = bytes.len().min(offset as usize);
            let length = buffer.len().min(bytes.len() - from);
            buffer[..length].copy_from_slice(&bytes[from..from + length]);
            Ok(length)
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.mounted.run(Change, |machine| {
            let length = machine.tree.data(self.inode).now.len() as u64;
            let grows = (offset + bytes.len() as u64).saturating_sub(length);
            let missing = (grows - machine.grow(self.inode, grows)) as usize;
            let fits = bytes.len().saturating_sub(missing);
            machine.tree.data(self.inode).write(offset as usize, &bytes[..fits]);
            if missing > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.mounted.run_sync(|machine| {
            machine.tree.data(self.inode).sync();
            Ok(())
        })
    }

    fn size(&self) -> io::Result<u64> {
        self.mounted.run(Read, |machine| Ok(machine.tree.data(self.inode).now.len() as u64))
    }
}

#[derive(Debug)]
struct Held {
    mounted: Mounted,
    path: PathBuf,
}

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let mut machine = self.mounted.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if machine.start == self.mounted.start {
            machine.locked.retain(|locked| *locked != self.path);
        }
    }
}

#[cfg(test)]
mod tests;
