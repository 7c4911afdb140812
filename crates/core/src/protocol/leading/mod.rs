//! A leader opens its epoch, sends heartbeats, relies on leases, and knows when to stop (P6, P11, P16).
//!
//! Its fields are private to this folder, and each file has its own rules. A rule gets the node's core. If the role is to end, the rule
//! returns an `Exit`, and the node carries it out.

mod handover;
mod membership;
mod merges;
mod merging;
mod oddity;
mod replication;
mod serving;
mod sides;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use self::merges::Merges;
use crate::protocol::ballots::Ballots;
use crate::protocol::clock::ClusterClock;
use crate::protocol::core::Core;
use crate::protocol::grants::relied_until;
use crate::protocol::messages::{
    Beat, BeatReply, Cause, Certificate, Event, HandOverReason, IsLeader, Message, Refusal, Term, Verdict,
};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::progress::Progress;
use crate::protocol::quorum::reached_by;
use crate::protocol::seeking::Won;
use crate::types::{
    ClusterId, Entry, Founding, Incarnation, Index, NodeId, Now, Position, RequestId, Span, Stamp, Time,
    Vector,
};

/// The time for which a commit may wait for an append that carries it. Under load an append follows within this time, and one heartbeat for
/// each commit would cost as much as the writes.
const TELL_COMMIT_AFTER: Span = Span::millis(10);
/// The greatest number of rounds whose sending time is kept: linear reads can start any number of rounds. The answer to
/// a round that was dropped is ignored.
const ROUNDS_MOST: usize = 65_536;

/// The state of a leader: the progress of its followers, its rounds, the waiting reads, and hand-overs and merges under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leading {
    term: Term,
    since: Time,
    /// The record that opens the epoch. Nothing is committed or served before it is (P6).
    open_index: Index,
    opened: bool,
    /// Earlier leaders may still rely on their leases until this time (P11).
    leases_until: Time,
    progress: BTreeMap<NodeId, Progress>,
    round: u64,
    /// The time at which each recent round was sent.
    sent: VecDeque<(u64, Time)>,
    next_beat: Time,
    next_periodic_work: Time,
    /// Since this time nothing has been committed although records wait for it (P16).
    behind_since: Option<Time>,
    behind_from: Index,
    clock: ClusterClock,
    reads: Vec<WaitingRead>,
    handing: Option<HandingOver>,
    ballots: Ballots,
    /// Disks whose place in the roster was given to another disk, as far as the records in memory show (P10).
    replaced: BTreeSet<Incarnation>,
    /// Disks that have forgotten records that they acknowledged in this epoch (P27).
    forgetful: BTreeSet<Incarnation>,
    /// The boundary that this beat asks for, and the one that the next beat asks for: by then every follower has
    /// reached it (P25).
    boundary: (Index, Index),
    /// A beat is wanted now: a read waits for a new round.
    beat_wanted: bool,
    /// The time at which a beat tells followers the commit index, unless an append has told them before.
    tell_at: Time,
    next_poll: Time,
    merges: Merges,
    /// Available mode: the vector of the log when this epoch began. All of it stands below the record that opens the epoch.
    began_with: Vector,
    /// Histories have been settled up to this index in this epoch (P35).
    settled: Index,
    /// The time at which a node last appeared with a process that this leader did not know (P35).
    new_process_at: Time,
}

/// A read that waits for a round which proves that this node still leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WaitingRead {
    request: RequestId,
    /// The state must have applied this index.
    index: Index,
    /// A majority must have answered this round, which started after the read arrived, or a later one.
    round: u64,
}

/// The leader waits until its heir has everything. Writes are refused meanwhile; none is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HandingOver {
    heir: NodeId,
    request: Option<RequestId>,
    reason: HandOverReason,
    until: Time,
}

/// The reason why a node stops leading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    StepsDown(Cause),
    /// The node's own state differs from that of a majority (P25).
    IsOdd,
    /// The heir has everything that the leader has (P18).
    HandsOver {
        certificate: Certificate,
        request: Option<RequestId>,
        reason: HandOverReason,
    },
}

