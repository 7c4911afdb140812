//! The digests of all nodes' states are compared (P25), and disks that have forgotten what they acknowledged are noticed (P27).

use super::ballots::Judgement;
use super::messages::{Cause, Checkpoint, Event, Fault, Message};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node};
use super::roles::Leading;
use crate::types::{Epoch, Incarnation, Index, NodeId};

// A leader notices states that differ where they must not (I5), and which node has diverged (P25).
impl Node {
    pub(in crate::protocol) fn on_digest(&mut self, checkpoint: Checkpoint) {
        self.checkpoints.add(checkpoint);
        let me = self.me();
        if let Some(leading) = self.leading_mut() {
            leading.ballots.add(me, checkpoint);
        }
    }

    pub(in crate::protocol) fn compare_digest(&mut self, from: NodeId, checkpoint: Checkpoint) {
        if !self.peer_counts(from) {
            return;
        }
        let (quorum, me) = (self.quorum(), self.me());
        let own = self.checkpoints.at(checkpoint.index);
        let expected = self.as_leader().map(Leader::answering).unwrap_or_default();
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

    fn alarm_once(&mut self, index: Index) {
        if let Some(leading) = self.leading_mut()
            && leading.ballots.told.insert(index)
        {
            self.event(Event::Diverged { index });
        }
    }

    fn send_away(&mut self, odd: Vec<NodeId>) {
        for node in odd {
            match node == self.me() {
                true => self.finds_itself_odd(),
                false => self.tell_odd(node, None),
            }
        }
    }

    /// It has counted answers to its own beats, whose numbers nobody else knows: this is no other node's word (P51).
    fn finds_itself_odd(&mut self) {
        self.step_down(Cause::Odd);
        match mutant::is_on(Mutant::OddLeaderGoesOn) {
            true => self.stop_on_word(Fault::Odd),
            false => self.stop(Fault::Odd),
        }
    }

    fn tell_odd(&mut self, node: NodeId, ask: Option<u64>) {
        if let Some(peer) = self.peers.get(node) {
            let (epoch, incarnation, forgot) = (self.promise(), peer.incarnation, self.has_forgotten(node));
            self.send(node, Message::Odd { epoch, incarnation, forgot, ask });
        }
    }

    /// Whether that node's question has been answered so.
    pub(in crate::protocol) fn answers_odd(&mut self, from: NodeId, ask: u64) -> bool {
        let quorum = self.quorum();
        let differs = self.as_leader().is_some_and(|leader| leader.leading.ballots.is_odd(from, quorum));
        let odd = differs || self.has_forgotten(from);
        if odd {
            self.tell_odd(from, Some(ask));
        }
        odd
    }

    /// Where nobody proves who speaks, the leader is asked whether it has said so.
    pub(in crate::protocol) fn on_odd(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        incarnation: Incarnation,
        forgot: bool,
        ask: Option<u64>,
    ) {
        let meant = incarnation == self.incarnation;
        if !meant || epoch != self.promise() || epoch.leader != from {
            return;
        }
        let fault = if forgot { Fault::Forgot } else { Fault::Odd };
        if ask.is_some_and(|ask| self.has_asked_whether_odd(from, ask)) {
            return self.stop(fault);
        }
        self.stop_on_word(fault);
        if !self.stopped && ask.is_none() && !mutant::is_on(Mutant::OddFollowerGoesOn) {
            self.ask_whether_odd(from);
        }
    }
}

impl Leader<'_> {
    /// Who may still say what its state was.
    fn answering(self) -> Vec<NodeId> {
        let (now, fresh) = (self.node.mono(), self.node.fresh());
        let lately = self.leading.progress.iter().filter(|(_, progress)| progress.answered_at + fresh >= now);
        lately.map(|(node, _)| *node).collect()
    }
}

// A leader notices a disk that ends below what it has acknowledged: an older copy of it was put back (P27).
impl Node {
    /// Safe mode: that disk has said that it holds everything up to there, durably. What is no answer to a beat anybody may have sent, unless
    /// peers prove who they are: no node ends because of that (P51).
    pub(in crate::protocol) fn note_kept(&mut self, from: NodeId, matched: Index, answers: bool) {
        let believed = (answers || self.settings.peers_prove) && !self.settings.is_available();
        let last = self.last().index;
        let Some(leading) = self.leading_mut().filter(|_| believed) else {
            return;
        };
        let round = leading.round;
        if let Some(progress) = leading.progress.get_mut(&from) {
            progress.keeps(matched.min(last), round);
        }
    }

    /// Its log ends there, by its answer to that round. Says whether it is listened to.
    pub(in crate::protocol) fn remembers(&mut self, from: NodeId, round: u64, end: Index) -> bool {
        let disk = self.disk_of(from);
        let overlooked = self.settings.is_available() || mutant::is_on(Mutant::ForgottenOverlooked);
        let Some(leading) = self.leading_mut().filter(|_| !overlooked) else {
            return true;
        };
        let kept = leading.progress.get(&from).map_or(0, |progress| progress.kept_before(round));
        if end < kept && leading.forgetful.insert(disk) {
            self.event(Event::Forgot { node: from, kept, end });
        }
        let forgot = self.has_forgotten(from);
        if forgot {
            self.tell_odd(from, None);
        }
        !forgot
    }

    /// Whether this leader has found that the disk which speaks in that node's name has forgotten what it acknowledged.
    pub(in crate::protocol) fn has_forgotten(&self, node: NodeId) -> bool {
        self.leading().is_some_and(|leading| leading.has_forgotten(self.disk_of(node)))
    }
}

impl Leading {
    fn has_forgotten(&self, disk: Incarnation) -> bool {
        self.forgetful.contains(&disk)
    }
}
