//! Leading: opening the epoch, beating, relying on leases, and knowing when to stop (P6, P11, P16).

use std::collections::{BTreeMap, VecDeque};

use super::clock::ClusterClock;
use super::digest::Ballots;
use super::handover::HandingOver;
use super::io::{Cause, Event, Refusal, Verdict};
use super::lease::relied_until;
use super::merging::{HandingIn, Meeting};
use super::message::{Checkpoint, Message, Term};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use super::quorum::reached_by;
use super::reads::Reads;
use super::replicate::Progress;
use super::seeking::Seeking;
use crate::types::{Entry, Epoch, Incarnation, Index, NodeId, Position, Time, Vector};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    pub term: Term,
    pub since: Time,
    /// The record that opens the epoch. Nothing is committed or served before it is (P6).
    pub open_index: Index,
    pub opened: bool,
    /// Older leaders may still rely on their leases until then (P11).
    pub leases_until: Time,
    pub progress: BTreeMap<NodeId, Progress>,
    pub round: u64,
    /// When each recent round was sent.
    pub sent: VecDeque<(u64, Time)>,
    pub next_beat: Time,
    pub next_chores: Time,
    /// Since when nothing has been committed although something waits for it (P16).
    pub behind_since: Option<Time>,
    pub behind_from: Index,
    /// The size of what is appended and not committed.
    pub uncommitted_bytes: usize,
    pub clock: ClusterClock,
    pub reads: Reads,
    pub handing: Option<HandingOver>,
    pub ballots: Ballots,
    /// The boundary to compare, and the next one: a beat later every follower has reached it (P25).
    pub boundary: (Index, Index),
    /// Beats wanted now: a read waits for a round of its own.
    pub beat_wanted: bool,
    pub next_poll: Time,
    /// Available mode: another leader that is to be taken in, or has asked for what is here (P34).
    pub meeting: Option<Meeting>,
    pub handing_in: Option<HandingIn>,
    /// Up to where histories have been settled in this epoch (P35).
    pub settled: Index,
}

impl Leading {
    /// Whether another side is being taken in, or this one is handed in (P34).
    pub fn is_meeting(&self) -> bool {
        self.meeting.is_some() || self.handing_in.is_some()
    }
}

impl Node {
    /// Becomes the leader of a claimed epoch, which opens when its first record is committed (P6).
    pub(super) fn lead(
        &mut self,
        term: Term,
        founders: Option<BTreeMap<NodeId, Incarnation>>,
        leases_until: Time,
    ) {
        let now = self.mono();
        let leases_until = match mutant::is_on(Mutant::IgnoreLeaseLeft) {
            true => Time::default(),
            false => leases_until,
        };
        let open_index = self.log.last().index + 1;
        let progress = self.settings.others().map(|node| {
            let known = match self.peers.is_refused(node) {
                true => Progress::unknown(open_index, now),
                false => Progress::new(open_index, now),
            };
            (node, known)
        });
        let progress = progress.collect();
        self.role = Role::Leading(Box::new(Leading {
            term,
            since: now,
            open_index,
            opened: false,
            leases_until,
            progress,
            round: 0,
            sent: VecDeque::new(),
            next_beat: now,
            next_chores: now,
            behind_since: None,
            behind_from: 0,
            uncommitted_bytes: self.log.bytes_above(self.commit),
            clock: ClusterClock::continue_from(self.log.last_stamp(), now),
            reads: Reads::default(),
            handing: None,
            ballots: Ballots::default(),
            boundary: (0, 0),
            beat_wanted: false,
            next_poll: now,
            meeting: None,
            handing_in: None,
            settled: 0,
        }));
        self.yielded = None;
        self.append_as_leader(Entry::Lead { founders });
    }