impl Leading {
    /// Leads in a claimed epoch, which opens when its first record is committed (P6).
    pub fn new(core: &mut Core, won: Won) -> Leading {
        let now = core.mono();
        let leases_until = match mutant::is_on(Mutant::IgnoreLeaseLeft) {
            true => Time::default(),
            false => won.leases_until,
        };
        let open_index = core.last().index + 1;
        let progress = core.others().map(|node| {
            // A follower is sent the opening record at once. It accepts that record only if its log has the position
            // before it (P5), and otherwise answers with a gap. A process that is dead gets nothing until it answers
            // a beat.
            let known = match core.peers.is_refused(node) {
                true => Progress::unknown(open_index, now),
                false => Progress::new(open_index, now),
            };
            (node, known)
        });
        let mut leading = Leading {
            term: won.term,
            since: now,
            open_index,
            opened: false,
            leases_until,
            progress: progress.collect(),
            round: 0,
            sent: VecDeque::new(),
            next_beat: now,
            next_periodic_work: now,
            behind_since: None,
            behind_from: 0,
            clock: ClusterClock::continue_from(core.log().last_stamp(), core.journal.stamped_at(), now),
            reads: Vec::new(),
            handing: None,
            ballots: Ballots::default(),
            replaced: core.log().replaced_disks(),
            forgetful: BTreeSet::new(),
            boundary: (0, 0),
            beat_wanted: false,
            tell_at: Time::NEVER,
            next_poll: now,
            merges: Merges::new(Position::new(won.term.epoch, open_index)),
            began_with: core.own_vector(),
            settled: 0,
            new_process_at: Time::default(),
        };
        let founding = won.founders.map(|founders| Box::new(founding(core, founders)));
        leading.append(core, Entry::Lead { founding });
        leading.count_on(&won.approved);
        leading
    }

    pub fn term(&self) -> Term {
        self.term
    }

    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// The stamp that a record written now would get (P17).
    pub fn stamp(&self, now: Now) -> Stamp {
        self.clock.stamp(now)
    }

    /// Whether this leader may write a record for a member or a disk now. While it hands over it does not: the heir would
    /// have to get that record as well before the epoch can end (P18).
    fn may_write(&self, core: &Core) -> bool {
        self.opened && !core.journal.is_full() && self.handing.is_none()
    }

    pub fn settle(&mut self, core: &mut Core) -> Option<Exit> {
        self.advance_commit(core);
        // Commits come first: the input may be the answer that this leader needs to go on.
        if let Some(cause) = self.reason_to_stop(core) {
            return Some(Exit::StepsDown(cause));
        }
        self.settle_reads(core);
        self.beat_if_due(core);
        // In a cluster of one the round is answered as soon as it starts.
        self.settle_reads(core);
        self.settle_merging(core);
        // The appends carry the records written above, such as a hold of the service, and the commit index. So a
        // beat has to tell the commit index only to the other followers. The hand-over comes last, because it names
        // the last record.
        self.replicate(core);
        self.announce_commit(core);
        self.settle_hand_over(core)
    }

    /// The time at which this leader must be settled, if nothing else happens before.
    pub fn deadline(&self, core: &Core) -> Time {
        let handing = self.handing.as_ref().map_or(Time::NEVER, |handing| handing.until);
        let periodic = self.next_beat.min(self.next_periodic_work);
        let told = periodic.min(self.tell_at);
        let ends = self.stuck_at(core).min(self.loses_majority_at(core));
        told.min(ends).min(handing).min(self.merging_deadline(core))
    }

    /// Keeps the progress of `others`, which are the other members now.
    pub fn keep(&mut self, core: &Core, others: &[NodeId]) {
        let (now, next) = (core.mono(), core.last().index + 1);
        for gone in self.progress.keys().filter(|node| !others.contains(node)) {
            self.ballots.forget(*gone);
        }
        self.progress.retain(|node, _| others.contains(node));
        for node in others {
            self.progress.entry(*node).or_insert_with(|| Progress::new(next, now));
        }
    }
}

