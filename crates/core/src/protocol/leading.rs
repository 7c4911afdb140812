//! A leader opens its epoch, sends heartbeats, relies on leases, brings every follower's log to its own, knows what a majority has, and when to
//! stop (P5, P6, P7, P11, P16).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ballots::Ballots;
use super::clock::ClusterClock;
use super::grants::relied_until;
use super::messages::{Cause, Checkpoint, Event, IsLeader, Message, Output, Refusal, Term, Verdict};
use super::meta::Records;
use super::mutant::{self, Mutant};
use super::node::{Leader, Node, RoleState};
use super::progress::{Progress, Sending, Step};
use super::quorum::reached_by;
use super::roles::{Leading, Merges, Reads, Seeking};
use crate::types::{
    ClusterId, Entry, Epoch, Founding, Incarnation, Index, NodeId, Position, Span, Time, Vector,
};

/// How long a commit may wait for an append that carries it. Under load an append follows within this time, and one heartbeat for each
/// commit would cost as much as the writes.
const TELL_COMMIT_AFTER: Span = Span::millis(10);
/// Rounds whose answers are told apart: linear reads make as many as they like.
const ROUNDS_MOST: usize = 65_536;

impl Node {
    /// Becomes the leader of a claimed epoch, which opens when its first record is committed (P6).
    pub(in crate::protocol) fn lead(
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
        let open_index = self.last().index + 1;
        let progress = self.others().map(|node| {
            let known = match self.peers.is_refused(node) {
                true => Progress::unknown(open_index, now),
                false => Progress::new(open_index, now),
            };
            (node, known)
        });
        let progress = progress.collect();
        self.role = RoleState::Leading(Box::new(Leading {
            term,
            since: now,
            open_index,
            opened: false,
            leases_until,
            progress,
            round: 0,
            sent: VecDeque::new(),
            next_beat: now,
            next_periodic_work: now,
            behind_since: None,
            behind_from: 0,
            uncommitted_bytes: self.log().bytes_above(self.journal.commit()),
            clock: ClusterClock::continue_from(self.log().last_stamp(), self.journal.stamped_at(), now),
            reads: Reads::default(),
            handing: None,
            ballots: Ballots::default(),
            replaced: self.log().replaced_disks(),
            forgetful: BTreeSet::new(),
            boundary: (0, 0),
            beat_wanted: false,
            tell_at: Time::NEVER,
            next_poll: now,
            merges: Merges::new(Position::new(term.epoch, open_index)),
            began_with: self.own_vector(),
            settled: 0,
            new_process_at: Time::default(),
        }));
        // Whoever asked for a hand-over that came to nothing is still to be told (P15).
        let yielded = self.yielded.take().and_then(|yielded| yielded.request);
        if let Some(request) = yielded.filter(|_| !mutant::is_on(Mutant::YieldedUnanswered)) {
            self.verdict(request, Verdict::Unknown);
        }
        let founding = founders.map(|founders| Box::new(self.founding(founders)));
        self.append_as_leader(Entry::Lead { founding });
    }

    /// The cluster's first record. In available mode sides may begin apart, each for itself: there the topology file says who
    /// belongs together.
    fn founding(&self, founders: BTreeMap<NodeId, Incarnation>) -> Founding {
        let told = !self.settings.is_available();
        let cluster = if told { self.settings.new_cluster } else { ClusterId::NONE };
        Founding { founders, cluster, members: told.then(|| self.settings.members.clone()) }
    }

    pub(in crate::protocol) fn settle_leading(&mut self) {
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
        self.tell_commit();
        self.settle_hand_over();
    }

