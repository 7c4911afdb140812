//! An onlooker's view of a node in available mode: what its state includes, and what becomes of it when sides
//! meet.

use std::collections::BTreeSet;

use eldest::protocol::SnapshotMeta;
use eldest::replica::{Preparation, SnapshotOrder};
use eldest::store::Key;
use eldest::types::{Position, Record};
use eldest_storage::Boundary;

use super::Side;
use crate::checks::history::{Change, Known};
use crate::checks::{Check, Violation, ensure, forward, merged, vectors};
use crate::state::Transfer;
use crate::world::{Event, World};

const COVERED: &str = "C18 nothing is replaced by what does not include it";

impl World {
    pub fn is_available(&self) -> bool {
        self.hosts.iter().any(|host| host.settings.is_available())
    }

    pub fn side(&self, node: usize) -> &Side {
        &self.hosts[node].state
    }

    pub fn apply_to_side(&mut self, node: usize, record: &Record) -> Check {
        let (id, at) = (self.hosts[node].id, record.position);
        let before = self.side(node).clone();
        let applied = self.hosts[node].apply(record)?;
        let after = self.side(node).clone();
        self.side_grants(at, &applied)?;
        self.note_dropped(&before, &after, &applied.changes);
        let changes = changes(&after, &applied.changes);
        self.checks.history.applied(id, at, &before.known, changes)?;
        let number = self.checks.history.number(at).unwrap_or_default();
        self.hosts[node].state.known.add(number);
        self.checks.positions.reached(id, at, after.store.digest())
    }

    /// An operator has seen a conflict: the values in it may go.
    fn note_dropped(&mut self, before: &Side, after: &Side, changes: &[Key]) {
        let gone = |key: &&Key| key.table() == "conflict" && after.store.entry(key).is_none();
        if changes.iter().any(|key| gone(&key)) {
            let there = merged::journaled(after);
            let dropped = merged::journaled(before).into_iter().filter(|at| !there.contains(at));
            self.checks.history.dropped.extend(dropped);
        }
    }

    /// Works out the result of a state from another node, while other things go on.
    pub fn prepare(&mut self, node: usize, preparation: Preparation) -> Check {
        let host = &mut self.hosts[node];
        ensure(!host.prepares, "P49 one at a time", || format!("{} is given another", host.id))?;
        host.prepares = true;
        let (life, from, (least, most)) = (host.life, host.incoming.take(), host.prepare_us);
        let delay = self.rng.skewed(least, most);
        let prepared = Box::new(preparation.run());
        self.after(delay, Event::Prepared { node, life, prepared, from });
        Ok(())
    }

    /// The state has changed by a merge or an override. Returns what it must be now.
    pub fn rebases(&mut self, node: usize, order: &SnapshotOrder) -> Result<Side, Violation> {
        let id = self.hosts[node].id;
        let lacking = || Violation { checker: "P34 data comes with its message", what: format!("{id}") };
        let Transfer { state: sent, boundary: Boundary { meta, .. }, .. } =
            self.hosts[node].prepared_from.take().ok_or_else(lacking)?;
        let store = order.store.clone();
        let side = if meta.at == order.meta.at {
            self.includes(node, &sent)?;
            ensure(store.digest() == sent.store.digest(), "I5 same position, same state", || {
                format!("{id} is overridden at {}: {}", meta.at, difference_of(&store, &sent.store))
            })?;
            Side { store, ..sent }
        } else {
            self.joined(node, Side { store, ..sent })
        };
        forward::state(id, self.hosts[node].applied(), order.meta.index())?;
        self.looks_right(node, &side, &order.meta)?;
        Ok(side)
    }

    /// The joint knowledge of two sides.
    fn joined(&self, node: usize, sent: Side) -> Side {
        let mut side = sent;
        let mine = self.side(node);
        side.known.join(&mine.known);
        side.lost.extend(mine.lost.iter().copied());
        let losers = merged::losers(&self.checks.history, &side);
        side.lost.extend(losers);
        side
    }

