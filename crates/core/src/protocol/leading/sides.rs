//! Available mode: a leader looks for other leaders, knows which nodes are on its own side (P32), and which nodes its writes wait for
//! (P37). Once every disk has had everything, the leader lets the cluster forget what it keeps only for merges (P35).

use super::Leading;
use crate::protocol::core::Core;
use crate::protocol::messages::Message;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::progress::{Progress, Sending};
use crate::types::{Entry, Index, NodeId, Position, Time};

/// The number of records between two settlements while the vector has a single epoch: about this many of the newest records stay
/// unsettled.
const EVERY: Index = 1024;

impl Leading {
    /// Asks every node that is not on this side whether it leads, too, as the seed program does.
    pub(super) fn poll_if_due(&mut self, core: &mut Core) {
        let now = core.mono();
        let Some(vector) = core.vector_to_send().filter(|_| now >= self.next_poll) else {
            return;
        };
        self.next_poll = now + core.settings.timing.poll;
        let outside = self.progress.iter().filter(|(_, progress)| !progress.joined);
        for (node, _) in outside {
            core.send(*node, Message::Poll { term: self.term, vector: vector.clone() });
        }
    }

    /// Notes that a node is on another side. Until now it was counted on this side, or nothing was known of it.
    pub fn note_elsewhere(&mut self, node: NodeId) {
        if let Some(progress) = self.progress.get_mut(&node) {
            progress.leave();
        }
    }

    /// These nodes have approved this leader, or followed it until now: writes wait for them from the beginning (P37).
    pub(super) fn count_on(&mut self, followers: &[NodeId]) {
        let progress = self.progress.iter_mut().filter(|(node, _)| followers.contains(node));
        progress.for_each(|(_, progress)| (progress.joined, progress.kept_up) = (true, true));
    }

    /// The commit index has not moved for too long: writes no longer wait for the nodes that hold it up (P37). Returns whether
    /// other nodes held it up; if not, this node's own disk did.
    pub(super) fn leave_laggards_behind(&mut self, core: &Core) -> bool {
        let (commit, own) = (core.journal.commit(), core.journal.disk().upto());
        if own <= commit {
            return false;
        }
        self.behind_since = Some(core.mono());
        let laggards = self.progress.values_mut().filter(|progress| progress.matched <= commit);
        laggards.for_each(|progress| (progress.joined, progress.kept_up) = (false, false));
        true
    }

    /// The nodes that follow this leader, as far as it knows.
    pub fn joined(&self) -> Vec<NodeId> {
        let joined = self.progress.iter().filter(|(_, progress)| progress.joined);
        joined.map(|(node, _)| *node).collect()
    }

    /// The least value that this node and every follower in step have reached (P37). In available mode it takes the
    /// place of the value that a majority has reached.
    pub(super) fn reached_by_side<T: Ord + Copy>(
        &self,
        core: &Core,
        own: T,
        of: impl Fn(&Progress) -> T,
    ) -> Option<T> {
        let in_step = self.progress.iter().filter(|(node, progress)| self.is_in_step(core, **node, progress));
        in_step.map(|(_, progress)| of(progress)).chain([own]).min()
    }

    /// Whether writes wait for the acknowledgement of this follower.
    fn is_in_step(&self, core: &Core, node: NodeId, progress: &Progress) -> bool {
        let heard = progress.answered_at.max(self.since);
        let patience = core.settings.timing.dead_after;
        let alive = heard + patience > core.mono() && !core.peers.is_refused(node);
        let slow = progress.kept_up && !mutant::is_on(Mutant::SlowIsOutOfStep);
        let in_step = progress.joined && (progress.mode == Sending::Stream || slow) && !progress.full;
        alive && in_step && !mutant::is_on(Mutant::AckAlone)
    }
}

// A cluster forgets its tombstones and rivals once every disk has had everything (P35).
impl Leading {
    /// If every node of the topology is known to hold everything up to a record of this epoch, no other history can have
    /// begun below that record, so the epochs below it no longer need names.
    pub(super) fn settle_histories(&mut self, core: &mut Core) {
        if !self.opened {
            return;
        }
        let Some(upto) = self.to_be_settled(core) else {
            return;
        };
        self.settled = upto.index;
        if !mutant::is_on(Mutant::NeverSettle) {
            let by = self.append(core, Entry::Settled { upto });
            if !mutant::is_on(Mutant::MergeOverSettled) {
                self.merges.accept_states_since(by);
            }
        }
    }

    fn to_be_settled(&self, core: &Core) -> Option<Position> {
        let upto = self.reached_by_everybody(core)?;
        let quiet = !self.merges.are_under_way() && !core.journal.is_full();
        let due = core.log().vector()?.len() > 1 || upto >= self.settled + EVERY;
        if !quiet || !due || upto < self.open_index || upto <= self.settled {
            return None;
        }
        core.log().position(upto).filter(|position| position.epoch == self.term.epoch)
    }

    /// The last index that every node of the topology has on disk, as far as this leader knows. `None` until each node has answered a beat
    /// that was sent after the newest of their processes was first heard: from then on this leader has everything that was on their disks
    /// at that moment (P35).
    fn reached_by_everybody(&self, core: &Core) -> Option<Index> {
        let unasked = mutant::is_on(Mutant::SettleWithoutAll);
        let since = self.new_process_at;
        let followed =
            |progress: &Progress| progress.answered_sent > since || mutant::is_on(Mutant::SettleOverReplaced);
        let asked = self.progress.values().filter(|progress| progress.joined || !unasked);
        let all = asked.clone().all(|progress| progress.joined && followed(progress));
        let matched = asked.map(|progress| progress.matched);
        let least = matched.chain([core.journal.disk().upto(), core.journal.commit()]).min()?;
        all.then_some(least)
    }

    /// Another process runs for a follower, and its disk may have forgotten something: nothing is settled before all nodes have
    /// followed again.
    pub fn note_new_process(&mut self, now: Time, replaced: bool) {
        if replaced || !mutant::is_on(Mutant::SettleOverCopies) {
            self.new_process_at = now;
        }
    }
}
