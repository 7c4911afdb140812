//! One node: what outlives its roles, the dispatch of inputs, and the small tools that all rules use.

use std::collections::BTreeSet;

use super::approve::Pending;
use super::digest::Checkpoints;
use super::durability::Durability;
use super::following::Following;
use super::handover::Yielded;
use super::io::{Cause, Input, Output, Recovered, Vote};
use super::leading::Leading;
use super::lease::Grants;
use super::log::Log;
use super::message::{Envelope, Message, Term};
use super::mutant::{self, Mutant};
use super::peers::{Hold, Peers};
use super::seeking::{Opinion, Seeking};
use super::settings::Settings;
use super::waiting::Waiting;
use crate::types::{Boot, ClaimId, Epoch, Incarnation, Index, NodeId, Now, Time, Vector};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a node has one role at a time")]
pub(super) enum Role {
    Seeking(Seeking),
    Following(Following),
    Leading(Box<Leading>),
}

/// A role's name, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleName {
    Candidate,
    Follower,
    Leader,
    Stopped,
}

/// The pure core of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub(super) settings: Settings,
    pub(super) boot: Boot,
    pub(super) incarnation: Incarnation,
    pub(super) now: Now,
    pub(super) out: Vec<Output>,
    pub(super) vote: Vote,
    pub(super) disk: Durability,
    pub(super) log: Log,
    pub(super) commit: Index,
    pub(super) role: Role,
    pub(super) peers: Peers,
    pub(super) grants: Grants,
    /// The greatest epoch heard of: the next claim must beat it.
    pub(super) seen: Epoch,
    /// The greatest epoch known to be over by its own leader's word (P16, P18).
    pub(super) over: Epoch,
    pub(super) pending: Option<Pending>,
    pub(super) waiting: Waiting,
    pub(super) yielded: Option<Yielded>,
    pub(super) forming_without: Option<BTreeSet<NodeId>>,
    pub(super) own_hold: Hold,
    /// When this node last claimed as the heir, without a dry run (P4).
    pub(super) claimed_as_heir: Option<Time>,
    pub(super) checkpoints: Checkpoints,
    pub(super) full: bool,
    pub(super) stopped: bool,
}

impl Node {
    pub fn new(settings: Settings, recovered: Recovered, now: Now) -> Node {
        let mut base = recovered.base;
        // Without one it was written in safe mode, or is new: one history, up to here (P31).
        base.vector = settings.is_available().then(|| base.vector.unwrap_or(Vector::linear(base.at)));
        let log = Log::new(base, recovered.records);
        let mut vote = recovered.vote;
        // What stands committed in the log may not have reached the vote file before the crash.
        let base = log.base().index;
        let let_in = log.roster().counts(settings.me, recovered.incarnation, base);
        vote.admitted |= let_in && !settings.is_available();
        let granted = !vote.promise.epoch.is_zero();
        let grants = Grants::after_start(now.mono, granted, &settings.timing);
        vote.formed |= !log.is_empty();
        if vote.promise.epoch < log.last().epoch {
            // The promise file is lost: the log tells the least that it must have said (P27).
            let epoch = log.last().epoch;
            vote.promise = Term { epoch, claim: ClaimId::default() };
        }
        Node {
            boot: recovered.boot,
            incarnation: recovered.incarnation,
            now,
            out: Vec::new(),
            disk: Durability::starting_at(log.last().index),
            commit: log.base().index,
            role: Role::Seeking(Seeking::new(now.mono, Cause::Started)),
            peers: Peers::new(settings.others()),
            grants,
            seen: vote.promise.epoch,
            // A process never leads, and never follows itself, in an epoch of a life before (P2).
            over: own_epoch_before(vote.promise.epoch, settings.me),
            vote,
            log,
            pending: None,
            waiting: Waiting::default(),
            yielded: None,
            forming_without: None,
            own_hold: Hold::default(),
            claimed_as_heir: None,
            checkpoints: Checkpoints::default(),
            full: false,
            stopped: false,
            settings,
        }
    }

    /// Takes in one input and says what to do about it.
    pub fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        if self.stopped {
            return Vec::new();
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

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick => {}
            Input::Message(envelope) => self.on_message(envelope),
            Input::Durable(seq) => self.disk.done(seq),
            Input::PeerRefused(peer) => self.on_peer_refused(peer),
            Input::Propose(entries) => self.on_propose(entries),
            Input::Read { request, at_least } => self.on_read(request, at_least),
            Input::HandOver { request, to } => self.on_hand_over(request, to),
            Input::Service { request, change } => self.on_service(request, change),
            Input::Form { without } => self.forming_without = Some(without),
            Input::SnapshotTaken(index) => self.on_snapshot_taken(index),
            Input::Digest(checkpoint) => self.on_digest(checkpoint),
            Input::DiskFull(full) => self.full = full,
        }
    }

    fn on_message(&mut self, envelope: Envelope) {
        let (from, incarnation) = (envelope.from, envelope.incarnation);
        if envelope.to != self.settings.me || self.peers.get(from).is_none() {
            return;
        }
        if envelope.message.is_of_sides() && !self.settings.is_available() {
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
            Message::Resigned { epoch } => self.on_resigned(from, epoch),
            Message::Willing { ask, standing } => self.on_willing(from, ask, standing),
            Message::Opinion { ask, yes, held, standing } => {
                self.on_opinion(from, ask, Opinion { yes, held }, standing);
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
            Message::Odd { epoch, incarnation } => self.on_odd(from, epoch, incarnation),
        }
    }

    /// Everything that time or the last input has made due.
    fn settle(&mut self) {
        self.settle_following();
        self.settle_pending();
        self.settle_leading();
        self.settle_seeking();
        // A claim may have been won at once: a cluster of one.
        self.settle_leading();
        self.settle_yielded();
    }

    /// When the driver must call `handle` with a tick, if nothing else happens before.
    pub fn deadline(&self) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        let role = match &self.role {
            Role::Following(following) => following.deadline(&self.settings.timing),
            Role::Seeking(seeking) => self.seeking_deadline(seeking),
            Role::Leading(leading) => self.leading_deadline(leading),
        };
        let yielded = self.yielded.as_ref().map_or(Time::NEVER, Yielded::deadline);
        role.min(yielded)
    }
}

fn own_epoch_before(promise: Epoch, me: NodeId) -> Epoch {
    match promise.leader == me && !mutant::is_on(Mutant::SameEpochTwice) {
        true => promise,
        false => Epoch::ZERO,
    }
}