    /// A whole snapshot replaces the state.
    pub fn installs(&mut self, node: usize, state: &Side) -> Check {
        let host = &self.hosts[node];
        let (at, before) = (state.store.applied().index, host.applied());
        ensure(at >= before, "I7 applied once", || format!("{} goes back to {at} from {before}", host.id))?;
        if self.is_available() { self.includes(node, state) } else { Ok(()) }
    }

    /// Whether another state includes all that this node has applied or written.
    fn includes(&self, node: usize, other: &Side) -> Check {
        let host = &self.hosts[node];
        let missing = self.side(node).known.beyond(&other.known);
        let facts = &self.checks.history.facts;
        let missing: Vec<Position> = missing.into_iter().map(|number| facts[number].at).collect();
        ensure(missing.is_empty(), COVERED, || format!("{} loses {missing:?}", host.id))?;
        let known = |at: &Position| self.checks.history.number(*at).is_some_and(|n| other.known.holds(n));
        let missing: Vec<Position> = host.disk.positions().filter(|at| !known(at)).collect();
        ensure(missing.is_empty(), COVERED, || format!("{} loses from its log {missing:?}", host.id))
    }

    /// A merge, or the state that a merge brought here, is on disk. Before that no other node can have
    /// learned of it, and a process that dies may make another merge at the same position.
    pub fn reached(&mut self, node: usize, meta: &SnapshotMeta, state: &Side) -> Check {
        if !self.is_available() {
            return Ok(());
        }
        let id = self.hosts[node].id;
        self.checks.positions.reached(id, meta.at, state.store.digest())
    }

    /// Checks a state against what really happened.
    pub fn looks_right(&self, node: usize, side: &Side, meta: &SnapshotMeta) -> Check {
        let id = self.hosts[node].id;
        ensure(side.store.applied() == meta.at, "P26 a state stands where it says", || {
            format!("{id}: state at {}, meta at {}", side.store.applied(), meta.at)
        })?;
        let vector = meta.vector.clone().unwrap_or_default();
        vectors::truthful(&self.checks.history, id, &side.known, &vector)?;
        merged::state(&self.checks.history, id, side, &vector)
    }

    /// Power is cut, and the disk comes back empty. Records that no other disk holds are gone with it.
    pub fn wipe(&mut self, node: usize) {
        let seed = self.rng.next();
        self.crash(node, true);
        self.hosts[node].disk.wipe(seed);
        let disks = self.hosts.iter().map(|host| &host.disk.durable);
        let held: Vec<(&Known, BTreeSet<Position>)> = disks
            .map(|disk| (&disk.snapshot.state.known, disk.records.iter().map(|r| r.position).collect()))
            .collect();
        self.checks.history.lost_unless(|number, at| {
            held.iter().any(|(known, log)| log.contains(&at) || known.holds(number))
        });
    }
}

/// The changes that a record made, by key, to the data that clients see.
fn changes(side: &Side, keys: &[Key]) -> Vec<Change> {
    let data = |key: &&Key| key.is_data() || matches!(key, Key::Access(_));
    let keys: BTreeSet<&Key> = keys.iter().filter(data).collect();
    keys.into_iter().map(|key| Change { key: key.clone(), entry: side.store.entry(key) }).collect()
}

/// The first entries in which two states differ, for people.
fn difference_of(one: &eldest::store::Store, other: &eldest::store::Store) -> String {
    let (one, other): (Vec<_>, Vec<_>) = (one.entries().collect(), other.entries().collect());
    let only = |these: &[(Key, String)], those: &[(Key, String)]| {
        let only = these.iter().filter(|entry| !those.contains(entry)).take(3);
        only.map(|entry| format!("{entry:?}")).collect::<Vec<_>>()
    };
    format!("only here {:?}, only there {:?}", only(&one, &other), only(&other, &one))
}