    /// A follower learns of a commit from the next append. If none follows soon the last beat is sent to it once more, so that
    /// its own readers and its feed need not wait for the next one (P7).
    fn tell_commit(&mut self) {
        let (now, commit) = (self.mono(), self.journal.commit());
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let lacking = leading.progress.iter().filter(|(_, progress)| progress.lacks_the_news_only(commit));
        let untold: Vec<NodeId> = lacking.map(|(node, _)| *node).collect();
        if untold.is_empty() || mutant::is_on(Mutant::CommitUntold) {
            leading.tell_at = Time::NEVER;
        } else if leading.tell_at == Time::NEVER {
            leading.tell_at = now + TELL_COMMIT_AFTER;
        } else if now >= leading.tell_at {
            leading.tell_at = Time::NEVER;
            untold.into_iter().for_each(|to| self.beat_to(to));
        }
    }

    fn beat_if_due(&mut self) {
        let (now, heartbeat) = (self.mono(), self.settings.timing.heartbeat);
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let beat = leading.beat_wanted || now >= leading.next_beat;
        // Reads make beats of their own, as often as they like: periodic work keeps its own time.
        if now >= leading.next_periodic_work {
            leading.next_periodic_work = now + heartbeat;
            self.do_periodic_work();
        }
        if beat {
            self.beat();
        }
    }

    /// What a leader looks after once a beat.
    fn do_periodic_work(&mut self) {
        self.lift_lapsed_hold();
        self.let_disks_in();
        self.promote_learner();
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
        let of_use =
            |sent: &VecDeque<(u64, Time)>| sent[0].1 + fresh.times(16) >= now && sent.len() <= ROUNDS_MOST;
        while leading.sent.len() > 1 && !of_use(&leading.sent) {
            leading.sent.pop_front();
        }
        for to in self.others() {
            self.beat_to(to);
        }
    }

