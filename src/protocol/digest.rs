//! Noticing that states differ where they must not (I5), and which one is odd (P25).

use std::collections::{BTreeMap, BTreeSet};

use super::io::{Cause, Event, Fault};
use super::message::{Checkpoint, Message};
use super::mutant::{self, Mutant};
use super::node::Node;
use crate::types::{Epoch, Incarnation, Index, NodeId};

/// Boundaries whose digests a node keeps: enough for a beat's worth of boundaries at full speed.
const KEPT: usize = 1024;
/// Boundaries that a leader compares at a time.
const COMPARED: usize = 16;

/// This node's own digests at the newest boundaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Checkpoints {
    digests: BTreeMap<Index, u64>,
}

/// What each node's state was at the boundaries that the leader asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ballots {
    by_index: BTreeMap<Index, BTreeMap<NodeId, u64>>,
    told: BTreeSet<Index>,
}

enum Judgement {
    Pending,
    Odd(Vec<NodeId>),
    /// States differ, and even with those that have yet to speak no majority can agree.
    Undecidable,
}

impl Checkpoints {
    pub fn add(&mut self, checkpoint: Checkpoint) {
        self.digests.insert(checkpoint.index, checkpoint.digest);
        while self.digests.len() > KEPT {
            self.digests.pop_first();
        }
    }

    pub fn at(&self, index: Index) -> Option<Checkpoint> {
        let digest = *self.digests.get(&index)?;
        Some(Checkpoint { index, digest })
    }

    pub fn newest(&self) -> Index {
        self.digests.last_key_value().map_or(0, |(index, _)| *index)
    }
}

impl Ballots {
    /// Another disk answers in this node's name.
    pub fn forget(&mut self, node: NodeId) {
        for ballots in self.by_index.values_mut() {
            ballots.remove(&node);
        }
    }

    fn add(&mut self, node: NodeId, checkpoint: Checkpoint) {
        self.by_index.entry(checkpoint.index).or_default().insert(node, checkpoint.digest);
        while self.by_index.len() > COMPARED {
            self.by_index.pop_first();
        }
    }

    /// Odd is whoever differs from a majority of the topology, the leader not excepted.
    fn judge(&self, index: Index, quorum: usize, me: NodeId, expected: &[NodeId]) -> Judgement {
        let Some(ballots) = self.by_index.get(&index) else {
            return Judgement::Pending;
        };
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for digest in ballots.values() {
            *counts.entry(*digest).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        let expected = expected.iter().filter(|node| !ballots.contains_key(node)).count();
        let winner = match mutant::is_on(Mutant::LeaderIsNeverOdd) {
            true => ballots.get(&me).copied(),
            false => counts.iter().find(|(_, count)| **count >= quorum).map(|(digest, _)| *digest),
        };
        match winner {
            Some(digest) => {
                let odd = ballots.iter().filter(|(_, theirs)| **theirs != digest);
                Judgement::Odd(odd.map(|(node, _)| *node).collect())
            }
            None if counts.len() > 1 && most + expected < quorum => Judgement::Undecidable,
            None => Judgement::Pending,
        }
    }
}

impl Node {
    pub(super) fn on_digest(&mut self, checkpoint: Checkpoint) {
        self.checkpoints.add(checkpoint);
        let me = self.me();
        if let Some(leading) = self.leading_mut() {
            leading.ballots.add(me, checkpoint);
        }
    }

    pub(super) fn compare_digest(&mut self, from: NodeId, checkpoint: Checkpoint) {
        if !self.peer_counts(from) {
            return;
        }
        let (quorum, me) = (self.settings.quorum(), self.me());
        let own = self.checkpoints.at(checkpoint.index);
        let expected = self.answering();
        let Some(leading) = self.leading_mut() else {
            return;
        };
        if let Some(own) = own {
            leading.ballots.add(me, own);
        }
        leading.ballots.add(from, checkpoint);
        match leading.ballots.judge(checkpoint.index, quorum, me, &expected) {
            Judgement::Pending => {}
            Judgement::Odd(odd) => self.send_away(odd),
            Judgement::Undecidable => self.alarm_once(checkpoint.index),
        }
    }

    /// Who may still say what its state was.
    fn answering(&self) -> Vec<NodeId> {
        let (now, fresh) = (self.mono(), self.fresh());
        let progress = self.leading().into_iter().flat_map(|leading| &leading.progress);
        let lately = progress.filter(|(_, progress)| progress.answered_at + fresh >= now);
        lately.map(|(node, _)| *node).collect()
    }

    fn alarm_once(&mut self, index: Index) {
        if let Some(leading) = self.leading_mut()
            && leading.ballots.told.insert(index)
        {
            self.event(Event::Diverged { index });
        }
    }

    fn send_away(&mut self, odd: Vec<NodeId>) {
        let epoch = self.promise();
        for node in odd {
            if node == self.me() {
                self.step_down(Cause::Odd);
                self.stop(Fault::Odd);
            } else if let Some(peer) = self.peers.get(node) {
                let incarnation = peer.incarnation;
                self.send(node, Message::Odd { epoch, incarnation });
            }
        }
    }

    pub(super) fn on_odd(&mut self, from: NodeId, epoch: Epoch, incarnation: Incarnation) {
        let meant = incarnation == self.incarnation;
        if meant && epoch == self.promise() && epoch.leader == from {
            self.stop(Fault::Odd);
        }
    }
}
