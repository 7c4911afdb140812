//! Nodes ask each other whether they would be elected (the dry run, P4), whether they still belong to the cluster (P43), and whether their
//! state is correct (P25). An answer that carries the number of this node's own question is believed (P51).

use super::{Node, RoleState};
use crate::protocol::messages::{Event, Fault, Message, Objection, Standing};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::Assent;
use crate::types::{Epoch, Incarnation, Index, NodeId, Position, Span};

impl Node {
    /// Answers the question of another node. If that node's state has diverged, or its disk has forgotten
    /// something, a leader says so instead of giving an opinion (P25, P27).
    pub(super) fn on_willing(&mut self, from: NodeId, ask: u64, standing: Standing) {
        self.core.epochs.hear_of(standing.seen);
        if let Some((leading, core)) = self.leading_mut()
            && leading.answers_odd(core, from, ask)
        {
            return;
        }
        let one_history = self.core.is_of_one_history(standing.vector.as_ref());
        let objection = match self.objection_to(from, standing.condition) {
            None => (!one_history).then_some(Objection::OtherHistory),
            objection => objection,
        };
        if let Some(why) = objection {
            self.core.event(Event::Declined { candidate: from, why });
        }
        let opinion = Message::Opinion {
            ask,
            yes: objection.is_none(),
            held: self.core.peers.is_on_hold(from, self.core.mono()),
            standing: self.standing(),
        };
        self.core.send(from, opinion);
        // A stranger has named its address itself: no number of a question or of a beat is sent there (P51).
        let told = self.core.is_member(from) || mutant::is_on(Mutant::StrangersAreAsked);
        match &mut self.role {
            RoleState::Seeking(seeking) => {
                let seeking_for = standing.seeking;
                // A question proves only that messages arrive from there. It is no answer, so it does not
                // count for the dry run (P4).
                seeking.note(from, standing, None);
                if told {
                    seeking.repeat_question(&mut self.core, from, seeking_for);
                }
            }
            RoleState::Leading(leading) if told => leading.beat_to(&mut self.core, from),
            RoleState::Leading(_) | RoleState::Following(_) => {}
        }
    }

    pub(super) fn on_opinion(&mut self, from: NodeId, ask: u64, assent: Assent, standing: Standing) {
        self.core.epochs.hear_of(standing.seen);
        if let Some((seeking, core)) = self.seeking_mut() {
            let answered = seeking.has_asked(core, from, ask).then_some((core.mono(), assent));
            seeking.note(from, standing, answered);
        }
    }

    /// A node that has never been a member waits. The message ends this node, so it counts only as the answer to a question of this node:
    /// a node that was not asked does not know the question's number (P51).
    pub(super) fn on_not_member(&mut self, from: NodeId, ask: u64, as_of: Index, theirs: Position) {
        let Some((seeking, core)) = self.seeking_mut() else {
            return;
        };
        let belonged = !core.is_blank() && core.log().roster().members().is_some();
        let never_belonged = core.is_blank() && core.log().roster().members().is_none();
        let asked = seeking.has_asked(core, from, ask) || mutant::is_on(Mutant::TurnedAwayUnasked);
        // A node whose log ends below this one may not know that this node was added again (P43).
        if belonged && asked && theirs >= core.last() {
            seeking.on_removal(core.mono(), as_of);
        }
        if never_belonged && asked && !mutant::is_on(Mutant::OutsiderWaits) {
            seeking.on_no_member(core.mono());
        }
    }

    pub(super) fn settle_removed(&mut self) {
        if let Some((seeking, core)) = self.seeking_mut()
            && let Some(as_of) = seeking.is_removed(core)
        {
            core.stop(Fault::Removed { as_of });
        }
    }

    /// If peers do not prove who they are, this node asks the leader whether the message is its own. The question is out of turn,
    /// under a number that no round of questions has.
    pub(super) fn on_odd(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        incarnation: Incarnation,
        forgot: bool,
        ask: Option<u64>,
    ) {
        // The message is about one disk, and from the leader of the promised epoch. A late one may be about
        // the disk before this one, or from a leader that this node no longer follows.
        let meant = incarnation == self.core.incarnation;
        if !meant || epoch != self.core.promise() || epoch.leader != from {
            return;
        }
        let fault = if forgot { Fault::Forgot } else { Fault::Odd };
        if ask.is_some_and(|ask| ask == self.core.settings.numbers_from(from)) {
            return self.core.stop(fault);
        }
        self.core.stop_if_proven(fault);
        if !self.core.stopped && ask.is_none() && !mutant::is_on(Mutant::OddFollowerGoesOn) {
            let question = self.core.question(from, 0, self.standing());
            self.core.send(from, question);
        }
    }

    pub(super) fn standing(&self) -> Standing {
        match &self.role {
            RoleState::Seeking(seeking) => seeking.standing(&self.core),
            _ => self.core.standing(Default::default(), Span::ZERO, self.core.condition(false)),
        }
    }
}
