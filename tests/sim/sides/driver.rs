//! The driver's part of a node in available mode. What travels beside a message is the sender's whole state, which
//! costs a few pointers; the receiver takes from it what the message's `base` does not include, by way of its text.

use std::collections::{BTreeSet, VecDeque};

use eldest::protocol::{Checkpoint, Input, Message, Seq, SnapshotMeta, Term};
use eldest::store::{Difference, Key};
use eldest::types::{NodeId, Position, Record, Vector};

use super::Side;
use crate::calls::BOUNDARY;
use crate::checks::history::Change;
use crate::checks::{Check, Violation, ensure, forward, merged, vectors};
use crate::store::Store;
use crate::world::World;

const COVERED: &str = "C18 nothing is replaced by what does not include it";

impl World {
    pub fn is_available(&self) -> bool {
        self.hosts.iter().any(|host| host.settings.is_available())
    }

    pub fn side(&self, node: usize) -> &Side {
        self.hosts[node].store.side.as_deref().expect("a node in available mode")
    }

    pub fn apply_to_side(&mut self, node: usize, record: &Record, inputs: &mut VecDeque<Input>) -> Check {
        let (id, at) = (self.hosts[node].id, record.position);
        let before = self.side(node).clone();
        let mut side = before.clone();
        let applied = side.store.apply(record).map_err(|error| Violation {
            checker: "validation",
            what: format!("{id} cannot read {record}: {error:?}"),
        })?;
        self.note_dropped(&before, &side, &applied.changes);
        let changes = changes(&side, &applied.changes);
        self.checks.history.applied(id, at, &before.known, changes)?;
        side.known.add(self.checks.history.number(at).unwrap_or_default());
        let digest = side.store.digest();
        self.checks.positions.reached(id, at, digest)?;
        self.hosts[node].store = Store::of(side, record.stamp);
        if at.index.is_multiple_of(BOUNDARY) {
            self.snapshot(node, at.index);
            inputs.push_back(Input::Digest(Checkpoint { index: at.index, digest }));
        }
        Ok(())
    }

    /// An operator has seen a conflict: what it told of may go.
    fn note_dropped(&mut self, before: &Side, after: &Side, changes: &[Key]) {
        let gone = |key: &&Key| key.table() == "conflict" && after.store.entry(key).is_none();
        if changes.iter().any(|key| gone(&key)) {
            let there = merged::journaled(after);
            let dropped = merged::journaled(before).into_iter().filter(|at| !there.contains(at));
            self.checks.history.dropped.extend(dropped);
        }
    }

    pub fn send_merge(&mut self, node: usize, to: NodeId, base: Vector, after: Seq) -> Check {
        let host = &self.hosts[node];
        let Some(core) = &host.core else {
            return Ok(());
        };
        let meta = core.log().meta_at(host.store.applied);
        let epoch = core.vote().promise.epoch;
        let envelope = core.envelope(to, Message::Merge { epoch, base, meta });
        let state = host.store.clone();
        self.send(node, envelope, Some(state), after)
    }

    pub fn send_override(&mut self, node: usize, to: NodeId, term: Term, base: Vector, after: Seq) -> Check {
        let host = &self.hosts[node];
        let Some(core) = &host.core else {
            return Ok(());
        };
        if self.side(node).store.difference(&base).is_none() {
            return self.send_snapshot(node, to, term, after);
        }
        let meta = core.log().meta_at(host.store.applied);
        let envelope = core.envelope(to, Message::Override { term, base, meta });
        let state = host.store.clone();
        self.send(node, envelope, Some(state), after)
    }

    /// What came with the message that is being carried out: the sender's side, and the part of it that was sent.
    fn sent(&mut self, node: usize) -> Result<(Side, Difference), Violation> {
        let host = &mut self.hosts[node];
        let id = host.id;
        let lacking = || Violation { checker: "P34 data comes with its message", what: format!("{id}") };
        let side = host.incoming.take().and_then(|state| state.side).ok_or_else(lacking)?;
        let part = side.store.difference(&host.left_out).unwrap_or_else(|| side.store.whole());
        Ok((*side, reread(&part)?))
    }

