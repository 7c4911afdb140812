//! The succession: which node would lead if the leader died now, and which after that, by the rules of turns (P4, P58). It is shown to
//! people.

use crate::types::NodeId;

/// A node, and the leader's view of its fitness to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    pub node: NodeId,
    pub fitness: Fitness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    Ready,
    /// The node lacks `lag` records: it comes after the nodes that are ready.
    Behind {
        lag: u64,
    },
    /// The node has died more than once lately, and comes after the others for a while (P20).
    Held,
    /// The node's disk is full: it votes, but does not lead (P24).
    Full,
    /// The node's disk does not count, or the node is a learner (P10, P43).
    NoVote,
    /// The node does not answer.
    Silent,
}

impl Fitness {
    fn votes(self) -> bool {
        !matches!(self, Fitness::NoVote | Fitness::Silent)
    }

    fn may_lead(self) -> bool {
        self.votes() && self != Fitness::Full
    }
}

/// The next leader after the nodes in `dead` have died, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heir {
    pub dead: Vec<NodeId>,
    /// `None` if no node can lead.
    pub next: Option<NodeId>,
    /// The number of votes that are left.
    pub votes: usize,
}

/// The leader dies, then its heir, and so on, until no node can be elected: that is the last step. `quorum` votes are needed.
pub fn succession(leader: NodeId, contenders: &[Contender], quorum: usize) -> Vec<Heir> {
    let mut living: Vec<Contender> = contenders.to_vec();
    let mut dead = Vec::new();
    let mut steps = Vec::new();
    let mut dies = Some(leader);
    while let Some(node) = dies {
        dead.push(node);
        living.retain(|contender| contender.node != node);
        let votes = living.iter().filter(|contender| contender.fitness.votes()).count();
        let candidates = living.iter().filter(|contender| contender.fitness.may_lead());
        let first = candidates.min_by_key(|contender| (contender.fitness != Fitness::Ready, contender.node));
        dies = first.filter(|_| votes >= quorum).map(|contender| contender.node);
        steps.push(Heir { dead: dead.clone(), next: dies, votes });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contenders(fitness: &[Fitness]) -> Vec<Contender> {
        let ids = (1..).map(NodeId);
        ids.zip(fitness).map(|(node, fitness)| Contender { node, fitness: *fitness }).collect()
    }

    fn heirs(leader: u32, fitness: &[Fitness], quorum: usize) -> Vec<Option<u32>> {
        let steps = succession(NodeId(leader), &contenders(fitness), quorum);
        steps.into_iter().map(|step| step.next.map(|node| node.0)).collect()
    }

    #[test]
    fn the_lowest_that_is_ready_is_next_until_votes_are_too_few() {
        use Fitness::{Full, Held, NoVote, Ready, Silent};
        assert_eq!(heirs(1, &[Ready; 5], 3), [Some(2), Some(3), None]);
        assert_eq!(heirs(2, &[Ready; 3], 2), [Some(1), None]);
        assert_eq!(heirs(1, &[Ready, Held, Ready], 2), [Some(3), None]);
        assert_eq!(heirs(1, &[Ready, Fitness::Behind { lag: 9_000 }, Ready], 2), [Some(3), None]);
        assert_eq!(heirs(1, &[Ready, Held, Held], 2), [Some(2), None]);
        assert_eq!(heirs(1, &[Ready, Full, Ready], 2), [Some(3), None], "it votes for the other one");
        assert_eq!(heirs(1, &[Ready, Full, Full], 2), [None]);
        assert_eq!(heirs(1, &[Ready, Silent, Ready], 2), [None]);
        assert_eq!(heirs(1, &[Ready, NoVote, Ready], 2), [None]);
        assert_eq!(
            heirs(1, &[Ready; 3], 1),
            [Some(2), Some(3), None],
            "no majority is needed in available mode"
        );
        assert_eq!(heirs(1, &[Ready], 1), [None]);
    }

    #[test]
    fn each_step_says_who_has_died_and_what_votes_are_left() {
        let steps = succession(NodeId(1), &contenders(&[Fitness::Ready; 3]), 2);
        assert_eq!(steps[0], Heir { dead: vec![NodeId(1)], next: Some(NodeId(2)), votes: 2 });
        assert_eq!(steps[1], Heir { dead: vec![NodeId(1), NodeId(2)], next: None, votes: 1 });
        assert_eq!(steps.len(), 2);
    }
}
