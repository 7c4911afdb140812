//! One node: what outlives its roles, the dispatch of inputs, and the small tools that all rules use.

use std::collections::BTreeSet;

use super::approve::Pending;
use super::digest::Checkpoints;
use super::durability::Durability;
use super::following::Following;
use super::handover::Yielded;
use super::io::{Cause, Event, Fault, Input, Output, Recovered, Seq, Verdict, Vote, Write};
use super::leading::Leading;
use super::lease::Grants;
use super::log::Log;
use super::message::{Envelope, Message, Term};
use super::mutant::{self, Mutant};
use super::peers::{Hold, Peers};
use super::seeking::{Opinion, Seeking};
use super::settings::Settings;
use super::waiting::Waiting;
use crate::types::{
    Boot, ClaimId, Entry, Epoch, Incarnation, Index, NodeId, Now, Position, RequestId, Span, Time,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        let log = Log::new(recovered.base, recovered.records);
        let mut vote = recovered.vote;
        // What stands committed in the log may not have reached the vote file before the crash.
        let base = log.base().index;
        vote.admitted |= log
            .roster()
            .counts(settings.me, recovered.incarnation, base);
        let granted = !vote.promise.epoch.is_zero();
        let grants = Grants::after_start(now.mono, granted, &settings.timing);
        vote.formed |= !log.is_empty();
        if vote.promise.epoch < log.last().epoch {
            // The promise file is lost: the log tells the least that it must have said (P27).
            let epoch = log.last().epoch;
            vote.promise = Term {
                epoch,
                claim: ClaimId::default(),
            };
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
        self.now = Now {
            mono: now.mono.max(self.now.mono),
            wall: now.wall,
        };
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
        self.meet(&envelope);
        match envelope.message {
            Message::Heartbeat {
                term,
                round,
                lease,
                commit,
                heir,
                boundary,
            } => {
                self.on_heartbeat(from, term, round, lease, commit, heir, boundary);
            }
            Message::HeartbeatReply {
                epoch,
                round,
                matched,
                last,
                full,
                digest,
            } => {
                self.on_heartbeat_reply(from, epoch, round, matched, last, full, digest);
            }
            Message::Append {
                term,
                prev,
                records,
                commit,
            } => {
                self.on_append(from, term, prev, &records, commit);
            }
            Message::Appended { epoch, matched } => self.on_appended(from, epoch, matched),
            Message::Gap { epoch, prev, hint } => self.on_gap(from, epoch, prev, hint),
            Message::Snapshot { term, meta } => self.on_snapshot(from, term, meta),
            Message::Stale { promise } => self.on_stale(promise),
            Message::Resigned { epoch } => self.on_resigned(from, epoch),
            Message::Willing { ask, standing } => self.on_willing(from, ask, standing),
            Message::Opinion {
                ask,
                yes,
                held,
                standing,
            } => {
                self.on_opinion(from, ask, Opinion { yes, held }, standing);
            }
            Message::Claim(claim) => self.on_claim(from, claim),
            Message::Approve {
                term,
                last,
                lease_left,
            } => {
                self.on_approve(from, incarnation, term, last, lease_left);
            }
            Message::Refuse { term, promise } => self.on_refuse(from, term, promise),
            Message::Pull { term, after } => self.on_pull(from, term, after),
            Message::Pulled {
                term,
                prev,
                records,
            } => self.on_pulled(from, term, prev, &records),
            Message::HandOver(certificate) => self.on_certificate(from, certificate),
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

/// Tools.
impl Node {
    pub(super) fn me(&self) -> NodeId {
        self.settings.me
    }

    pub(super) fn mono(&self) -> Time {
        self.now.mono
    }

    pub(super) fn promise(&self) -> Epoch {
        self.vote.promise.epoch
    }

    pub(super) fn write(&mut self, seq: Seq, write: Write) {
        self.out.push(Output::Write { seq, write });
    }

    pub(super) fn write_vote(&mut self) {
        let seq = self.disk.vote_written();
        self.write(seq, Write::Vote(self.vote));
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub(super) fn raise_promise(&mut self, term: Term) {
        debug_assert!(term.epoch > self.promise() || mutant::is_on(Mutant::SameEpochTwice));
        self.vote.promise = term;
        self.seen = self.seen.max(term.epoch);
        self.write_vote();
    }

    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        Envelope {
            from: self.me(),
            to,
            boot: self.boot,
            incarnation: self.incarnation,
            admitted: self.vote.admitted,
            format: self.settings.format,
            message,
        }
    }

    /// A message that binds this node to its promise: leaves once the promise is on disk (P29).
    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        let after = self.disk.vote();
        self.send_after(to, message, after);
    }

    /// An acknowledgement: leaves once the records are on disk too (P29).
    pub(super) fn send_acknowledgement(&mut self, to: NodeId, message: Message) {
        let after = match mutant::is_on(Mutant::AckBeforeSync) {
            true => Seq::default(),
            false => self.disk.vote_and_log(),
        };
        self.send_after(to, message, after);
    }

    pub(super) fn send_after(&mut self, to: NodeId, message: Message, after: Seq) {
        let envelope = self.envelope(to, message);
        self.out.push(Output::Send { envelope, after });
    }

    pub(super) fn broadcast(&mut self, message: &Message, after: Seq) {
        for to in self.settings.others() {
            self.send_after(to, message.clone(), after);
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    pub(super) fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        self.out.push(Output::Verdict { request, verdict });
    }

    pub(super) fn stop(&mut self, fault: Fault) {
        self.stopped = true;
        self.out.push(Output::Stop(fault));
    }

    /// A node that was never part of a cluster (P9).
    pub(super) fn is_blank(&self) -> bool {
        !self.vote.formed
    }

    /// Whether this disk remembers everything it ever acknowledged (P10).
    pub(super) fn may_vote(&self) -> bool {
        self.is_blank() || self.vote.admitted
    }

    /// Whether what that disk acknowledges counts for a majority (P10).
    pub(super) fn peer_counts(&self, node: NodeId) -> bool {
        let Some(peer) = self.peers.get(node) else {
            return false;
        };
        let roster = self.log.roster();
        match () {
            () if mutant::is_on(Mutant::AnyIncarnationCounts) => true,
            () if mutant::is_on(Mutant::RejoinCountsItself) => roster.knows(node, peer.incarnation),
            // A leader that has just started may not know yet what the disk itself has seen committed.
            () if peer.admitted => roster.knows(node, peer.incarnation),
            () => roster.counts(node, peer.incarnation, self.commit),
        }
    }

    /// Raises the commit index, applies what it covers, and answers what it decides.
    pub(super) fn commit_to(&mut self, index: Index) {
        let index = index.min(self.log.last().index);
        if index <= self.commit {
            return;
        }
        let records = self.log.range(self.commit, index);
        self.commit = index;
        self.out.push(Output::Apply(records));
        self.admit_if_committed();
        if !matches!(self.role, Role::Leading(_)) {
            self.decide_waiting(index);
        }
    }

    /// A new disk counts once its `rejoin` is committed and in its own log (P10).
    pub(super) fn admit_if_committed(&mut self) {
        let commit = match mutant::is_on(Mutant::RejoinBeforeCommit) {
            true => Index::MAX,
            false => self.commit,
        };
        let counts = self
            .log
            .roster()
            .counts(self.me(), self.incarnation, commit);
        if counts && !self.vote.admitted {
            self.vote.admitted = true;
            self.write_vote();
            self.event(Event::Admitted {
                incarnation: self.incarnation,
            });
        }
    }

    /// Notes that this disk is part of a cluster from now on, and counts if it founded it (P9).
    pub(super) fn note_formed(&mut self) {
        let seat = self.log.roster().seat(self.me());
        let founder = seat.is_some_and(|s| s.since == 0 && s.incarnation == self.incarnation);
        let admitted = self.vote.admitted || founder;
        if !self.vote.formed || admitted != self.vote.admitted {
            self.vote.formed = true;
            self.vote.admitted = admitted;
            self.write_vote();
        }
        self.admit_if_committed();
    }
}

/// What others may look at.
impl Node {
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn commit_index(&self) -> Index {
        self.commit
    }

    pub fn last(&self) -> Position {
        self.log.last()
    }

    pub fn vote(&self) -> Vote {
        self.vote
    }

    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub fn boot(&self) -> Boot {
        self.boot
    }

    pub fn role_name(&self) -> RoleName {
        match &self.role {
            _ if self.stopped => RoleName::Stopped,
            Role::Seeking(_) => RoleName::Candidate,
            Role::Following(_) => RoleName::Follower,
            Role::Leading(_) => RoleName::Leader,
        }
    }

    /// The leader that this node follows, or itself if its epoch is open.
    pub fn leader(&self) -> Option<NodeId> {
        match &self.role {
            Role::Following(following) if following.tentative.is_none() => Some(following.leader),
            Role::Leading(leading) if leading.opened => Some(self.me()),
            _ => None,
        }
    }

    /// The epoch that this node leads in, open or not.
    pub fn leads(&self) -> Option<Epoch> {
        match &self.role {
            Role::Leading(leading) => Some(leading.term.epoch),
            _ => None,
        }
    }

    /// Whether this node's epoch is open: it takes writes and linear reads.
    pub fn is_open(&self) -> bool {
        matches!(&self.role, Role::Leading(leading) if leading.opened)
    }

    pub fn is_admitted(&self) -> bool {
        self.vote.admitted
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub fn service_is_down(&self) -> bool {
        self.log.holds_of_service().any()
    }

    /// Who would lead next by the leader's last word (P4).
    pub fn heir(&self) -> Option<NodeId> {
        match &self.role {
            Role::Following(following) => following.heir,
            Role::Leading(_) => self.best_heir(),
            Role::Seeking(_) => None,
        }
    }

    /// What the current state must satisfy at all times. A broken one is a bug, not an error (I11).
    pub fn validate(&self) {
        let last = self.log.last();
        assert!(self.commit <= last.index, "commit beyond the log");
        assert!(
            self.log.base().index <= self.commit,
            "trimmed what is not committed"
        );
        assert!(self.disk.upto() <= last.index, "durable beyond the log");
        assert!(
            last.epoch <= self.promise() || mutant::is_on(Mutant::AppendKeepsPromise),
            "a record above the promise (I11)"
        );
        if let Role::Leading(leading) = &self.role {
            assert_eq!(leading.term, self.vote.promise, "leads below its promise");
            assert!(leading.opened == (self.commit >= leading.open_index));
        }
        if let Role::Following(following) = &self.role {
            assert!(following.matched <= last.index, "matched beyond the log");
        }
    }

    pub(super) fn is_own(entry: &Entry) -> bool {
        !matches!(entry, Entry::Client(_))
    }

    pub(super) fn fresh(&self) -> Span {
        self.settings.timing.fresh()
    }
}

fn own_epoch_before(promise: Epoch, me: NodeId) -> Epoch {
    match promise.leader == me && !mutant::is_on(Mutant::SameEpochTwice) {
        true => promise,
        false => Epoch::ZERO,
    }
}