/// The content of the cluster's first record. In available mode several sides may each begin by themselves, so the topology
/// file names the members instead.
fn founding(core: &Core, founders: BTreeMap<NodeId, Incarnation>) -> Founding {
    let told = !core.settings.is_available();
    let cluster = if told { core.settings.new_cluster } else { ClusterId::NONE };
    Founding { founders, cluster, members: told.then(|| core.settings.members.clone()) }
}

// Heartbeats.
impl Leading {
    fn beat_if_due(&mut self, core: &mut Core) {
        let now = core.mono();
        let beat = self.beat_wanted || now >= self.next_beat;
        // Reads cause any number of extra beats, so periodic work has its own timer.
        if now >= self.next_periodic_work {
            self.next_periodic_work = now + core.settings.timing.heartbeat;
            self.do_periodic_work(core);
        }
        if beat {
            self.beat(core);
        }
    }

    /// The work that a leader does once per beat.
    fn do_periodic_work(&mut self, core: &mut Core) {
        self.lift_lapsed_hold(core);
        self.let_disks_in(core);
        self.promote_learner(core);
        self.leave_if_full(core);
        self.consider_takeover(core);
        self.settle_histories(core);
        self.poll_if_due(core);
    }

    fn beat(&mut self, core: &mut Core) {
        let (now, fresh) = (core.mono(), core.fresh());
        self.boundary = (core.checkpoints.to_ask(self.boundary.1), core.checkpoints.newest());
        self.beat_wanted = false;
        self.round += 1;
        self.next_beat = now + core.settings.timing.heartbeat;
        self.sent.push_back((self.round, now));
        // An answer to a round before these would prove nothing that is still of use.
        let of_use =
            |sent: &VecDeque<(u64, Time)>| sent[0].1 + fresh.times(16) >= now && sent.len() <= ROUNDS_MOST;
        while self.sent.len() > 1 && !of_use(&self.sent) {
            self.sent.pop_front();
        }
        for to in core.others() {
            self.beat_to(core, to);
        }
    }

    pub fn beat_to(&mut self, core: &mut Core, to: NodeId) {
        let progress = self.progress.get(&to);
        let known = progress.is_some_and(|progress| progress.joined && progress.answered_round > 0);
        let commit = core.journal.commit();
        let beat = Beat {
            term: self.term,
            round: core.beats_from(to) + self.round,
            lease: core.settings.timing.lease,
            commit,
            heir: self.best_heir(core),
            boundary: self.boundary.0,
            vector: core.vector_to_send().filter(|_| !known),
        };
        if let Some(progress) = self.progress.get_mut(&to) {
            progress.told = commit;
        }
        core.send(to, Message::Heartbeat(beat));
    }

    pub fn on_beat_reply(&mut self, core: &mut Core, from: NodeId, reply: BeatReply) -> Option<Exit> {
        let BeatReply { round, matched, last, full, digest, vector, .. } = reply;
        let common = core.log().common_candidate(last).map_or(0, |position| position.index);
        let matched = matched.min(core.last().index);
        // A number that this leader has not sent to that node is no answer (P51). `remembers` must be asked before
        // the answer counts for anything: the answer may show that the disk has forgotten records (P27).
        let round = round.checked_sub(core.beats_from(from))?;
        let sent = self.sent_at(round)?;
        if !self.progress.contains_key(&from) || !self.remembers(core, from, round, last.index) {
            return None;
        }
        let progress = self.progress.get_mut(&from)?;
        progress.answered(round, sent, core.mono());
        progress.full = full;
        progress.reported = matched;
        progress.vector = vector.or(progress.vector.take());
        progress.located(common.max(matched), last.index);
        if let Some(peer) = core.peers.get_mut(from) {
            peer.answered(sent);
        }
        self.note_matched(core, from, matched);
        self.note_kept(core, from, matched, true);
        digest.and_then(|checkpoint| self.compare_digest(core, from, checkpoint))
    }

