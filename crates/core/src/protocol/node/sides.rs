//! Available mode: which nodes belong to which side (P32). A side is one leader and the nodes that follow its epoch. A node joins a side
//! only if the leader's log includes the node's whole log. So no record is ever cut, whichever sides meet, and late or repeated messages do
//! no harm.

use super::{Node, RoleState};
use crate::protocol::messages::{Message, Term};
use crate::types::{Epoch, NodeId, Vector};

impl Node {
    /// Whether this node belongs to the side of `term`'s leader, or changes over to it (P32). There are no sides in safe mode.
    pub(super) fn joins(&mut self, leader: NodeId, term: Term, has: Option<&Vector>) -> bool {
        if !self.core.settings.is_available() || self.follows(term) {
            return true;
        }
        let included = self.core.is_included_in(has);
        if let Some((seeking, _)) = self.seeking_mut()
            && has.is_some()
            && !included
        {
            seeking.stand_apart();
        }
        let joins = included && self.would_change_over(leader);
        if !joins {
            self.send_side(leader);
        }
        joins
    }

    /// A node that has approved a claim does not follow yet: the candidate may have opened its epoch without records that are here.
    fn follows(&self, term: Term) -> bool {
        let following = self.following().filter(|following| !following.is_awaiting());
        following.is_some_and(|following| following.epoch() == term.epoch)
            && self.core.journal.promise() == term
    }

    /// A node goes from a younger leader to an elder one, never back: so two sides do not exchange their nodes.
    fn would_change_over(&self, leader: NodeId) -> bool {
        let me = self.core.me();
        match &self.role {
            RoleState::Seeking(seeking) => seeking.claim().is_none() || leader < me,
            RoleState::Following(following) => following.is_awaiting() || leader <= following.leader(),
            RoleState::Leading(_) => leader < me,
        }
    }

    /// A leader that knows that a merge with that side has failed does not answer it. So the other leader also stops
    /// holding its service for the merge (P48).
    pub(super) fn send_side(&mut self, to: NodeId) {
        let leads = self.leading().is_some();
        let core = &self.core;
        if leads && !core.impasses.may_try(to, core.mono()) {
            return;
        }
        let leader = if leads { Some(core.me()) } else { self.followed() };
        let side = Message::Side { epoch: core.promise(), leader, vector: core.own_vector() };
        self.core.send(to, side);
    }

    pub(super) fn on_poll(&mut self, from: NodeId, term: Term) {
        if term.epoch.leader == from && !self.follows(term) {
            self.send_side(from);
        }
    }

    /// A node is on another side, although this leader counted it as its own or looked for it.
    pub(super) fn on_side(&mut self, from: NodeId, epoch: Epoch, leader: Option<NodeId>, vector: &Vector) {
        self.core.epochs.hear_of(epoch);
        let Some((leading, core)) = self.leading_mut() else {
            return;
        };
        if leader == Some(core.me()) && epoch == leading.term().epoch {
            // That node follows this leader: it has answered a message of an earlier epoch.
            return;
        }
        leading.note_elsewhere(from);
        if leader == Some(from) {
            leading.meet_if_elder(core, from, vector);
        }
    }
}
