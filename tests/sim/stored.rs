//! The work of a process with its disk, as the driver does it: writes and snapshots under way, the writer's
//! reports, and the making of room.

use std::collections::VecDeque;

use eldest::protocol::Seq;
use eldest::replica::{DiskWrite, In, SnapshotOrder};
use eldest::types::Position;
use eldest_storage::snapshot::SnapshotError;
use eldest_storage::{MARK_AFTER, ROOM_RETRY};

use crate::checks::{Check, durable, ensure, forward};
use crate::disk::{Change, Mounted, Snapshot};
use crate::state::{State, Transfer};
use crate::world::{Event, World};

/// A task that a node's disk does next, without an order.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// The round under way ends.
    Sync,
    MakeRoom,
    /// No write has come for a while: the log marks how far it is durable.
    Mark {
        stepped: u64,
    },
    /// The snapshot under way is written down.
    Snapshot,
    /// A merge takes its place in the chain.
    Merge,
}

impl World {
    fn mounted(&mut self, node: usize) -> Option<&mut Mounted> {
        self.hosts[node].disk.mounted.as_mut()
    }

    pub fn write(&mut self, node: usize, seq: Seq, write: DiskWrite) -> Check {
        let change = match &write {
            DiskWrite::Vote(vote) => Change::Vote(*vote),
            DiskWrite::Append(records) => {
                let full = self.hosts[node].full;
                ensure(!full || records.is_empty(), "P24 a full disk takes no records", || {
                    format!("n{} appends up to {:?}", node + 1, records.last())
                })?;
                let written = records.iter().map(|record| (record.position, record.clone()));
                self.hosts[node].written.extend(written);
                self.witness_appended(node, &write);
                Change::Append(records.clone())
            }
            DiskWrite::Truncate { above } => Change::Truncate { above: *above },
            DiskWrite::Trim { upto } => Change::Trim { upto: *upto },
            DiskWrite::Install => {
                let Some(Transfer { state, boundary, .. }) = self.hosts[node].incoming.take() else {
                    return ensure(false, "P26 a snapshot comes with a state", || format!("n{}", node + 1));
                };
                self.installs(node, &state)?;
                self.hosts[node].replaced = true;
                self.replaced(node, Snapshot { meta: boundary.meta, state })
            }
            DiskWrite::Rebase(order, _) => {
                let state = self.rebases(node, order)?;
                self.replaced(node, Snapshot { meta: order.meta.clone(), state })
            }
        };
        self.hosts[node].disk.durable.push(seq, change);
        let Some(mounted) = self.mounted(node) else {
            return Ok(());
        };
        let Some(job) = mounted.encoder.job(write) else {
            return ensure(false, "P26 a snapshot comes with its files", || format!("n{}", node + 1));
        };
        mounted.push(seq, job);
        Ok(())
    }

    fn replaced(&mut self, node: usize, snapshot: Snapshot) -> Change {
        self.hosts[node].state = snapshot.state.clone();
        Change::Replace(snapshot.into())
    }

    pub fn take_snapshot(&mut self, node: usize, order: SnapshotOrder, inputs: &mut VecDeque<In>) {
        let state = self.known_at(node, order.meta.at, &order);
        let Some(mounted) = self.mounted(node) else {
            return;
        };
        match mounted.encoder.boundary(&order.meta, order.origin) {
            Some(boundary) => {
                let meta = order.meta.clone();
                mounted.begin_snapshot(boundary, order);
                self.hosts[node].disk.durable.begin_snapshot(Snapshot { meta, state });
                let delay = self.disk_delay(node);
                self.disk_task(node, delay, Task::Snapshot);
            }
            None => inputs.push_back(In::SnapshotEnded(None)),
        }
    }

    /// An onlooker's knowledge of a state that this node had a moment ago.
    fn known_at(&self, node: usize, at: Position, order: &SnapshotOrder) -> State {
        let host = &self.hosts[node];
        let known = self.checks.history.knew_after(at).unwrap_or_else(|| host.state.known.clone());
        State { store: host.as_written(&order.store), known, lost: host.state.lost.clone() }
    }

    fn disk_delay(&mut self, node: usize) -> u64 {
        let host = &self.hosts[node];
        let spread = if host.steady { 1 } else { host.sync_us };
        host.sync_us + self.rng.below(spread)
    }

    fn disk_task(&mut self, node: usize, delay: u64, task: Task) {
        let life = self.hosts[node].life;
        self.after(delay, Event::Disk { node, life, task });
    }

    pub fn start_sync(&mut self, node: usize) {
        if self.mounted(node).is_some_and(Mounted::start_sync) {
            let delay = self.disk_delay(node);
            self.disk_task(node, delay, Task::Sync);
        }
    }

    /// The disk of a process that lives does something.
    pub fn disk_does(&mut self, node: usize, task: Task) -> Check {
        let life = self.hosts[node].life;
        if let Task::Snapshot = task {
            self.write_snapshot(node)?;
        } else if let Some(mounted) = self.mounted(node) {
            match task {
                Task::Sync => mounted.finish_sync(),
                Task::MakeRoom => mounted.make_room(),
                Task::Mark { stepped } => mounted.mark(stepped),
                _ => mounted.merge(),
            }
        }
        if self.hosts[node].life == life {
            self.disk_reports(node)?;
        }
        Ok(())
    }

