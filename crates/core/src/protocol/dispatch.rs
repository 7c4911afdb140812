//! The one entrance: an input is dispatched to its rule, then everything that is due is settled.

use super::messages::{Envelope, Input, Message, Output};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node, RoleState};
use super::roles::{Assent, Yielded};
use crate::types::{INDEX_MOST, NodeId, Now, Time};

impl Node {
    /// Takes in one input and says what to do about it.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        if self.stopped {
            return Vec::new();
        }
        if self.has_slept(now.mono) && !mutant::is_on(Mutant::SleepIsSilence) {
            self.woke_at = now.mono;
        }
        // A monotonic clock does not go back; if one does, time stands still until it has caught up.
        self.now = Now { mono: now.mono.max(self.now.mono), wall: now.wall };
        self.dispatch(input);
        if !self.stopped {
            self.settle();
        }
        if cfg!(debug_assertions) {
            self.validate();
        }
        std::mem::take(&mut self.out)
    }

    /// It is called more than a beat after it asked to be: its machine stood still, or gave it no time.
    fn has_slept(&self, now: Time) -> bool {
        let beat = self.settings.timing.heartbeat;
        now.since(self.now.mono) > beat && now.since(self.deadline()) > beat
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick => {}
            Input::Message(envelope) => self.on_message(envelope),
            Input::Durable(seq) => self.journal.done(seq),
            Input::Promised(seq) => self.journal.promised(seq),
            Input::PeerRefused(peer) => self.on_peer_refused(peer),
            Input::Propose(entries) => self.on_propose(entries),
            Input::Read { request, at_least } => self.on_read(request, at_least),
            Input::HandOver { request, to } => self.on_hand_over(request, to),
            Input::Service { request, change } => self.on_service(request, change),
            Input::ChangeMembers { request, change } => self.on_change_members(request, &change),
            Input::Form { without } => self.forming_without = Some(without),
            Input::SnapshotTaken(index) => self.on_snapshot_taken(index),
            Input::Digest(checkpoint) => self.on_digest(checkpoint),
            Input::DiskFull(full) => self.journal.set_full(full),
            Input::MergeFails { other, why } => self.call_off(other, why),
        }
    }

    fn on_message(&mut self, envelope: Envelope) {
        let (from, incarnation) = (envelope.from, envelope.incarnation);
        let is_between_nodes = envelope.to == self.me() && from != self.me() && from != NodeId::NONE;
        if !is_between_nodes || self.is_foreign(envelope.cluster) {
            return;
        }
        // There the topology file says who belongs together, and never changes.
        if self.settings.is_available() && !self.is_member(from) {
            return;
        }
        self.hears_cluster |= envelope.cluster.is_known();
        if self.turns_away(from, &envelope.message) || !self.peers.know(from) {
            return;
        }
        if envelope.message.is_of_sides() && !self.settings.is_available() {
            return;
        }
        let (epoch, index) = (envelope.message.newest_epoch(), envelope.message.greatest_index());
        if !self.epochs.reach(epoch, self.settings.is_available()) || index > INDEX_MOST {
            return;
        }
        self.meet(&envelope);
        match envelope.message {
            Message::Heartbeat { term, round, lease, commit, heir, boundary, vector } => {
                self.on_heartbeat(from, term, round, lease, commit, heir, boundary, vector.as_ref());
            }
            Message::HeartbeatReply { epoch, round, matched, last, full, digest, vector } => {
                self.on_heartbeat_reply(from, epoch, round, matched, last, full, digest, vector);
            }
            Message::Append { term, prev, records, commit } => {
                self.on_append(from, term, prev, &records, commit);
            }
            Message::Appended { epoch, matched } => self.on_appended(from, epoch, matched),
            Message::Gap { epoch, prev, hint } => self.on_gap(from, epoch, prev, hint),
            Message::Snapshot { term, meta } => self.on_snapshot(from, term, meta),
            Message::Stale { promise } => self.on_stale(promise),
            Message::NotMember { ask, as_of, last } => self.on_not_member(from, ask, as_of, last),
            Message::Resigned { epoch } => self.on_resigned(from, epoch),
            Message::Willing { ask, standing } => self.on_willing(from, ask, standing),
            Message::Opinion { ask, yes, held, standing } => {
                self.on_opinion(from, ask, Assent { yes, held }, standing);
            }
            Message::Claim(claim) => self.on_claim(from, claim),
            Message::Approve { term, last, lease_left } => {
                self.on_approve(from, incarnation, term, last, lease_left);
            }
            Message::Refuse { term, promise } => self.on_refuse(from, term, promise),
            Message::Pull { term, after } => self.on_pull(from, term, after),
            Message::Pulled { term, prev, records } => self.on_pulled(from, term, prev, &records),
            Message::HandOver(certificate) => self.on_certificate(from, certificate),
            Message::Poll { term, .. } => self.on_poll(from, term),
            Message::Side { epoch, leader, vector } => self.on_side(from, epoch, leader, &vector),
            Message::Meet { term, vector } => self.on_meet(from, term, &vector),
            Message::Merge { epoch, base, meta } => self.on_merge(from, epoch, &base, &meta),
            Message::Override { term, base, meta } => self.on_override(from, term, &base, meta),
            Message::Odd { epoch, incarnation, forgot, ask } => {
                self.on_odd(from, epoch, incarnation, forgot, ask);
            }
        }
    }

    /// Everything that time or the last input has made due.
    fn settle(&mut self) {
        self.follow_members();
        self.settle_removed();
        if self.stopped {
            return;
        }
        self.settle_seat();
        self.settle_following();
        self.settle_pending();
        self.settle_leading();
        self.settle_seeking();
        // A claim may have been won at once: a cluster of one.
        self.settle_leading();
        self.settle_yielded();
        // What was settled may have been a change of them.
        self.follow_members();
    }

    /// When the driver must call `handle` with a tick, if nothing else happens before.
    pub fn deadline(&self) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        let role = match &self.role {
            RoleState::Following(following) => self.following_deadline(following),
            RoleState::Seeking(seeking) => self.seeking_deadline(seeking),
            RoleState::Leading(leading) => Leader { node: self, leading }.deadline(),
        };
        let yielded = self.yielded.as_ref().map_or(Time::NEVER, Yielded::deadline);
        role.min(yielded)
    }
}
