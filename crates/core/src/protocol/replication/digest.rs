//! A leader notices states that differ where they must not (I5), and which node has diverged (P25).

use crate::protocol::messages::{Cause, Checkpoint, Event, Fault, Message};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Judgement, Leader, Node};
use crate::types::{Epoch, Incarnation, Index, NodeId};

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

    pub(in crate::protocol) fn tell_odd(&mut self, node: NodeId, ask: Option<u64>) {
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
