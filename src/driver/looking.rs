//! What only looks at a node: its state, its numbers, what it has seen and what it expects.

use super::api::{Ask, Handle, Opinion, Status};
use super::clock;
use super::engine::Engine;
use super::explained::{ContenderShown, Explained, HeirShown};
use super::measures::Measures;
use crate::protocol::{Fitness, succession};
use crate::types::{NodeId, Text};

impl Handle {
    /// Would this node approve that one now? Nothing changes.
    pub async fn opinion(&self, candidate: NodeId) -> Option<Opinion> {
        self.tell(|reply| Ask::Opinion { candidate, reply }).await
    }

    /// None only when the loop has ended.
    pub async fn status(&self) -> Option<Status> {
        self.tell(Ask::Status).await
    }

    /// None only when the loop has ended.
    pub async fn explain(&self) -> Option<Explained> {
        self.tell(Ask::Explain).await
    }

    pub async fn turns(&self, role: Text) -> Vec<String> {
        self.tell(|reply| Ask::Turns { role, reply }).await.unwrap_or_default()
    }

    /// None only when the loop has ended.
    pub async fn measures(&self) -> Option<Measures> {
        self.tell(Ask::Measures).await
    }
}

impl Engine {
    pub(super) fn explain(&mut self) -> Explained {
        let entries = self.chronicle.entries();
        let core = self.replica.core();
        let contenders = core.contenders(clock::now().mono);
        let needed = if self.setup.settings.is_available() { 1 } else { core.quorum() };
        let others: Vec<NodeId> = self.setup.others().iter().map(|member| member.id).collect();
        let number = |node: NodeId| node.0;
        let heirs = match core.leader() == Some(self.me()) {
            true => succession(self.me(), &contenders, needed),
            false => Vec::new(),
        };
        Explained {
            node: self.me().0,
            leader: core.leader().map(number),
            epoch: core.vote().promise.epoch.to_string(),
            heir: core.heir().map(number),
            advice: self.advice(),
            needed,
            reaches: others.iter().filter(|id| self.network.is_reachable(**id)).map(|id| id.0).collect(),
            contenders: contenders.into_iter().map(|one| shown(one.node, one.fitness)).collect(),
            succession: heirs
                .into_iter()
                .map(|heir| HeirShown {
                    dead: heir.dead.into_iter().map(number).collect(),
                    next: heir.next.map(number),
                    votes: heir.votes,
                })
                .collect(),
            entries,
        }
    }
}

fn shown(node: NodeId, fitness: Fitness) -> ContenderShown {
    let (word, lag) = match fitness {
        Fitness::Ready => ("ready", None),
        Fitness::Behind { lag } => ("behind", Some(lag)),
        Fitness::Held => ("held", None),
        Fitness::Full => ("disk_full", None),
        Fitness::NoVote => ("no_vote", None),
        Fitness::Silent => ("silent", None),
    };
    ContenderShown { node: node.0, fitness: word.to_string(), lag }
}
