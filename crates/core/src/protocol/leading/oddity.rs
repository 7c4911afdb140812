//! A leader notices states that differ although they must not (I5), and finds the node that has diverged (P25). It also notices a disk that
//! ends below what it has acknowledged: an older copy of the disk was put back (P27).

use super::{Exit, Leading};
use crate::protocol::ballots::Judgement;
use crate::protocol::core::Core;
use crate::protocol::messages::{Checkpoint, Event, Message};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Index, NodeId};

// The leader compares the digests of all nodes' states.
impl Leading {
    pub(super) fn compare_digest(
        &mut self,
        core: &mut Core,
        from: NodeId,
        checkpoint: Checkpoint,
    ) -> Option<Exit> {
        // A disk that does not count has no part in a majority: what it reports must not outvote the others
        // (P10).
        if !self.peer_counts(core, from) {
            return None;
        }
        let (quorum, me) = (core.quorum(), core.me());
        let expected = self.answering(core);
        if let Some(own) = core.checkpoints.at(checkpoint.index) {
            self.ballots.add(me, own);
        }
        self.ballots.add(from, checkpoint);
        match self.ballots.judge(checkpoint.index, quorum, me, &expected) {
            Judgement::Pending => None,
            Judgement::Odd(odd) => {
                self.ballots.is_alarmed = false;
                self.send_away(core, odd)
            }
            Judgement::Undecidable => {
                if !std::mem::replace(&mut self.ballots.is_alarmed, true) {
                    core.event(Event::Diverged { index: checkpoint.index });
                }
                None
            }
        }
    }

    /// The nodes that may still report their digest.
    fn answering(&self, core: &Core) -> Vec<NodeId> {
        let (now, fresh) = (core.mono(), core.fresh());
        let lately = self.progress.iter().filter(|(_, progress)| progress.answered_at + fresh >= now);
        lately.map(|(node, _)| *node).collect()
    }

    /// The leader has counted answers to its own beats, and only their receivers know the numbers of these beats. So if the
    /// leader itself has diverged, it has found that out from answers that it asked for, and not from an unasked message (P51).
    fn send_away(&self, core: &mut Core, odd: Vec<NodeId>) -> Option<Exit> {
        let me = core.me();
        let itself = odd.contains(&me);
        for node in odd.into_iter().filter(|node| *node != me) {
            self.report_divergence(core, node, None);
        }
        itself.then_some(Exit::IsOdd)
    }

    fn report_divergence(&self, core: &mut Core, node: NodeId, ask: Option<u64>) {
        if let Some(peer) = core.peers.get(node) {
            let (epoch, incarnation) = (self.term.epoch, peer.incarnation);
            let forgot = self.has_forgotten(core, node);
            core.send(node, Message::Odd { epoch, incarnation, forgot, ask });
        }
    }

    /// Answers that node's question with `Message::Odd` if the node has diverged or forgotten something. Returns whether it did.
    pub fn answers_odd(&self, core: &mut Core, from: NodeId, ask: u64) -> bool {
        let odd = self.ballots.is_odd(from, core.quorum()) || self.has_forgotten(core, from);
        if odd {
            self.report_divergence(core, from, Some(ask));
        }
        odd
    }
}

// The records that each disk has acknowledged.
impl Leading {
    /// Safe mode: that disk has acknowledged that it holds everything up to `matched`, durably. If the message is no answer to a beat, any
    /// process may have sent it, unless peers prove who they are: no node ends because of such a message (P51).
    pub(super) fn note_kept(&mut self, core: &Core, from: NodeId, matched: Index, answers: bool) {
        let believed = (answers || core.settings.peers_prove) && !core.settings.is_available();
        if let Some(progress) = self.progress.get_mut(&from).filter(|_| believed) {
            progress.keeps(matched.min(core.last().index), self.round);
        }
    }

    /// The node's log ends at `end`, by its answer to that round. Returns whether the leader accepts the answer.
    pub(super) fn remembers(&mut self, core: &mut Core, from: NodeId, round: u64, end: Index) -> bool {
        if core.settings.is_available() || mutant::is_on(Mutant::ForgottenOverlooked) {
            return true;
        }
        let kept = self.progress.get(&from).map_or(0, |progress| progress.kept_before(round));
        if end < kept && self.forgetful.insert(core.disk_of(from)) {
            core.event(Event::Forgot { node: from, kept, end });
        }
        let forgot = self.has_forgotten(core, from);
        if forgot {
            self.report_divergence(core, from, None);
        }
        !forgot
    }

    /// Whether the present disk of that node has forgotten records that it acknowledged.
    pub(super) fn has_forgotten(&self, core: &Core, node: NodeId) -> bool {
        self.forgetful.contains(&core.disk_of(node))
    }
}