    pub(in crate::protocol) fn beat_to(&mut self, to: NodeId) {
        let Some(leader) = self.as_leader() else {
            return;
        };
        let (leading, heir) = (leader.leading, leader.best_heir());
        let progress = leading.progress.get(&to);
        let known = progress.is_some_and(|progress| progress.joined && progress.answered_round > 0);
        let beat = Message::Heartbeat {
            term: leading.term,
            round: self.beats_from(to) + leading.round,
            lease: self.settings.timing.lease,
            commit: self.journal.commit(),
            heir,
            boundary: leading.boundary.0,
            vector: self.vector_to_send().filter(|_| !known),
        };
        let commit = self.journal.commit();
        if let Some(progress) = self.follower_mut(to) {
            progress.told = commit;
        }
        self.send(to, beat);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(in crate::protocol) fn on_heartbeat_reply(
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
        let common = self.log().common_candidate(last).map_or(0, |position| position.index);
        let matched = matched.min(self.last().index);
        let own = round.checked_sub(self.beats_from(from));
        let Some(leading) = self.leading_mut().filter(|leading| leading.term.epoch == epoch) else {
            return;
        };
        let Some((round, sent)) = own.and_then(|round| Some((round, leading.sent_at(round)?))) else {
            return;
        };
        if !leading.progress.contains_key(&from) || !self.remembers(from, round, last.index) {
            return;
        }
        let Some(progress) = self.follower_mut(from) else {
            return;
        };
        progress.answered(round, sent, now);
        progress.full = full;
        progress.reported = matched;
        progress.vector = vector.or(progress.vector.take());
        progress.located(common.max(matched), last.index);
        if let Some(peer) = self.peers.get_mut(from) {
            peer.answered(sent);
        }
        self.note_matched(from, matched);
        self.note_kept(from, matched, true);
        if let Some(checkpoint) = digest {
            self.compare_digest(from, checkpoint);
        }
    }

    /// Whether this node may say, at this moment, that it is the leader (I4).
    pub fn is_leader(&self, now: Time) -> bool {
        self.whether_leader(now) == IsLeader::Yes
    }

    pub fn whether_leader(&self, now: Time) -> IsLeader {
        let now = now.max(self.mono());
        let lapses = self.settings.timing.leases_lapse();
        match self.as_open_leader() {
            Some(leader) if leader.is_relied_on(now) => IsLeader::Yes,
            Some(leader) if lapses && leader.older_leases_are_over(now) => IsLeader::Unproven,
            _ => IsLeader::No,
        }
    }

    fn reason_to_stop(&mut self) -> Option<Cause> {
        let leader = self.as_leader()?;
        let stuck = leader.is_stuck();
        if !self.has_seat() {
            return Some(Cause::Replaced);
        }
        if self.settings.is_available() {
            let own_disk = stuck && !self.leave_laggards_behind();
            return own_disk.then_some(Cause::Stuck);
        }
        if self.mono() >= leader.loses_majority_at() && !mutant::is_on(Mutant::NoStepDown) {
            return Some(Cause::NoMajority);
        }
        (stuck && !mutant::is_on(Mutant::StuckLeaderStays)).then_some(Cause::Stuck)
    }

    /// Stops leading for good in this epoch, and says so (P16).
    pub(in crate::protocol) fn step_down(&mut self, cause: Cause) {
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
        self.role = RoleState::Seeking(Seeking::new(self.mono(), cause));
    }

    /// The end of leading, whatever comes next. Writes that reached the log keep waiting for the
    /// record that will stand in their place (P15); reads are refused.
    pub(in crate::protocol) fn leave_leading(&mut self, cause: Cause) {
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
    pub(in crate::protocol) fn reclaim_if_outdated(&mut self, promise: Term) {
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
            self.role = RoleState::Seeking(Seeking::new(self.mono(), Cause::GreaterEpoch));
        }
    }

    /// Where no majority is needed, nobody needs to be asked: those who follow this leader go along (P32).
    fn go_on_in_a_greater_epoch(&mut self) {
        if self.journal.is_full() || !self.epochs.has_more() {
            return;
        }
        let term = self.own_term(self.epochs.next_counter());
        let followers = self.as_leader().map(Leader::joined).unwrap_or_default();
        let merges = self.leading().map(|leading| leading.merges.clone());
        let merges = merges.filter(|_| !mutant::is_on(Mutant::MergesEndWithEpochs));
        self.leave_leading(Cause::GreaterEpoch);
        self.raise_promise(term);
        let now = self.mono();
        self.lead(term, None, now);
        self.count_on(&followers);
        if let (Some(leading), Some(merges)) = (self.leading_mut(), merges) {
            leading.merges = merges;
        }
    }
}

impl Leader<'_> {
    /// The greatest value that a majority of the disks that count has reached, this node's included.
    pub(in crate::protocol) fn reached<T: Ord + Copy>(
        self,
        own: T,
        of: impl Fn(&Progress) -> T,
    ) -> Option<T> {
        if self.node.settings.is_available() {
            return self.reached_by_side(own, of);
        }
        let counted = self.leading.progress.iter().filter(|(node, _)| self.node.peer_counts(**node));
        let own = Some(own).filter(|_| self.node.own_vote() == 1 && self.node.has_seat());
        let values = counted.map(|(_, progress)| of(progress)).chain(own);
        reached_by(values, self.node.quorum())
    }

    /// No leader before this one may be relied on any more (P11).
    pub(in crate::protocol) fn older_leases_are_over(self, now: Time) -> bool {
        now >= self.leading.leases_until
    }

    fn is_relied_on(self, now: Time) -> bool {
        self.older_leases_are_over(now) && self.lease_until().is_some_and(|until| now < until)
    }

    /// Until when a majority lets this leader rely on it (P11).
    fn lease_until(self) -> Option<Time> {
        let now = self.node.mono();
        let sent = match mutant::is_on(Mutant::LeaseFromReceipt) {
            true => self.reached(now, |progress| progress.answered_at),
            false => self.reached(now, |progress| progress.answered_sent),
        };
        sent.map(|sent| relied_until(sent, &self.node.settings.timing))
    }

    /// Nothing has been committed for too long.
    fn is_stuck(self) -> bool {
        self.node.mono() >= self.stuck_at()
    }

    fn stuck_at(self) -> Time {
        let patience = self.node.settings.timing.stuck_after();
        self.leading.behind_since.map_or(Time::NEVER, |since| since + patience)
    }