    /// The elder takes the younger's data in.
    pub fn merge(&mut self, node: usize, own: &Vector, theirs: &Vector, meta: &SnapshotMeta) -> Check {
        let (sent, part) = self.sent(node)?;
        let mine = self.side(node).clone();
        let merged = mine.store.merged(own, &part, theirs, meta.at, meta.stamp).map_err(unreadable)?;
        let mut side = Side { store: merged.store, known: mine.known, lost: mine.lost };
        side.known.join(&sent.known);
        side.lost.extend(sent.lost);
        let losers = merged::losers(&self.checks.history, &side);
        side.lost.extend(losers);
        self.rebase(node, side, meta)
    }

    /// A follower is brought up to a state that includes its own.
    pub fn take_override(&mut self, node: usize, meta: &SnapshotMeta) -> Check {
        let (sent, part) = self.sent(node)?;
        self.includes(node, &sent)?;
        let (store, _) = self.side(node).store.overridden(&part, meta.at, meta.stamp).map_err(unreadable)?;
        let id = self.hosts[node].id;
        ensure(store.digest() == sent.store.digest(), "I5 same position, same state", || {
            format!("{id} is overridden at {}: {}", meta.at, difference_of(&store, &sent.store))
        })?;
        let side = Side { store, ..sent };
        self.rebase(node, side, meta)
    }

    /// A whole snapshot replaces the state.
    pub fn replaces(&mut self, node: usize, state: &Store) -> Check {
        match &state.side {
            Some(side) => self.includes(node, side),
            None => Ok(()),
        }
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

    /// State and log begin anew, above everything that either side has.
    fn rebase(&mut self, node: usize, side: Side, meta: &SnapshotMeta) -> Check {
        let host = &mut self.hosts[node];
        let (id, before) = (host.id, host.store.applied);
        host.store = Store::of(side, meta.stamp);
        host.snapshot = Some((meta.clone(), host.store.clone()));
        forward::state(id, before, meta.at.index)?;
        self.looks_right(node, meta)
    }

    /// A merge, or what it brought here, is on disk: before that nobody else can have learned of it, and a process that
    /// dies may make another of the same position.
    pub fn reached(&mut self, node: usize, meta: &SnapshotMeta, state: &Store) -> Check {
        let id = self.hosts[node].id;
        match &state.side {
            Some(side) => self.checks.positions.reached(id, meta.at, side.store.digest()),
            None => Ok(()),
        }
    }

    /// Holds a state against what really happened.
    pub fn looks_right(&mut self, node: usize, meta: &SnapshotMeta) -> Check {
        let id = self.hosts[node].id;
        let side = self.hosts[node].store.side.as_deref().expect("a node in available mode");
        ensure(side.store.applied() == meta.at, "P26 a state stands where it says", || {
            format!("{id}: state at {}, meta at {}", side.store.applied(), meta.at)
        })?;
        let vector = meta.vector.clone().unwrap_or_default();
        vectors::truthful(&self.checks.history, id, &side.known, &vector)?;
        merged::state(&self.checks.history, id, side, &vector)
    }

    /// Power is cut, and the disk comes back empty. What no other disk holds is gone with it.
    pub fn wipe(&mut self, node: usize) {
        let incarnation = eldest::types::Incarnation(self.rng.next() | 1);
        self.crash(node, true);
        self.hosts[node].disk.wipe(incarnation);
        let disks = self.hosts.iter().map(|host| &host.disk.durable);
        let held: Vec<(Option<&Side>, BTreeSet<Position>)> = disks
            .map(|disk| (disk.store.side.as_deref(), disk.records.iter().map(|r| r.position).collect()))
            .collect();
        self.checks.history.lost_unless(|number, at| {
            held.iter()
                .any(|(side, log)| log.contains(&at) || side.is_some_and(|side| side.known.holds(number)))
        });
    }
}

/// What a record wrote, under which keys, of the data that clients see.
fn changes(side: &Side, keys: &[Key]) -> Vec<Change> {
    let data = |key: &&Key| matches!(key, Key::Doc(_) | Key::Election(_) | Key::User(_) | Key::Vote(_));
    let keys: BTreeSet<&Key> = keys.iter().filter(data).collect();
    keys.into_iter().map(|key| Change { key: key.clone(), entry: side.store.entry(key) }).collect()
}

/// As it arrives: written by one node, read by another.
fn reread(part: &Difference) -> Result<Difference, Violation> {
    Difference::from_text(&part.to_text()).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Debug) -> Violation {
    Violation { checker: "validation", what: format!("what a node sent cannot be taken in: {error:?}") }
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
