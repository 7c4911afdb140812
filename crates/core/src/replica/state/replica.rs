//! The replica itself: what it holds, and how it answers and ends.

use std::collections::VecDeque;

use super::pending::Pending;
use super::restoring::Restoring;
use super::roles::Roles;
use super::round::Round;
use super::snapshots::SnapshotPlan;
use super::taking_in::{Rebase, TakingIn};
use super::versions::Versions;
use crate::protocol::{Input, Node, Recovered, Roster, Settings};
use crate::replica::answer::{Answer, Denied};
use crate::replica::feed::FeedEvent;
use crate::replica::io::{Brought, CallId, End, Out, Prepared};
use crate::store::Store;
use crate::types::{Index, NodeId, Now, Time};

/// What a node begins with: its settings, and what it found on its disk.
#[derive(Clone, Debug)]
pub struct Start {
    pub settings: Settings,
    /// Records from one snapshot to the next.
    pub snapshot_every: u64,
    pub recovered: Recovered,
    /// The newest snapshot: its state, its index, and from where snapshots are numbered.
    pub store: Store,
    pub snapshot_index: Index,
    pub origin: Index,
}

impl Start {
    /// Where the log ends.
    pub fn last_index(&self) -> Index {
        self.recovered.records.last().map_or(self.snapshot_index, |record| record.position.index)
    }

    /// Who belongs to the cluster, and whose disks count, by the whole log.
    pub fn roster(&self) -> Roster {
        let mut roster = self.recovered.base.roster.clone();
        for record in &self.recovered.records {
            roster.absorb(record);
        }
        roster
    }
}

/// One node, but for its clock, its disk and its network.
#[derive(Clone, Debug)]
pub struct Replica {
    pub(in crate::replica) core: Node,
    pub(in crate::replica) now: Now,
    pub(in crate::replica) versions: Versions,
    pub(in crate::replica) round: Round,
    pub(in crate::replica) pending: Pending,
    pub(in crate::replica) roles: Roles,
    /// One document at a time.
    pub(in crate::replica) restoring: Option<Restoring>,
    pub(in crate::replica) snapshots: SnapshotPlan,
    /// The state that came with the message being handled.
    pub(in crate::replica) brought: Option<Brought>,
    /// A state that has come and is not taken in yet.
    pub(in crate::replica) taking_in: Option<TakingIn>,
    /// What the message being handled comes to, if it is taken in.
    pub(in crate::replica) prepared: Option<Prepared>,
    /// What the state has just become by a merge or an override; the disk is yet to be told.
    pub(in crate::replica) rebase: Option<Rebase>,
    /// A merge that readers of the feed are told of once the disk has this node's promise.
    pub(in crate::replica) untold: Option<FeedEvent>,
    /// Whether an election that the feed was told of is still under way.
    pub(in crate::replica) electing: bool,
    /// What the protocol is to be told next.
    pub(in crate::replica) inputs: VecDeque<Input>,
    pub(in crate::replica) out: Vec<Out>,
    /// When this node last heard its leader, or led.
    pub(in crate::replica) led_at: Time,
    pub(in crate::replica) ended: Option<End>,
}

impl Replica {
    pub fn new(start: Start, now: Now) -> Replica {
        let Start { settings, snapshot_every, recovered, store, snapshot_index, origin } = start;
        let core = Node::new(settings, recovered, now);
        // What a history includes is for the core to say, also where it has only just begun to.
        let meta = core.log().meta_at(snapshot_index);
        Replica {
            core,
            now,
            versions: Versions::new(store.clone(), meta, origin, snapshot_every),
            round: Round::default(),
            pending: Pending::default(),
            roles: Roles::default(),
            restoring: None,
            snapshots: SnapshotPlan::new(snapshot_index, store),
            brought: None,
            taking_in: None,
            prepared: None,
            rebase: None,
            untold: None,
            electing: false,
            inputs: VecDeque::new(),
            out: Vec::new(),
            led_at: now.mono,
            ended: None,
        }
    }

    pub(in crate::replica) fn answer(&mut self, call: CallId, answer: Result<Answer, Denied>) {
        self.roles.answered(call);
        self.out.push(Out::Answer(call, answer));
    }

    pub(in crate::replica) fn deny(&mut self, call: CallId, denied: Denied) {
        self.answer(call, Err(denied));
    }

    /// Everybody is told, and then it is over. Of what has reached the log nobody knows: it may yet be applied.
    pub(in crate::replica) fn end(&mut self, why: End) {
        if self.has_ended() {
            return;
        }
        self.ended = Some(why);
        // Of a restore whose last step has not been proposed, nothing comes.
        if let Some(restoring) = self.restoring.take() {
            let denied = if restoring.is_in_doubt() { Denied::Unknown } else { Denied::Stopping };
            self.deny(restoring.call, denied);
        }
        for waiting in self.pending.drain().collect::<Vec<_>>() {
            if let Some(call) = waiting.call() {
                let denied = if waiting.changes_nothing() { Denied::Stopping } else { Denied::Unknown };
                self.deny(call, denied);
            }
        }
        for call in self.roles.drain_calls() {
            self.deny(call, Denied::Stopping);
        }
    }

    pub(in crate::replica) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub fn me(&self) -> NodeId {
        self.core.settings().me
    }

    /// The protocol's core, to look at.
    pub fn core(&self) -> &Node {
        &self.core
    }

    /// The committed state.
    pub fn committed(&self) -> &Store {
        self.versions.committed()
    }

    /// The index of the newest override.
    pub fn origin(&self) -> Index {
        self.versions.origin()
    }

    /// The newest boundary that has a finished snapshot.
    pub fn snapshot_id(&self) -> u64 {
        self.versions.snapshot_id(self.snapshots.newest())
    }

    /// A bit flips in memory: for the tests that prove that it is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.versions.damage();
    }
}
