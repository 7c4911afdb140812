//! A leader notices states that differ where they must not (I5), and which node has diverged (P25).

use crate::protocol::messages::{Cause, Checkpoint, Event, Fault, Message};
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
        let epoch = self.promise();
        for node in odd {
            if node == self.me() {
                self.step_down(Cause::Odd);
                self.stop_on_word(Fault::Odd);
            } else if let Some(peer) = self.peers.get(node) {
                let incarnation = peer.incarnation;
                self.send(node, Message::Odd { epoch, incarnation });
            }
        }
    }

    pub(in crate::protocol) fn on_odd(&mut self, from: NodeId, epoch: Epoch, incarnation: Incarnation) {
        let meant = incarnation == self.incarnation;
        if meant && epoch == self.promise() && epoch.leader == from {
            self.stop_on_word(Fault::Odd);
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