    /// The time at which this round was sent, if it is still kept. Rounds follow each other without a gap.
    fn sent_at(&self, round: u64) -> Option<Time> {
        let (oldest, _) = self.sent.front()?;
        let place = usize::try_from(round.checked_sub(*oldest)?).ok()?;
        self.sent.get(place).map(|(_, at)| *at)
    }

    /// A follower learns of a commit from the next append. If no append follows soon, the leader repeats its last beat to it, so that
    /// the follower's own readers and its feed need not wait for the next beat (P7).
    fn announce_commit(&mut self, core: &mut Core) {
        let (now, commit) = (core.mono(), core.journal.commit());
        let lacking = self.progress.iter().filter(|(_, progress)| progress.needs_only_commit_index(commit));
        let untold: Vec<NodeId> = lacking.map(|(node, _)| *node).collect();
        if untold.is_empty() || mutant::is_on(Mutant::CommitUntold) {
            self.tell_at = Time::NEVER;
        } else if self.tell_at == Time::NEVER {
            self.tell_at = now + TELL_COMMIT_AFTER;
        } else if now >= self.tell_at {
            self.tell_at = Time::NEVER;
            untold.into_iter().for_each(|to| self.beat_to(core, to));
        }
    }
}

// Leases, and the values that a majority has reached.
impl Leading {
    /// Whether this node may say, at this moment, that it is the leader (I4).
    pub fn whether_leader(&self, core: &Core, now: Time) -> IsLeader {
        let now = now.max(core.mono());
        match () {
            () if !self.opened || !self.older_leases_are_over(now) => IsLeader::No,
            () if self.lease_until(core).is_some_and(|until| now < until) => IsLeader::Yes,
            () if core.settings.timing.leases_lapse() => IsLeader::Unproven,
            () => IsLeader::No,
        }
    }

    /// Whether no earlier leader can rely on its lease any more (P11). Writes and linear reads do not wait for
    /// this; `/is_leader`, leader reads and changes of members do.
    pub fn older_leases_are_over(&self, now: Time) -> bool {
        now >= self.leases_until
    }

    /// The end of the lease that a majority grants this leader (P11). It counts from when the beats were sent. The followers
    /// count from when the beats arrived, which is later, so their grants last longer (C5).
    fn lease_until(&self, core: &Core) -> Option<Time> {
        let now = core.mono();
        let sent = match mutant::is_on(Mutant::LeaseFromReceipt) {
            true => self.reached(core, now, |progress| progress.answered_at),
            false => self.reached(core, now, |progress| progress.answered_sent),
        };
        sent.map(|sent| relied_until(sent, &core.settings.timing))
    }

    /// The greatest value that a majority of the disks that count have reached, this node's disk included.
    fn reached<T: Ord + Copy>(&self, core: &Core, own: T, of: impl Fn(&Progress) -> T) -> Option<T> {
        if core.settings.is_available() {
            return self.reached_by_side(core, own, of);
        }
        let counted = self.progress.iter().filter(|(node, _)| self.peer_counts(core, **node));
        let own = Some(own).filter(|_| core.own_vote_count() == 1 && core.has_seat());
        let values = counted.map(|(_, progress)| of(progress)).chain(own);
        reached_by(values, core.quorum())
    }

    /// Whether the acknowledgements of that node's disk count for a majority (P10, P27).
    pub fn peer_counts(&self, core: &Core, node: NodeId) -> bool {
        let forgot = !core.settings.is_available() && self.has_forgotten(core, node);
        !forgot && core.peer_counts(node)
    }

    /// Whether a majority of voters, this node included, answered this node lately.
    pub fn reaches_majority(&self, core: &Core, now: Time) -> bool {
        let answers = self.progress.iter().filter(|(_, p)| p.answered_at + core.fresh() >= now);
        let voters = answers.filter(|(node, _)| core.is_voter(**node)).count();
        voters + core.own_vote_count() >= core.quorum()
    }
}

