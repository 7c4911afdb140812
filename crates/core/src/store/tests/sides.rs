//! Nodes that are separate sides: they meet and follow each other as the protocol allows, with the records and vectors that the
//! protocol would give them.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::store::tables::Version;
use crate::types::Vector;

/// One node in available mode.
#[derive(Clone, Debug)]
pub struct Side {
    pub id: u32,
    pub store: Store,
    pub vector: Vector,
    pub now: Stamp,
    /// Updated from the changes alone, as a chain of small snapshots is.
    pub mirror: BTreeMap<Key, String>,
}

/// One record's write to a key, and the vector that its writer knew.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Key,
    pub held: Version,
    pub known: Vector,
}

impl Side {
    pub fn new(id: u32) -> Side {
        let (store, now) = (Store::mergeable(), Bench::new().now);
        let mirror = store.entries().collect();
        Side { id, store, vector: Vector::default(), now, mirror }
    }

    /// The same state on another node.
    pub fn fork(&self, id: u32) -> Side {
        Side { id, ..self.clone() }
    }

    /// Nodes of one history, in epoch 1.1.
    pub fn group(ids: &[u32], begin: impl FnOnce(&mut Side)) -> Vec<Side> {
        let mut first = Side::new(ids[0]);
        begin(&mut first);
        ids.iter().map(|id| first.fork(*id)).collect()
    }

    fn leads(&self) -> bool {
        let last = self.store.applied();
        last.epoch.leader == NodeId(self.id) && self.vector.newest() == last.epoch
    }

    /// Applies the next record of this node, in an epoch that this node leads.
    pub fn apply(&mut self, entry: Entry) -> (Applied, Vec<Write>) {
        if !self.leads() {
            let epoch = self.next_epoch(&Vector::default());
            self.record(epoch, Entry::Lead { founding: None });
        }
        self.record(self.store.applied().epoch, entry)
    }

    fn next_epoch(&self, other: &Vector) -> Epoch {
        let newest = self.vector.newest().max(other.newest()).counter;
        Epoch::new(newest + 1, NodeId(self.id))
    }

    fn record(&mut self, epoch: Epoch, entry: Entry) -> (Applied, Vec<Write>) {
        let position = Position::new(epoch, self.store.applied().index + 1);
        let known = self.vector.clone();
        let applied = self.store.apply(&Record { position, stamp: self.now, entry }).expect("readable");
        self.vector.note(position);
        self.reflect(&applied.changes);
        // A batch may change a key twice; the last change is the record's write.
        let changed: BTreeSet<&Key> = applied.changes.iter().collect();
        let data =
            changed.into_iter().filter(|key| matches!(key.table(), "doc" | "user" | "election" | "vote"));
        let held = |key: &Key| self.store.current(key).filter(|held| held.at == position);
        let write = |key: &Key| Some(Write { key: key.clone(), held: held(key)?, known: known.clone() });
        let writes = data.filter_map(write).collect();
        (applied, writes)
    }

    pub fn run(&mut self, storage_cmd: &str, payload: &str) -> Result<String, String> {
        let payload = command(storage_cmd, payload).to_payload(None);
        told(self.apply(Entry::Client(payload)).0)
    }

    pub fn put(&mut self, key: &str, value: &str) {
        self.run("PutDoc", &format!(r#"{{"key":"{key}","value":{value}}}"#)).expect("put");
    }

    pub fn delete(&mut self, key: &str) {
        self.run("DeleteDoc", &format!(r#"{{"key":"{key}"}}"#)).expect("deleted");
    }

    pub fn settle(&mut self, upto: Position) {
        self.apply(Entry::Settled { upto });
        self.vector.settle(upto);
    }

    pub fn doc(&self, key: &str) -> Option<String> {
        self.store.doc(key).map(|doc| doc.value.to_string())
    }

    pub fn reflect(&mut self, changes: &[Key]) {
        for key in changes {
            match self.store.entry(key) {
                Some(value) => self.mirror.insert(key.clone(), value),
                None => self.mirror.remove(key),
            };
        }
    }

    /// The difference that `other` lacks, through its text form.
    pub fn difference_to(&self, other: &Vector) -> Difference {
        let data = self.store.difference(other).unwrap_or_else(|| self.store.whole());
        let read = Difference::from_text(&data.to_text()).expect("our own text");
        assert_eq!(read, data);
        read
    }

    /// The position of a merge of the two on this node.
    pub fn meeting(&self, other: &Side) -> Position {
        let highest = self.vector.highest().max(other.vector.highest());
        Position::new(self.next_epoch(&other.vector), highest + 1)
    }

    /// Merges the other's entries. Returns the number of conflicts.
    pub fn merge(&mut self, other: &Side) -> usize {
        let at = self.meeting(other);
        let data = other.difference_to(&self.vector);
        let merged = self.store.merged(&self.vector, &data, &other.vector, at, self.now).expect("sound");
        self.store = merged.store;
        self.vector.join(&other.vector);
        self.vector.note(at);
        self.reflect(&merged.changes);
        merged.conflicts
    }

    /// Takes over the leader's state.
    pub fn follow(&mut self, leader: &Side) {
        assert!(leader.vector.includes(&self.vector));
        let data = leader.difference_to(&self.vector);
        let (at, stamp) = (leader.store.applied(), leader.store.stamp());
        let (store, changes) = self.store.overridden(&data, at, stamp).expect("sound");
        (self.store, self.vector) = (store, leader.vector.clone());
        self.reflect(&changes);
        assert_eq!(self.store, leader.store);
        assert_eq!(self.store.digest(), leader.store.digest());
    }

    /// Invariants of every state.
    pub fn check(&self) {
        assert!(self.store.entries().eq(self.mirror.clone()), "the changes do not tell all");
        self.store.check_sound();
        let mut loader = Loader::mergeable(self.vector.clone());
        for (key, value) in self.store.entries() {
            assert_eq!(self.store.entry(&key).as_ref(), Some(&value));
            loader.add(key.table(), &key.name(), &value).expect("an entry of ours");
        }
        assert_eq!(loader.finish(self.store.applied(), self.store.stamp()), self.store);
        for election in self.store.elections("", None, PAGE_MOST).items {
            assert_eq!(election.votes(), election.tally().map(|(_, count)| count).sum::<u64>());
        }
    }

    /// The entries that must not depend on the order of meetings: all but the journal.
    pub fn data(&self) -> Vec<(Key, String)> {
        let of_journal = |key: &Key| match key {
            Key::Conflict(_) => true,
            Key::Rival(id) => id.starts_with("conflict:"),
            Key::Tombstone(key) => matches!(**key, Key::Conflict(_)),
            _ => false,
        };
        self.store.entries().filter(|(key, _)| !of_journal(key)).collect()
    }
}

/// Two nodes meet: the elder merges, and the younger follows.
pub fn meet(sides: &mut [Side], one: usize, other: usize) -> usize {
    let (elder, younger) = if sides[one].id < sides[other].id { (one, other) } else { (other, one) };
    let theirs = sides[younger].clone();
    let conflicts = sides[elder].merge(&theirs);
    let leader = sides[elder].clone();
    sides[younger].follow(&leader);
    conflicts
}
