//! A node decides which leader it follows, and what it accepts from that leader (P2, P5).

use super::{Node, RoleState};
use crate::protocol::following::Following;
use crate::protocol::log::may_follow;
use crate::protocol::messages::{Beat, Cause, Event, Message, Term};
use crate::protocol::meta::{Records, SnapshotMeta};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Epoch, Index, NodeId, Position, Vector};

impl Node {
    /// Whether to accept the node that speaks as the leader of `term` (P2). Raises the promise if need be.
    /// The steps have an order. In available mode a node that does not join must not promise anything to that
    /// leader (P32). A lost claim is learned before claims are compared, or this disk would refuse the
    /// rightful leader of its epoch (P27). The promise rises before the caller takes records or grants a
    /// lease: the write of the promise is first in line, and records above the promise never stand on the
    /// disk (C1, I11).
    pub(super) fn accept_leader(&mut self, from: NodeId, term: Term, has: Option<&Vector>) -> bool {
        if from != term.epoch.leader || !self.joins(from, term, has) {
            return false;
        }
        let write = self.core.journal.learn_claim(term);
        self.core.out.extend(write);
        let promise = self.core.journal.promise();
        let below =
            term.epoch < promise.epoch || (term.epoch == promise.epoch && term.claim != promise.claim);
        if below && !mutant::is_on(Mutant::AcceptBelowPromise) {
            self.core.send(from, Message::Stale { promise });
            return false;
        }
        // The leader has ended this epoch and its lease. A late message of that leader must not bring them
        // back (P16, P18).
        if self.core.epochs.is_over(term.epoch) {
            return false;
        }
        if term.epoch > promise.epoch && !mutant::is_on(Mutant::AppendKeepsPromise) {
            self.core.raise_promise(term);
        }
        self.listen_to(term.epoch);
        true
    }

    fn listen_to(&mut self, epoch: Epoch) {
        let now = self.core.mono();
        match &mut self.role {
            RoleState::Following(following) if following.epoch() == epoch => {
                if following.hear(now) {
                    self.core.event(Event::Following { epoch });
                }
            }
            _ => {
                self.leave_leading(Cause::GreaterEpoch);
                self.role = RoleState::Following(Following::new(epoch, now));
                self.core.event(Event::Following { epoch });
            }
        }
    }

    pub(super) fn on_beat(&mut self, from: NodeId, beat: &Beat) {
        if self.accept_leader(from, beat.term, beat.vector.as_ref())
            && let Some((following, core)) = self.following_mut()
        {
            following.answer_beat(core, beat);
        }
    }

    pub(super) fn on_append(
        &mut self,
        from: NodeId,
        term: Term,
        prev: Position,
        records: &Records,
        commit: Index,
    ) {
        // No leader sends such records. They are dropped before they can raise the promise (P50).
        if !may_follow(prev, records, term.epoch) {
            return;
        }
        // A leader that has a record right after the last record of this log has all of this log.
        let has = (prev == self.core.last()).then(|| self.core.own_vector());
        if !self.accept_leader(from, term, has.as_ref()) {
            return;
        }
        if let Some((following, core)) = self.following_mut() {
            following.take(core, prev, records, commit);
        }
    }

    /// Handles a whole state, sent by the leader or for a claim.
    pub(super) fn on_snapshot(&mut self, from: NodeId, term: Term, meta: SnapshotMeta) {
        if meta.at.epoch > term.epoch {
            return;
        }
        // A candidate may be sent a whole state for its pull. That sender does not lead, so it is not
        // accepted as a leader.
        let pulled = self.claiming_mut(term).is_some();
        if !pulled && !self.accept_leader(from, term, meta.vector.as_ref()) {
            return;
        }
        if self.core.journal.is_full() || !self.core.is_included_in(meta.vector.as_ref()) {
            return;
        }
        let index = meta.index();
        self.core.take_snapshot(meta);
        match self.claiming_mut(term) {
            Some((claim, core)) => claim.pull_on(core, from),
            None => self.note_brought_up_to(from, term.epoch, index),
        }
    }

    /// This log now holds everything up to `index`, as the leader's log does. In safe mode this is so even if
    /// a snapshot was ignored: it ended at or below the commit index here, and what is committed is the same
    /// everywhere. The acknowledgement waits until the state is on disk.
    pub(super) fn note_brought_up_to(&mut self, leader: NodeId, epoch: Epoch, index: Index) {
        if let Some((following, _)) = self.following_mut() {
            following.matches(index);
        }
        self.core.send_acknowledgement(leader, Message::Appended { epoch, matched: index });
    }
}