    /// When no majority will have been heard for too long.
    fn loses_majority_at(self) -> Time {
        let heard = self.reached(self.node.mono(), |progress| progress.answered_at);
        let since = heard.unwrap_or_default().max(self.leading.since).max(self.node.woke_at);
        since + self.node.settings.timing.dead_after
    }

    pub(in crate::protocol) fn deadline(self) -> Time {
        let leading = self.leading;
        let handing = leading.handing.as_ref().map_or(Time::NEVER, |handing| handing.until);
        let periodic = leading.next_beat.min(leading.next_periodic_work);
        let told = periodic.min(leading.tell_at);
        told.min(self.stuck_at()).min(self.loses_majority_at()).min(handing).min(self.merging_deadline())
    }
}

// A leader brings every follower's log to its own, and knows what a majority has (P5, P7).
impl Node {
    /// The process is dead, or another answers in its name, perhaps on another disk: what the one before
    /// acknowledged may not be on it (P10). Nothing is sent until it says where it stands.
    pub(in crate::protocol) fn forget_progress(&mut self, node: NodeId, replaced: bool) {
        let (now, next) = (self.mono(), self.last().index + 1);
        if let Some(progress) = self.follower_mut(node) {
            *progress = if replaced { progress.replaced(next, now) } else { progress.restarted(next, now) };
        }
        if let Some(leading) = self.leading_mut().filter(|_| replaced) {
            leading.ballots.forget(node);
        }
    }

    /// Sends every follower what it lacks, as much as may be on its way at once.
    fn replicate(&mut self) {
        let mut shared: Option<(Index, Records)> = None;
        for to in self.others() {
            loop {
                let next = match self.next_step(to) {
                    Step::Wait => break,
                    Step::Snapshot => {
                        self.send_whole_or_rest(to);
                        break;
                    }
                    Step::Append(next) => next,
                };
                let records = match &shared {
                    Some((from, records)) if *from == next => records.clone(),
                    _ => self.log().above(next - 1, &self.settings.limits),
                };
                shared = Some((next, records.clone()));
                if !self.send_append(to, next, records) {
                    break;
                }
            }
        }
    }

    /// The follower's next record is gone from this log. In available mode the leader knows what the follower has, and sends only the rest.
    /// That leaves out what the follower has acknowledged since it joined: otherwise a difference that takes longer to work out than records are kept
    /// would be sent whole again and again.
    fn send_whole_or_rest(&mut self, to: NodeId) {
        let term = self.journal.promise();
        let base = self.as_leader().and_then(|leader| leader.included_by(to)).filter(|base| !base.is_empty());
        match base {
            Some(base) => {
                let after = self.journal.disk().vote_and_log();
                self.out.push(Output::SendOverride { to, term, base, after });
            }
            None => self.send_snapshot(to, term),
        }
    }

    /// What this follower may be sent now.
    fn next_step(&mut self, to: NodeId) -> Step {
        let (now, last, base) = (self.mono(), self.last().index, self.log().base().index);
        let settings = &self.settings;
        let RoleState::Leading(leading) = &mut self.role else {
            return Step::Wait;
        };
        match leading.progress.get_mut(&to) {
            Some(progress) => progress.step(now, base, last, settings),
            None => Step::Wait,
        }
    }

    /// Says whether anything was sent: there is nothing beyond the end of the log.
    fn send_append(&mut self, to: NodeId, next: Index, records: Records) -> bool {
        let (now, term, commit) = (self.mono(), self.journal.promise(), self.journal.commit());
        let Some(prev) = self.log().position(next - 1) else {
            return false;
        };
        if let Some(progress) = self.follower_mut(to) {
            progress.sent(prev.index + records.len() as Index, now);
            progress.told = commit;
        }
        self.send(to, Message::Append { term, prev, records, commit });
        true
    }

