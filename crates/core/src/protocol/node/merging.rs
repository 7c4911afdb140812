//! Available mode: two leaders meet, and their sides become one with nothing lost (P34, I12), as in the seed program: the service stops,
//! the elder stays, the younger sends its data, the elder merges it and overrides the state of all nodes.
//!
//! ```text
//!   n1, the elder                                n2, the younger
//!     holds its service  ── meet, has V1 ──►  holds its service, commits what it has
//!                        ◄── merge: all of V2 that V1 lacks ──
//!     claims a new epoch, merges at a new position, above both
//!     ── beat, has V1 ∪ V2 ──►  to all nodes: a node whose log is included joins
//!     ── override: what you lack ──►                  stops leading, is brought up to the merge
//!     lifts the hold when all have it
//! ```
//!
//! Every step derives from vectors. Nodes may die, and messages may be lost, late or repeated: two leaders that hear each other
//! meet again, and data that one of them has already merged is not sent again.

use super::Node;
use crate::protocol::messages::{Cause, Envelope, Event, Impasse, Input, Output, Taking, Term, Write};
use crate::protocol::meta::SnapshotMeta;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::Won;
use crate::types::{Epoch, NodeId, Now, Position, Vector};

impl Node {
    pub(super) fn on_meet(&mut self, from: NodeId, term: Term, has: &Vector) {
        if term.epoch.leader != from || !self.core.impasses.may_try(from, self.core.mono()) {
            return;
        }
        self.send_side(from);
        if let Some((leading, core)) = self.leading_mut() {
            leading.on_meet(core, from, has);
        }
    }

    /// The younger's data has arrived.
    pub(super) fn on_merge(&mut self, from: NodeId, epoch: Epoch, base: &Vector, meta: &SnapshotMeta) {
        self.core.epochs.hear_of(epoch.max(meta.at.epoch));
        if let (Some(leading), Some(theirs)) = (self.leading(), &meta.vector)
            && leading.takes_in(&self.core, from, base, theirs)
        {
            self.merge_sides(from, theirs, meta);
        }
    }

    /// A new epoch begins with the merged state, at a position above every position of either side.
    fn merge_sides(&mut self, with: NodeId, theirs: &Vector, their_meta: &SnapshotMeta) {
        let own = self.core.own_vector();
        self.core.epochs.hear_of(theirs.newest());
        if !self.core.epochs.has_more() {
            return;
        }
        let term = self.core.own_term(self.core.epochs.next_counter());
        let index = match mutant::is_on(Mutant::MergeIndexLow) {
            true => self.core.last().index + 1,
            false => own.highest().max(theirs.highest()) + 1,
        };
        let Some((leading, core)) = self.leading_mut() else {
            return;
        };
        let meta = leading.merged_meta(core, Position::new(term.epoch, index), their_meta);
        leading.leave(core, Cause::Merged);
        core.raise_promise(term);
        core.out.push(Output::Merge { own, theirs: theirs.clone(), meta: meta.clone() });
        core.go_on_from(meta, Write::Rebase);
        core.event(Event::Merged { with, index });
        core.impasses.over(with);
        let leases_until = core.mono();
        self.lead(Won { term, founders: None, leases_until, approved: Vec::new() });
        if let Some((leading, core)) = self.leading_mut() {
            leading.begin_with_merged(core);
        }
    }

    /// The merge with that side has failed (P48).
    pub(super) fn on_impasse(&mut self, other: NodeId, why: Impasse) {
        if let Some((leading, core)) = self.leading_mut() {
            leading.call_off(core, other, why);
        }
    }

    /// Handles the part of a side's state that this log lacks (P33). It is accepted if it includes everything that is here, and if its base
    /// is no more than what is here; a late message fails one of the two.
    pub(super) fn on_override(&mut self, from: NodeId, term: Term, base: &Vector, meta: SnapshotMeta) {
        if meta.at.epoch > term.epoch {
            return;
        }
        let blindly = mutant::is_on(Mutant::OverrideUncovered);
        if !(blindly || self.accept_leader(from, term, meta.vector.as_ref())) || self.core.journal.is_full() {
            return;
        }
        let (index, core) = (meta.index(), &mut self.core);
        if core.log().holds(meta.at) {
            core.commit_to_leaders_index(index);
        } else {
            let fits = core.own_vector().includes(base) && core.is_included_in(meta.vector.as_ref());
            if !(fits || blindly) || index <= core.last().index {
                return;
            }
            // The incoming state includes all of this log.
            core.commit_to_leaders_index(core.last().index);
            core.out.push(Output::Override(meta.clone()));
            core.go_on_from(meta, Write::Rebase);
            core.note_formed();
            core.event(Event::Overridden { index });
            core.impasses.all_over();
            core.answer_committed_by_leader(index);
        }
        self.note_brought_up_to(from, term.epoch, index);
    }

    /// The way in which this node would accept the state of that message, if the message arrived now.
    pub fn would_take(&self, now: Now, envelope: &Envelope) -> Option<Taking> {
        let outputs = self.clone().handle(now, Input::Message(envelope.clone()));
        outputs.into_iter().find_map(|output| match output {
            Output::Merge { own, theirs, meta } => Some(Taking::Merge { own, theirs, meta }),
            Output::Override(meta) => Some(Taking::Override(meta)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Envelope, Message};
    use crate::protocol::{Input, Recovered, Settings, Vote};
    use crate::types::{Boot, ClaimId, ClusterId, Format, Incarnation, Now};

    /// In safe mode there is one history, whatever a peer sends (C25).
    #[test]
    fn safe_mode_takes_nothing_from_sides() {
        let (peer, me) = (NodeId(1), NodeId(2));
        let recovered = Recovered {
            boot: Boot(1),
            incarnation: Incarnation(1),
            vote: Vote::default(),
            base: SnapshotMeta::default(),
            records: Vec::new(),
        };
        let mut node = Node::new(Settings::lan(me, vec![peer, me, NodeId(3)]), recovered, Now::default());
        let term = Term { epoch: Epoch::new(9, peer), claim: ClaimId(5) };
        let meta = SnapshotMeta { at: Position::new(term.epoch, 7), ..SnapshotMeta::default() };
        let vector = Vector::default();
        let messages = [
            Message::Poll { term, vector: vector.clone() },
            Message::Meet { term, vector: vector.clone() },
            Message::Merge { epoch: term.epoch, base: vector.clone(), meta: meta.clone() },
            Message::Override { term, base: vector, meta },
        ];
        let before = node.vote();
        node.handle(Now::default(), Input::Tick);
        for message in messages {
            let (boot, incarnation, format) = (Boot(2), Incarnation(2), Format(1));
            let cluster = ClusterId::NONE;
            let envelope =
                Envelope { from: peer, to: me, boot, incarnation, admitted: true, cluster, format, message };
            assert_eq!(node.handle(Now::default(), Input::Message(envelope)), []);
        }
        assert_eq!((node.vote(), node.last()), (before, Position::ZERO));
    }
}