    pub(super) fn leading(&self) -> Option<&Leading> {
        match &self.role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    pub(super) fn leading_mut(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    pub(super) fn settle_leading(&mut self) {
        if self.leading().is_none() {
            return;
        }
        self.advance_commit();
        if let Some(cause) = self.reason_to_stop() {
            return self.step_down(cause);
        }
        self.settle_reads();
        self.beat_if_due();
        // In a cluster of one the round is answered as soon as it starts.
        self.settle_reads();
        self.settle_merging();
        self.replicate();
        self.settle_hand_over();
    }

    fn beat_if_due(&mut self) {
        let (now, heartbeat) = (self.mono(), self.settings.timing.heartbeat);
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let beat = leading.beat_wanted || now >= leading.next_beat;
        // Reads make beats of their own, as often as they like: the chores keep their own time.
        if now >= leading.next_chores {
            leading.next_chores = now + heartbeat;
            self.do_chores();
        }
        if beat {
            self.beat();
        }
    }

    /// What a leader looks after once a beat.
    fn do_chores(&mut self) {
        self.lift_lapsed_hold();
        self.readmit();
        self.leave_if_full();
        self.consider_takeover();
        self.settle_histories();
        self.poll_if_due();
    }

    fn beat(&mut self) {
        let (now, heartbeat, fresh) = (self.mono(), self.settings.timing.heartbeat, self.fresh());
        let newest = self.checkpoints.newest();
        let Some(leading) = self.leading_mut() else {
            return;
        };
        leading.boundary = (leading.boundary.1, newest);
        leading.beat_wanted = false;
        leading.round += 1;
        leading.next_beat = now + heartbeat;
        leading.sent.push_back((leading.round, now));
        // Later than this an answer proves nothing that is still of use.
        while leading.sent.len() > 1 && leading.sent[0].1 + fresh.times(16) < now {
            leading.sent.pop_front();
        }
        for to in self.settings.others() {
            self.beat_to(to);
        }
    }

    pub(super) fn beat_to(&mut self, to: NodeId) {
        let heir = self.best_heir();
        let Some(leading) = self.leading() else {
            return;
        };
        let progress = leading.progress.get(&to);
        let known = progress.is_some_and(|progress| progress.joined && progress.answered_round > 0);
        let beat = Message::Heartbeat {
            term: leading.term,
            round: leading.round,
            lease: self.settings.timing.lease,
            commit: self.commit,
            heir,
            boundary: leading.boundary.0,
            vector: self.told_vector().filter(|_| !known),
        };
        self.send(to, beat);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(super) fn on_heartbeat_reply(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        round: u64,
        matched: Index,
        last: Position,
        full: bool,
        digest: Option<Checkpoint>,
        vector: Option<Vector>,
    ) {
        let now = self.mono();
        let common = self.log.common_candidate(last).map_or(0, |position| position.index);
        let Some(leading) = self.leading_mut().filter(|leading| leading.term.epoch == epoch) else {
            return;
        };
        let sent = leading.sent.iter().find(|(number, _)| *number == round);
        let Some((_, sent)) = sent.copied() else {
            return;
        };
        let Some(progress) = leading.progress.get_mut(&from) else {
            return;
        };
        progress.answered(round, sent, now);
        progress.full = full;
        progress.reported = matched;
        progress.vector = vector.or(progress.vector.take());
        progress.located(common.max(matched));
        self.note_matched(from, matched);
        if let Some(checkpoint) = digest {
            self.compare_digest(from, checkpoint);
        }
    }

    /// The greatest value that a majority of the disks that count has reached, this node's included.
    pub(super) fn reached<T: Ord + Copy>(&self, own: T, of: impl Fn(&Progress) -> T) -> Option<T> {
        if self.settings.is_available() {
            return self.reached_by_side(own, of);
        }
        let leading = self.leading()?;
        let counted = leading.progress.iter().filter(|(node, _)| self.peer_counts(**node));
        let values = counted.map(|(_, progress)| of(progress)).chain([own]);
        reached_by(values, self.settings.quorum())
    }

    /// Until when a majority lets this leader rely on it (P11).
    fn lease_until(&self) -> Option<Time> {
        let sent = match mutant::is_on(Mutant::LeaseFromReceipt) {
            true => self.reached(self.mono(), |progress| progress.answered_at),
            false => self.reached(self.mono(), |progress| progress.answered_sent),
        };
        sent.map(|sent| relied_until(sent, &self.settings.timing))
    }

    /// Whether this node may say, at this moment, that it is the leader (I4).
    pub fn is_leader(&self, now: Time) -> bool {
        let Some(leading) = self.leading() else {
            return false;
        };
        let now = now.max(self.mono());
        leading.opened && now >= leading.leases_until && self.lease_until().is_some_and(|until| now < until)
    }

    fn reason_to_stop(&mut self) -> Option<Cause> {
        let (now, patience) = (self.mono(), self.settings.timing.dead_after);
        let leading = self.leading()?;
        let stuck = leading.behind_since.is_some_and(|since| now >= since + patience);
        if self.settings.is_available() {
            let own_disk = stuck && !self.leave_laggards_behind();
            return own_disk.then_some(Cause::Stuck);
        }
        let heard = self.reached(now, |progress| progress.answered_at);
        let majority_heard = heard.unwrap_or_default().max(leading.since);
        if now >= majority_heard + patience && !mutant::is_on(Mutant::NoStepDown) {
            return Some(Cause::NoMajority);
        }
        (stuck && !mutant::is_on(Mutant::StuckLeaderStays)).then_some(Cause::Stuck)
    }

    /// Stops leading for good in this epoch, and says so (P16).
    pub(super) fn step_down(&mut self, cause: Cause) {
        let Some(leading) = self.leading() else {
            return;
        };
        let epoch = leading.term.epoch;
        if cause == Cause::Stuck {
            let (now, timing) = (self.now.mono, &self.settings.timing);
            self.own_hold.failed(now, timing);
        }
        self.leave_leading(cause);
        self.note_over(epoch);
        self.role = Role::Seeking(Seeking::new(self.mono(), cause));
    }

    /// The end of leading, whatever comes next. Writes that reached the log keep waiting for the
    /// record that will stand in their place (P15); reads are refused.
    pub(super) fn leave_leading(&mut self, cause: Cause) {
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let epoch = leading.term.epoch;
        let reads = leading.reads.drain();
        let handing = leading.handing.take();
        let refusal = Refusal::NotLeader { leader: None };
        for request in reads {
            self.verdict(request, Verdict::Refused(refusal));
        }
        if let Some(request) = handing.and_then(|handing| handing.request) {
            self.verdict(request, Verdict::Unknown);
        }
        if mutant::is_on(Mutant::RefuseInFlight) {
            let in_flight: Vec<_> = self.waiting.drain().collect();
            for request in in_flight {
                self.verdict(request, Verdict::Refused(refusal));
            }
        }
        self.event(Event::SteppedDown { epoch, cause });
    }

    /// A follower has promised a greater epoch: this one will never reach it again. Ask the others
    /// whether they still follow, and claim a greater one (P28, C26).
    pub(super) fn reclaim_if_outdated(&mut self, promise: Term) {
        let outdated = self.leading().is_some_and(|leading| {
            let term = leading.term;
            // The same epoch for another claim: of an earlier life of this node (P2).
            promise.epoch > term.epoch || (promise.epoch == term.epoch && promise.claim != term.claim)
        });
        if outdated && self.settings.is_available() {
            return self.go_on_in_a_greater_epoch();
        }
        if outdated && !mutant::is_on(Mutant::IgnoreGreaterPromise) {
            self.leave_leading(Cause::GreaterEpoch);
            self.role = Role::Seeking(Seeking::new(self.mono(), Cause::GreaterEpoch));
        }
    }

    /// Where no majority is needed, nobody needs to be asked: those who follow this leader go along (P32).
    fn go_on_in_a_greater_epoch(&mut self) {
        if self.full {
            return;
        }
        let term = self.own_term(self.next_counter());
        let followers = self.joined();
        self.leave_leading(Cause::GreaterEpoch);
        self.raise_promise(term);
        let now = self.mono();
        self.lead(term, None, now);
        self.count_on(&followers);
    }

    pub(super) fn leading_deadline(&self, leading: &Leading) -> Time {
        let patience = self.settings.timing.dead_after;
        let stuck = leading.behind_since.map_or(Time::NEVER, |since| since + patience);
        let handing = leading.handing.as_ref().map_or(Time::NEVER, |handing| handing.until);
        let heard = self.reached(self.mono(), |progress| progress.answered_at);
        let alone = heard.unwrap_or_default().max(leading.since) + patience;
        let meeting = leading.meeting.as_ref().map_or(Time::NEVER, |meeting| meeting.next_send);
        let handing = leading.handing_in.as_ref().map_or(handing, |handed| handed.next_send.min(handing));
        let handing = handing.min(meeting);
        leading.next_beat.min(leading.next_chores).min(stuck).min(handing).min(alone)
    }
}