// Reasons to stop.
impl Leading {
    fn reason_to_stop(&mut self, core: &Core) -> Option<Cause> {
        let stuck = core.mono() >= self.stuck_at(core);
        if !core.has_seat() {
            return Some(Cause::Replaced);
        }
        if core.settings.is_available() {
            let own_disk = stuck && !self.leave_laggards_behind(core);
            return own_disk.then_some(Cause::Stuck);
        }
        if core.mono() >= self.loses_majority_at(core) && !mutant::is_on(Mutant::NoStepDown) {
            return Some(Cause::NoMajority);
        }
        (stuck && !mutant::is_on(Mutant::StuckLeaderStays)).then_some(Cause::Stuck)
    }

    /// The time at which this leader counts as stuck if nothing is committed before.
    fn stuck_at(&self, core: &Core) -> Time {
        let patience = core.settings.timing.stuck_after();
        self.behind_since.map_or(Time::NEVER, |since| since + patience)
    }

    /// The time at which this leader counts as cut off if it does not hear a majority before.
    fn loses_majority_at(&self, core: &Core) -> Time {
        let heard = self.reached(core, core.mono(), |progress| progress.answered_at);
        let since = heard.unwrap_or_default().max(self.since).max(core.woke_at);
        since + core.settings.timing.dead_after
    }

    /// Whether another node's promise ends this epoch. It does if it is for a greater epoch, or for the same epoch and another claim, which
    /// an earlier boot of this node made (P2).
    pub fn is_outdated_by(&self, promise: Term) -> bool {
        promise.epoch > self.term.epoch
            || (promise.epoch == self.term.epoch && promise.claim != self.term.claim)
    }

    /// Ends the leadership; the caller sets the next role. Writes that reached the log keep waiting until it is known which
    /// record is committed at their index (P15); reads are refused.
    pub fn leave(&mut self, core: &mut Core, cause: Cause) {
        let refusal = Refusal::NotLeader { leader: None };
        for read in std::mem::take(&mut self.reads) {
            core.refuse(read.request, refusal);
        }
        if let Some(request) = self.handing.take().and_then(|handing| handing.request) {
            core.verdict(request, Verdict::Unknown);
        }
        if mutant::is_on(Mutant::RefuseInFlight) {
            let in_flight: Vec<_> = core.undecided.drain().collect();
            for request in in_flight {
                core.refuse(request, refusal);
            }
        }
        core.event(Event::SteppedDown { epoch: self.term.epoch, cause });
    }
}

// The view of this leader for others, and the conditions that must hold.
impl Leading {
    /// The last index that is known to be on that node's disk.
    pub fn matched_by(&self, node: NodeId) -> Option<Index> {
        self.progress.get(&node).map(|progress| progress.matched)
    }

    /// Checks what must be true after every input (I11).
    pub fn validate(&self, core: &Core) {
        let last = core.last().index;
        assert_eq!(self.term, core.journal.promise(), "leads below its promise");
        assert!(self.opened == (core.journal.commit() >= self.open_index));
        assert!(self.open_index <= last, "leads without the record that opens its epoch (P6)");
        assert!(core.has_seat(), "leads without a seat (P10)");
        let all_known = core.others().all(|node| self.progress.contains_key(&node));
        assert!(
            all_known && self.progress.len() == core.others().count(),
            "tracks the progress of nodes that are not members (P43)"
        );
        for progress in self.progress.values() {
            assert!(
                progress.matched <= last && progress.matched < progress.next,
                "a follower matches beyond this log (P5)"
            );
            assert!(progress.answered_round <= self.round, "a follower answered a round that never happened");
        }
        assert!(self.reads.len() <= core.settings.limits.reads, "more reads wait than allowed");
        self.merges.validate(core.me());
    }
}