    pub(in crate::protocol) fn on_appended(&mut self, from: NodeId, epoch: Epoch, matched: Index) {
        if self.leading().is_some_and(|leading| leading.term.epoch == epoch) {
            self.note_matched(from, matched);
            self.note_kept(from, matched, false);
        }
    }

    fn note_matched(&mut self, from: NodeId, matched: Index) {
        let (matched, base) = (matched.min(self.last().index), self.log().base().index);
        if let Some(progress) = self.follower_mut(from).filter(|_| matched > 0) {
            progress.acknowledged(matched);
            progress.streams_again(base);
        }
    }

    /// The follower does not have `prev`. Its hint and our log name the greatest position that both
    /// may have; each such round skips at least one epoch.
    pub(in crate::protocol) fn on_gap(&mut self, from: NodeId, epoch: Epoch, prev: Position, hint: Position) {
        let (common, available) = (self.log().common_candidate(hint), self.settings.is_available());
        let Some(leading) = self.leading_mut().filter(|leading| leading.term.epoch == epoch) else {
            return;
        };
        let Some(progress) = leading.progress.get_mut(&from) else {
            return;
        };
        let outdated = prev.index < progress.matched || prev.index >= progress.next;
        let answered_already = progress.mode == Sending::Probe && prev.index + 1 != progress.next;
        let elsewhere = matches!(progress.mode, Sending::Unknown | Sending::Snapshot);
        if outdated || answered_already || elsewhere {
            return;
        }
        // A common position below this log's base cannot be seen: index zero asks for a snapshot.
        if common.is_none() && available && progress.vector.is_none() {
            // Its next answer to a beat says what it includes.
            progress.mode = Sending::Unknown;
            progress.inflight.clear();
            return;
        }
        let from_index = common.map_or(0, |position| position.index);
        progress.rewind(from_index.max(progress.matched));
    }

    /// Commits what a majority has durably. Records of older epochs are committed only along with one
    /// of this epoch (P7): until then another leader may still overwrite them.
    fn advance_commit(&mut self) {
        self.commit_what_is_reached();
        self.note_whether_behind();
        self.release_acknowledgements();
    }

    fn commit_what_is_reached(&mut self) {
        let Some(reached) = self.as_leader().and_then(Leader::committable) else {
            return;
        };
        let Some(leading) = self.leading_mut() else {
            return;
        };
        if reached < leading.open_index && !mutant::is_on(Mutant::CommitOldEpoch) {
            return;
        }
        let opens = !leading.opened && reached >= leading.open_index;
        leading.opened |= opens;
        let epoch = leading.term.epoch;
        self.commit_to(reached);
        if opens {
            self.event(Event::Opened { epoch });
        }
    }

    fn note_whether_behind(&mut self) {
        let (now, commit, last) = (self.mono(), self.journal.commit(), self.last().index);
        if let Some(leading) = self.leading_mut() {
            let advanced = leading.behind_from != commit;
            leading.behind_from = commit;
            match (commit < last, leading.behind_since) {
                (false, _) => leading.behind_since = None,
                (true, Some(_)) if !advanced => {}
                (true, _) => leading.behind_since = Some(now),
            }
        }
    }
}

impl Leader<'_> {
    /// What a follower's log includes, as far as it is known: what it had when it joined, or all up to where it matches.
    fn included_by(self, follower: NodeId) -> Option<Vector> {
        let progress = self.leading.progress.get(&follower)?;
        let joined = progress.vector.clone()?;
        let brought = self.leading.included_at(progress.matched);
        Some(brought.filter(|_| !mutant::is_on(Mutant::OverrideFromTheStart)).unwrap_or(joined))
    }

    /// What a majority has on disk.
    fn committable(self) -> Option<Index> {
        let own = self.node.journal.disk().upto();
        if mutant::is_on(Mutant::CommitBelowMajority) {
            let matched = self.leading.progress.values().map(|progress| progress.matched);
            return reached_by(matched.chain([own]), self.node.quorum() - 1);
        }
        self.reached(own, |progress| progress.matched)
    }
}
