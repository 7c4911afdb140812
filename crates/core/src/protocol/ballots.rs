//! The digests that a node keeps, and the comparison of all nodes' digests by a leader (P25).
//! A leader's beat names a boundary, each follower answers with its digest there, and `judge` looks for the
//! digest that a majority of the voters reports. The leader's own digest is one among them: otherwise a
//! leader whose state has diverged would send sound nodes away (C33).

use std::collections::BTreeMap;

use super::messages::Checkpoint;
use super::mutant::{self, Mutant};
use crate::types::{Digest, Index, NodeId};

/// The number of boundaries whose digests a node keeps. A node that has dropped the digest that a beat asks for
/// reports none, and does not count in that comparison.
const KEPT: usize = 1024;

/// A beat asks for no boundary that is further back than this. With long beats, the nodes may have dropped the boundary of one
/// beat ago. The other half of what is kept is for followers that are ahead of the beat.
const ASKED_BACK_MOST: usize = KEPT / 2;

/// The number of boundaries that a leader compares at a time. Beyond it the oldest is dropped, even if it was
/// not decided.
const COMPARED: usize = 16;

/// This node's own digests at the newest boundaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checkpoints {
    pub digests: BTreeMap<Index, Digest>,
}

/// The digest of each node's state at the boundaries that the leader asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ballots {
    pub by_index: BTreeMap<Index, BTreeMap<NodeId, Digest>>,
    /// The alarm was raised, and no majority has agreed since. Each beat may ask for a new boundary: an alarm for each
    /// would fill the chronicle, which then forgets everything else.
    pub is_alarmed: bool,
}

pub enum Judgement {
    Pending,
    /// A majority agrees, and these nodes differ from it; often there are none.
    Odd(Vec<NodeId>),
    /// States differ, and no majority can agree, even with the nodes that have not answered yet.
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

    /// The boundary that a beat asks for: that of one beat ago, unless other nodes may have dropped its digest.
    pub fn to_ask(&self, beat_ago: Index) -> Index {
        let back = self.digests.keys().rev().nth(ASKED_BACK_MOST);
        back.filter(|_| !mutant::is_on(Mutant::DroppedDigestAsked))
            .map_or(beat_ago, |back| beat_ago.max(*back))
    }
}

impl Ballots {
    /// Forgets this node's digests: another disk answers in its name.
    pub fn forget(&mut self, node: NodeId) {
        for ballots in self.by_index.values_mut() {
            ballots.remove(&node);
        }
    }

    pub fn add(&mut self, node: NodeId, checkpoint: Checkpoint) {
        self.by_index.entry(checkpoint.index).or_default().insert(node, checkpoint.digest);
        while self.by_index.len() > COMPARED {
            self.by_index.pop_first();
        }
    }

    /// Whether that node has differed from a majority at a boundary that is still compared.
    pub fn is_odd(&self, node: NodeId, quorum: usize) -> bool {
        self.by_index.values().any(|ballots| {
            let winner = winner(ballots, quorum);
            winner.is_some_and(|winner| ballots.get(&node).is_some_and(|theirs| differ(winner, *theirs)))
        })
    }

    /// A node has diverged if it differs from a majority of the voters; this goes for the leader as well.
    pub fn judge(&self, index: Index, quorum: usize, me: NodeId, expected: &[NodeId]) -> Judgement {
        let Some(ballots) = self.by_index.get(&index) else {
            return Judgement::Pending;
        };
        let counts = counts(ballots);
        let most = counts.values().copied().max().unwrap_or(0);
        let expected = expected.iter().filter(|node| !ballots.contains_key(node)).count();
        let winner = match mutant::is_on(Mutant::LeaderIsNeverOdd) {
            true => ballots.get(&me).copied(),
            false => winner(ballots, quorum),
        };
        match winner {
            Some(digest) => {
                let odd = ballots.iter().filter(|(_, theirs)| differ(digest, **theirs));
                Judgement::Odd(odd.map(|(node, _)| *node).collect())
            }
            // Even if all nodes that may still answer report the most frequent digest, it gets no majority.
            None if disagree(&counts) && most + expected < quorum => Judgement::Undecidable,
            None => Judgement::Pending,
        }
    }
}

/// The digest that a majority of the voters reports.
fn winner(ballots: &BTreeMap<NodeId, Digest>, quorum: usize) -> Option<Digest> {
    counts(ballots).into_iter().find(|(_, count)| *count >= quorum).map(|(digest, _)| digest)
}

/// Digests of different computations count separately. So while a cluster is upgraded to a build that computes digests in another
/// way, there may be no majority, and no node counts as diverged (P25).
fn counts(ballots: &BTreeMap<NodeId, Digest>) -> BTreeMap<Digest, usize> {
    let mut counts = BTreeMap::new();
    for digest in ballots.values() {
        *counts.entry(*digest).or_default() += 1;
    }
    counts
}

/// Whether any two of these digests show that their states differ.
fn disagree(counts: &BTreeMap<Digest, usize>) -> bool {
    // The digests are in order: those of one version stand side by side.
    counts.keys().zip(counts.keys().skip(1)).any(|(one, next)| differ(*one, *next))
}

/// A build that computes digests in another way may have the same state (P25).
fn differ(one: Digest, other: Digest) -> bool {
    one.contradicts(other) || (one.value != other.value && mutant::is_on(Mutant::DigestsOfAnyVersion))
}
