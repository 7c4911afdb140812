//! The one entry point: an input is dispatched to its rule, then everything that is due is settled.

use super::{Node, RoleState, Yielded};
use crate::protocol::core::Core;
use crate::protocol::leading::Leading;
use crate::protocol::messages::{Envelope, Event, Input, Message, Output, Proposal, Refusal};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::Assent;
use crate::types::{INDEX_MOST, Incarnation, NodeId, Now, RequestId, Span, Time};

/// A wall clock that was set by at least this much, in microseconds, is reported. Programs that adjust a clock by less do it slowly, and
/// steps of nodes within this time are hard to order anyway.
const WALL_STEP: u64 = 100_000;

impl Node {
    /// Handles one input and returns the actions for the driver.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        if self.core.stopped {
            return Vec::new();
        }
        // This compares with the time of the previous call and with the deadline that was named then, so it
        // comes before `now` is set (P3).
        let late = self.lateness(now.mono);
        if late > self.core.settings.timing.heartbeat && !mutant::is_on(Mutant::SleepIsSilence) {
            self.core.woke_at = now.mono;
        }
        self.note_clocks(now, late);
        // A monotonic clock does not go back. If one does, this node's time stands still until the clock has caught up.
        self.core.now = Now { mono: now.mono.max(self.core.now.mono), wall: now.wall };
        self.dispatch(input);
        if !self.core.stopped {
            self.settle();
        }
        if cfg!(debug_assertions) {
            self.validate();
        }
        std::mem::take(&mut self.core.out)
    }

    /// The time by which the driver calls this node later than the node had asked for. If that is more than a beat, the machine stood
    /// still, or the process got no CPU time.
    fn lateness(&self, now: Time) -> Span {
        // Most calls follow the one before within a beat, and need no deadline.
        match now.since(self.core.now.mono) {
            gap if gap <= self.core.settings.timing.heartbeat => Span::ZERO,
            gap => gap.min(now.since(self.deadline())),
        }
    }

    /// Reports what explains a change of leader later (P58). It compares with the previous call, like `lateness`.
    fn note_clocks(&mut self, now: Now, late: Span) {
        if late.times(2) >= self.core.settings.timing.dead_after && !mutant::is_on(Mutant::SleepUntold) {
            self.core.event(Event::Slept { late });
        }
        let before = self.core.now;
        let passed = now.mono.since(before.mono).0.cast_signed();
        let micros = now.wall.0.wrapping_sub(before.wall.0).cast_signed().wrapping_sub(passed);
        if micros.unsigned_abs() >= WALL_STEP && !mutant::is_on(Mutant::ClockUntold) {
            self.core.event(Event::WallClockSet { micros });
        }
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick => {}
            Input::Message(envelope) => self.on_message(envelope),
            Input::Durable(seq) => self.core.journal.done(seq),
            Input::Promised(seq) => self.core.journal.promised(seq),
            Input::PeerRefused(peer) => self.on_peer_refused(peer),
            Input::Propose(proposals) => self.on_propose(proposals),
            Input::Read { request, at_least } => {
                self.ask_leader(request, |leading, core| leading.on_read(core, request, at_least));
            }
            Input::HandOver { request, to, reason } => {
                self.ask_leader(request, |leading, core| leading.on_hand_over(core, request, to, reason));
            }
            Input::Service { request, change } => {
                self.ask_leader(request, |leading, core| leading.on_service(core, request, change));
            }
            Input::ChangeMembers { request, change } => {
                self.ask_leader(request, |leading, core| leading.on_change_members(core, request, &change));
            }
            Input::Form { without } => self.core.forming_without = Some(without),
            Input::SnapshotTaken(index) => self.core.on_snapshot_taken(index),
            Input::Digest(checkpoint) => self.core.checkpoints.add(checkpoint),
            Input::DiskFull(full) => self.core.journal.set_full(full),
            Input::MergeFails { other, why } => self.on_impasse(other, why),
        }
    }

    /// Carries out a request if this node leads. A node that does not lead refuses, and names the leader.
    fn ask_leader(&mut self, request: RequestId, does: impl FnOnce(&mut Leading, &mut Core)) {
        let refusal = Refusal::NotLeader { leader: self.leader() };
        match &mut self.role {
            RoleState::Leading(leading) => does(leading, &mut self.core),
            _ => self.core.refuse(request, refusal),
        }
    }

    fn on_propose(&mut self, proposals: Vec<Proposal>) {
        let refusal = Refusal::NotLeader { leader: self.leader() };
        match &mut self.role {
            RoleState::Leading(leading) => leading.on_propose(&mut self.core, proposals),
            _ => proposals.into_iter().for_each(|proposal| self.core.refuse(proposal.request, refusal)),
        }
    }

    /// Messages of another cluster, of removed nodes that ask to lead, and with epochs out of reach are
    /// dropped before `meet` notes anything about the sender: the boots and disks of another cluster must not
    /// pass for those of a member (P44, P50). In safe mode messages between sides are dropped, too: one of
    /// them could replace the log.
    fn on_message(&mut self, envelope: Envelope) {
        let (from, core) = (envelope.from, &mut self.core);
        let is_between_nodes = envelope.to == core.me() && from != core.me() && from != NodeId::NONE;
        if !is_between_nodes || core.is_foreign(envelope.cluster) {
            return;
        }
        let is_available = core.settings.is_available();
        // In available mode the topology file names the members, and it never changes.
        if is_available && !core.is_member(from) {
            return;
        }
        core.hears_cluster |= envelope.cluster.is_known();
        if core.turns_away(from, &envelope.message) || !core.peers.know(from) {
            return;
        }
        if envelope.message.is_of_sides() && !is_available {
            return;
        }
        let (epoch, index) = (envelope.message.newest_epoch(), envelope.message.greatest_index());
        if !core.epochs.reach(epoch, is_available) || index > INDEX_MOST {
            return;
        }
        self.meet(&envelope);
        let disk = envelope.incarnation;
        match envelope.message {
            Message::Heartbeat(beat) => self.on_beat(from, &beat),
            Message::Append { term, prev, records, commit } => {
                self.on_append(from, term, prev, &records, commit);
            }
            Message::Snapshot { term, meta } => self.on_snapshot(from, term, meta),
            Message::Stale { promise } => self.on_stale(promise),
            Message::NotMember { ask, as_of, last } => self.on_not_member(from, ask, as_of, last),
            Message::Resigned { epoch } => self.on_resigned(from, epoch),
            Message::Willing { ask, standing } => self.on_willing(from, ask, standing),
            Message::Opinion { ask, yes, held, standing } => {
                self.on_opinion(from, ask, Assent { yes, held }, standing);
            }
            Message::Claim(claim) => self.on_claim(from, claim),
            Message::Pull { term, after } => self.core.on_pull(from, term, after),
            Message::HandOver(certificate) => self.on_certificate(from, certificate),
            Message::Poll { term, .. } => self.on_poll(from, term),
            Message::Side { epoch, leader, vector } => self.on_side(from, epoch, leader, &vector),
            Message::Meet { term, vector } => self.on_meet(from, term, &vector),
            Message::Merge { epoch, base, meta } => self.on_merge(from, epoch, &base, &meta),
            Message::Override { term, base, meta } => self.on_override(from, term, &base, meta),
            Message::Odd { epoch, incarnation, forgot, ask } => {
                self.on_odd(from, epoch, incarnation, forgot, ask);
            }
            Message::HeartbeatReply(_) | Message::Appended { .. } | Message::Gap { .. } => {
                self.on_followers_answer(from, envelope.message);
            }
            Message::Approve { .. } | Message::Refuse { .. } | Message::Pulled { .. } => {
                self.on_claims_answer(from, disk, envelope.message);
            }
        }
    }

    /// Handles the answer of a follower to the leader of an epoch. It counts if this node leads in that epoch.
    /// An answer to an earlier epoch proves nothing in this one, even if this node led in both (P5).
    fn on_followers_answer(&mut self, from: NodeId, message: Message) {
        let Some((leading, core)) = self.leading_mut() else {
            return;
        };
        let own = leading.term().epoch;
        match message {
            Message::HeartbeatReply(reply) if reply.epoch == own => {
                let exit = leading.on_beat_reply(core, from, reply);
                self.exit(exit);
            }
            Message::Appended { epoch, matched } if epoch == own => leading.on_appended(core, from, matched),
            Message::Gap { epoch, prev, hint } if epoch == own => leading.on_gap(core, from, prev, hint),
            _ => {}
        }
    }

    /// Handles the answer of a node to a claim. It counts if the claim is this node's present one.
    fn on_claims_answer(&mut self, from: NodeId, disk: Incarnation, message: Message) {
        match message {
            Message::Approve { term, last, lease_left } => {
                if let Some((claim, core)) = self.claiming_mut(term) {
                    claim.on_approve(core, (from, disk), last, lease_left);
                }
            }
            Message::Refuse { term, promise } => {
                // This counts even if the refusal is late: the next claim goes above that promise at once
                // (P2).
                self.core.epochs.hear_of(promise);
                if let Some((claim, core)) = self.claiming_mut(term) {
                    claim.on_refuse(core, from);
                }
            }
            Message::Pulled { term, prev, records } => {
                if let Some((claim, core)) = self.claiming_mut(term) {
                    let won = claim.on_pulled(core, from, prev, &records);
                    self.lead_if_won(won);
                }
            }
            _ => {}
        }
    }

    /// Settles everything that time or the last input has made due. The order matters. Members come first,
    /// because a role must have state about exactly the present ones (P43). A follower that gives its leader
    /// up does so before the pending claim is looked at, so that it approves within the same input (C28). A
    /// claim is looked at before this node claims itself.
    fn settle(&mut self) {
        self.follow_members();
        self.settle_removed();
        if self.core.stopped {
            return;
        }
        self.core.settle_seat();
        self.settle_following();
        self.settle_pending();
        self.settle_leading();
        self.settle_seeking();
        // A cluster of one wins its claim at once.
        self.settle_leading();
        self.settle_yielded();
        // The members may have changed by what was settled.
        self.follow_members();
    }

    /// The log has grown or was cut. The role's state about each other node is now kept for the present members.
    fn follow_members(&mut self) {
        if let Some(others) = self.core.follow_members() {
            match &mut self.role {
                RoleState::Leading(leading) => leading.keep(&self.core, &others),
                RoleState::Seeking(seeking) => seeking.keep(&others),
                RoleState::Following(_) => {}
            }
        }
    }

    fn settle_leading(&mut self) {
        if let Some((leading, core)) = self.leading_mut() {
            let exit = leading.settle(core);
            self.exit(exit);
        }
    }

    fn settle_seeking(&mut self) {
        if let Some((seeking, core)) = self.seeking_mut() {
            let won = seeking.settle(core);
            self.lead_if_won(won);
        }
    }

    /// The time at which the driver must call `handle` with a tick, if nothing else happens before. After a
    /// tick at that time nothing may be due any more, or the driver would tick without end; the simulator
    /// checks this (I10).
    pub fn deadline(&self) -> Time {
        if self.core.stopped {
            return Time::NEVER;
        }
        let role = match &self.role {
            RoleState::Following(following) => following.deadline(&self.core),
            RoleState::Seeking(seeking) => seeking.deadline(&self.core).min(self.pending_deadline(seeking)),
            RoleState::Leading(leading) => leading.deadline(&self.core),
        };
        role.min(self.yielded.as_ref().map_or(Time::NEVER, Yielded::deadline))
    }
}