    fn write_snapshot(&mut self, node: usize) -> Check {
        let Some(taken) = self.hosts[node].disk.write_snapshot() else {
            return Ok(());
        };
        match taken {
            Ok(index) => {
                self.hosts[node].disk.durable.end_snapshot(true);
                self.feed(node, In::SnapshotEnded(Some(index)))
            }
            Err(error) if matches!(error, SnapshotError::Io { .. }) && !error.is_full() => {
                self.disk_fails(node, &error.to_string())
            }
            Err(_) => {
                self.hosts[node].disk.durable.end_snapshot(false);
                self.feed(node, In::SnapshotEnded(None))
            }
        }
    }

    /// Takes the writer's report: everything up to here is safe, or the disk is full, or has failed.
    fn disk_reports(&mut self, node: usize) -> Check {
        let life = self.hosts[node].life;
        let Some(heard) = self.mounted(node).map(|mounted| mounted.heard.clone()) else {
            return Ok(());
        };
        if let Some(error) = &heard.failed {
            return self.disk_fails(node, &error.to_string());
        }
        self.look_after_disk(node)?;
        if self.hosts[node].life == life && heard.full != self.hosts[node].full {
            self.hosts[node].full = heard.full;
            self.feed(node, In::DiskFull(heard.full))?;
        }
        if self.hosts[node].life == life && heard.durable > self.hosts[node].done {
            self.is_durable(node, heard.durable)?;
        }
        let host = &mut self.hosts[node];
        if host.life == life && heard.promised > host.promised.max(host.done) {
            host.promised = heard.promised;
            host.disk.durable.promised(heard.promised);
            self.release_held(node)?;
            self.feed(node, In::Promised(heard.promised))?;
        }
        if self.hosts[node].life == life {
            self.start_sync(node);
        }
        Ok(())
    }

    fn is_durable(&mut self, node: usize, upto: Seq) -> Check {
        let reached = self.hosts[node].disk.durable.last();
        let states = self.hosts[node].disk.durable.reached(upto);
        if self.is_available() {
            let host = &self.hosts[node];
            forward::disk(host.id, reached, host.disk.durable.last())?;
        }
        durable::stored(&self.hosts[node].disk.durable)?;
        for Snapshot { meta, state } in states {
            self.reached(node, &meta, &state)?;
        }
        self.hosts[node].done = upto;
        self.release_held(node)?;
        self.feed(node, In::Durable(upto))
    }

    /// Gives the threads of the disk their next tasks.
    pub fn look_after_disk(&mut self, node: usize) -> Check {
        let (sync, steady) = (self.hosts[node].sync_us, self.hosts[node].steady);
        let Some(mounted) = self.mounted(node) else {
            return Ok(());
        };
        let mut tasks = Vec::new();
        if mounted.wants_room() {
            mounted.asked = true;
            let waits = mounted.heard.full;
            tasks.push((if waits { ROOM_RETRY.as_micros() as u64 } else { sync }, Task::MakeRoom));
        }
        if mounted.is_unmarked() && !mounted.watched && !steady {
            mounted.watched = true;
            let stepped = mounted.stepped;
            tasks.push((MARK_AFTER.as_micros() as u64, Task::Mark { stepped }));
        }
        if mounted.begin_merge() {
            tasks.push((sync, Task::Merge));
        }
        for (delay, task) in tasks {
            self.disk_task(node, delay, task);
        }
        self.meet_power_failure(node)
    }

    /// The power may have gone in the middle of anything that was done to files.
    pub fn meet_power_failure(&mut self, node: usize) -> Check {
        if self.hosts[node].disk.lost_power() { self.disk_fails(node, "the power is cut") } else { Ok(()) }
    }

    /// The program ends when its disk refuses, and is started again.
    fn disk_fails(&mut self, node: usize, why: &str) -> Check {
        let host = &self.hosts[node];
        let (id, power, caused) = (host.id, host.disk.lost_power(), host.disk.was_struck());
        self.note(|| format!("{id} ends: {why}"));
        self.crash(node, power);
        self.comes_back(node);
        ensure(caused, "no node stops without a cause", || format!("{id} ends: {why}"))
    }

    fn comes_back(&mut self, node: usize) {
        let back = self.rng.skewed(1_000, 1_000_000);
        self.after(back, Event::Restart { node });
    }

    /// The disk refuses the first step of every process.
    pub fn does_not_start(&mut self, node: usize, why: &str) -> Check {
        let host = &mut self.hosts[node];
        let (id, power) = (host.id, host.disk.lost_power());
        let caused = host.disk.was_struck() || !host.disk.has_room();
        host.disk.die(power);
        self.note(|| format!("{id} does not start: {why}"));
        self.comes_back(node);
        ensure(caused, "no node stops without a cause", || format!("{id} does not start: {why}"))
    }
}
