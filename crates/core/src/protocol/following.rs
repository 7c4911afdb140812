//! A follower hears its leader, takes its records, and grants it a lease. What a log lacks comes by records, or by a snapshot (P6, P26).

use super::durability::After;
use super::log::may_follow;
use super::messages::{Cause, Event, Fault, Message, Output, Term, Write};
use super::meta::{Records, SnapshotMeta};
use super::mutant::{self, Mutant};
use super::node::{Node, RoleState};
use super::roles::Following;
use super::settings::LEASE_MOST;
use crate::types::{Epoch, Index, NodeId, Position, Record, Span, Vector};

impl Node {
    pub(in crate::protocol) fn settle_following(&mut self) {
        let RoleState::Following(following) = &self.role else {
            return;
        };
        if self.mono() >= self.following_deadline(following) {
            let cause = match following.tentative {
                Some(_) => Cause::NoDecision,
                None => Cause::Silence,
            };
            self.suspect(cause);
        }
    }

    /// Whether to listen to one that speaks as the leader of `term` (P2). Raises the promise if need be.
    pub(in crate::protocol) fn accept_leader(
        &mut self,
        from: NodeId,
        term: Term,
        has: Option<&Vector>,
    ) -> bool {
        if from != term.epoch.leader || !self.joins(from, term, has) {
            return false;
        }
        let promise = self.known_promise(term);
        let below =
            term.epoch < promise.epoch || (term.epoch == promise.epoch && term.claim != promise.claim);
        if below && !mutant::is_on(Mutant::AcceptBelowPromise) {
            self.send(from, Message::Stale { promise });
            return false;
        }
        if self.epochs.is_over(term.epoch) {
            return false;
        }
        if term.epoch > promise.epoch && !mutant::is_on(Mutant::AppendKeepsPromise) {
            self.raise_promise(term);
        }
        self.listen_to(term);
        true
    }

    fn known_promise(&mut self, term: Term) -> Term {
        let write = self.journal.learn_claim(term);
        self.out.extend(write);
        self.journal.promise()
    }

    fn listen_to(&mut self, term: Term) {
        let now = self.mono();
        match &mut self.role {
            RoleState::Following(following)
                if following.epoch == term.epoch && following.tentative.is_none() =>
            {
                following.heard = now;
            }
            RoleState::Following(following) if following.epoch == term.epoch => {
                following.heard = now;
                following.tentative = None;
                self.event(Event::Following { epoch: term.epoch });
            }
            _ => {
                self.leave_leading(Cause::GreaterEpoch);
                self.role = RoleState::Following(Following::new(term.epoch, now, None));
                self.event(Event::Following { epoch: term.epoch });
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(in crate::protocol) fn on_heartbeat(
        &mut self,
        from: NodeId,
        term: Term,
        round: u64,
        lease: Span,
        commit: Index,
        heir: Option<NodeId>,
        boundary: Index,
        has: Option<&Vector>,
    ) {
        if !self.accept_leader(from, term, has) {
            return;
        }
        self.grant(from, term.epoch, lease);
        if let RoleState::Following(following) = &mut self.role {
            following.heir = heir;
        }
        self.commit_as_follower(commit);
        let (matched, last, after) = self.beat_end();
        let reply = Message::HeartbeatReply {
            epoch: term.epoch,
            round,
            matched,
            last,
            full: self.journal.is_full(),
            digest: self.checkpoints.at(boundary),
            vector: self.vector_to_send().filter(|_| self.matched() == 0),
        };
        self.send_after(from, reply, after);
    }

    /// As much as the leader asks for, since it relies on that. The disk knows it before the answer leaves (P11).
    fn grant(&mut self, to: NodeId, epoch: Epoch, lease: Span) {
        let (now, own) = (self.mono(), self.settings.timing.lease);
        let most = if mutant::is_on(Mutant::GrantsByConfiguration) { own } else { LEASE_MOST };
        let lease = lease.min(most);
        self.grants.grant(epoch, self.disk_of(to), now, lease);
        let others = match mutant::is_on(Mutant::LeaseFallsAtOnce) {
            true => Span::ZERO,
            false => self.grants.longest(now),
        };
        // It falls once nobody relies on this node for longer, and not a little with each beat.
        let (stored, usual) = (self.journal.vote().lease, lease.max(own));
        let longest = usual.max(others);
        if longest > stored || (longest < stored && longest == usual) {
            let write = self.journal.note_lease(longest);
            self.out.push(write);
        }
    }

    /// What the answer to a beat says of this log: how much of it counts, where it ends, and what must be on disk before the answer
    /// leaves. It does not wait for records (P29): what counts is on disk, and the end only tells the leader where to go on.
    fn beat_end(&self) -> (Index, Position, After) {
        if mutant::is_on(Mutant::AckBeforeSync) {
            return (self.matched(), self.last(), After::default());
        }
        let waits = self.settings.is_available() || self.journal.disk().is_installing();
        if waits || mutant::is_on(Mutant::BeatsWaitForRecords) {
            let (last, after) = self.journal.told_end(&self.settings);
            return (self.matched().min(last.index), last, after);
        }
        let counts =
            if mutant::is_on(Mutant::BeatsCountUnsynced) { Index::MAX } else { self.journal.disk().upto() };
        (self.matched().min(counts), self.last(), self.journal.disk().vote())
    }

    fn matched(&self) -> Index {
        match &self.role {
            RoleState::Following(following) => following.matched,
            _ => 0,
        }
    }

    /// What the leader has committed counts here only as far as this log is known to match (P7).
    fn commit_as_follower(&mut self, commit: Index) {
        match mutant::is_on(Mutant::CommitUnmatched) {
            true => self.commit_to(commit),
            false => self.commit_to(commit.min(self.matched())),
        }
    }

    pub(in crate::protocol) fn on_append(
        &mut self,
        from: NodeId,
        term: Term,
        prev: Position,
        records: &Records,
        commit: Index,
    ) {
        if !may_follow(prev, records, term.epoch) {
            return;
        }
        // Whoever has a record right after this log's last has all of this log.
        let has = (prev == self.last()).then(|| self.own_vector());
        if !self.accept_leader(from, term, has.as_ref())
            || (self.journal.is_full() && !mutant::is_on(Mutant::AckWhenFull))
        {
            return;
        }
        let epoch = term.epoch;
        if !self.continues(prev) && !mutant::is_on(Mutant::NoPrevCheck) {
            let hint = self.could_match(prev);
            self.send_acknowledgement(from, Message::Gap { epoch, prev, hint });
            return;
        }
        let matched = records.last().map_or(prev, |record| record.position);
        if self.merge(records).is_err() {
            return;
        }
        let matched = match mutant::is_on(Mutant::AckLogEnd) {
            true => self.last().index,
            false => matched.index,
        };
        if let RoleState::Following(following) = &mut self.role {
            following.matched = following.matched.max(matched);
        }
        self.commit_as_follower(commit);
        self.send_acknowledgement(from, Message::Appended { epoch, matched });
    }

    /// Whether what follows `prev` in its sender's log may follow it here (P5). Committed records are
    /// the same everywhere, so below the base there is nothing to compare.
    pub(in crate::protocol) fn continues(&self, prev: Position) -> bool {
        let below = prev.index < self.log().base().index && !self.settings.is_available();
        below || self.log().holds(prev)
    }

    /// The greatest position here that could stand in the sender's log. Among sides only the end of the log tells
    /// anything: what agrees further down may have gone different ways (P33).
    fn could_match(&self, prev: Position) -> Position {
        match self.settings.is_available() {
            true => self.last(),
            false => self.log().common_candidate(prev).unwrap_or(self.log().base()),
        }
    }

    /// Takes records of another log into this one: what agrees stays, what conflicts is cut (P5).
    pub(in crate::protocol) fn merge(&mut self, records: &Records) -> Result<(), Fault> {
        let fresh = records.iter().position(|record| !self.has(record));
        let Some(first) = fresh else {
            return self.cut_always(records);
        };
        let fresh: Records = match first {
            0 => records.clone(),
            _ => records[first..].iter().cloned().collect(),
        };
        if let Some(record) = fresh.iter().find(|r| r.entry.format() > self.settings.format) {
            let fault = Fault::UnknownFormat { index: record.index() };
            self.stop_on_word(fault);
            return Err(fault);
        }
        let before = fresh[0].index() - 1;
        if self.log().position(before).is_some_and(|before| before.epoch > fresh[0].epoch()) {
            // What stands before them is committed here, and of a later epoch: they are of no log that this one has followed.
            return Err(Fault::CommittedConflict { index: before });
        }
        self.cut_above(before)?;
        self.append_to_log(fresh);
        Ok(())
    }

    fn has(&self, record: &Record) -> bool {
        record.index() <= self.log().base().index || self.log().holds(record.position)
    }

    fn cut_always(&mut self, records: &Records) -> Result<(), Fault> {
        match (mutant::is_on(Mutant::TruncateAlways), records.last()) {
            (true, Some(last)) => self.cut_above(last.index()),
            _ => Ok(()),
        }
    }

    fn cut_above(&mut self, index: Index) -> Result<(), Fault> {
        if index >= self.last().index {
            return Ok(());
        }
        if self.settings.is_available() && !mutant::is_on(Mutant::CutInAvailable) {
            // It is kept, and merged when its time comes (P31).
            return Err(Fault::CommittedConflict { index: index + 1 });
        }
        match self.journal.cut_above(index) {
            Ok(write) => {
                self.out.push(write);
                // Only whoever leads and contradicts itself has had more than this acknowledged.
                if let RoleState::Following(following) = &mut self.role {
                    following.matched = following.matched.min(index);
                }
                Ok(())
            }
            Err(fault) => {
                self.stop_on_word(fault);
                Err(fault)
            }
        }
    }

    pub(in crate::protocol) fn append_to_log(&mut self, records: Records) {
        let bytes: usize = records.iter().map(|record| record.entry.size()).sum();
        if let Some(leading) = self.leading_mut() {
            leading.uncommitted_bytes += bytes;
        }
        let write = self.journal.append(records, self.mono());
        self.out.push(write);
        self.note_formed();
    }
}

// A node gives and takes what another log lacks: by records, or by a snapshot (P6, P26).
impl Node {
    /// A candidate pulls. Whoever promised that very claim answers, leader or not; nobody else does.
    pub(in crate::protocol) fn on_pull(&mut self, from: NodeId, term: Term, after: Position) {
        if term != self.journal.promise() || term.epoch.leader != from {
            return;
        }
        let Some(prev) = self.log().common_candidate(after) else {
            return self.send_snapshot(from, term);
        };
        let (end, after) = self.journal.told_end(&self.settings);
        if prev.index > end.index {
            return;
        }
        let mut records = self.log().above(prev.index, &self.settings.limits);
        if records.last().is_some_and(|last| last.index() > end.index) {
            records = records.iter().filter(|record| record.index() <= end.index).cloned().collect();
        }
        self.send_after(from, Message::Pulled { term, prev, records }, after);
    }

    pub(in crate::protocol) fn send_snapshot(&mut self, to: NodeId, term: Term) {
        let after = self.journal.disk().vote_and_log();
        self.out.push(Output::SendSnapshot { to, term, after });
    }

    /// A whole state, from the leader or for a claim.
    pub(in crate::protocol) fn on_snapshot(&mut self, from: NodeId, term: Term, meta: SnapshotMeta) {
        if meta.at.epoch > term.epoch {
            return;
        }
        let pulled = self.claiming().is_some_and(|claiming| claiming.term == term);
        if (!pulled && !self.accept_leader(from, term, meta.vector.as_ref())) || self.journal.is_full() {
            return;
        }
        let index = meta.index();
        if !self.is_included_in(meta.vector.as_ref()) {
            return;
        }
        self.take_snapshot(meta);
        if pulled {
            self.give_claim_more_time();
            return self.pull_on(from, term);
        }
        self.note_brought_up_to(from, term.epoch, index);
    }

    /// This log holds everything up to there now, as the leader's does.
    pub(in crate::protocol) fn note_brought_up_to(&mut self, leader: NodeId, epoch: Epoch, index: Index) {
        if let RoleState::Following(following) = &mut self.role {
            following.matched = following.matched.max(index);
        }
        self.send_acknowledgement(leader, Message::Appended { epoch, matched: index });
    }

    /// A snapshot holds only what is committed, so it never takes back what is committed here (I7).
    fn take_snapshot(&mut self, meta: SnapshotMeta) {
        let index = meta.index();
        if index <= self.journal.commit() && !mutant::is_on(Mutant::SnapshotGoesBack) {
            return;
        }
        if self.log().holds(meta.at) {
            return self.commit_to(index);
        }
        self.go_on_from(meta.clone(), Write::Install);
        self.out.push(Output::Restore(meta));
        self.note_formed();
        self.decide_waiting(index);
    }

    /// Log and state are replaced by a state that includes them.
    pub(in crate::protocol) fn go_on_from(&mut self, meta: SnapshotMeta, write: fn(SnapshotMeta) -> Write) {
        if self.settings.is_available() {
            // Digests of another history say nothing about this one (P25).
            self.checkpoints = Default::default();
        }
        let write = self.journal.go_on_from(meta, write, self.mono());
        self.out.push(write);
    }

    pub(in crate::protocol) fn on_snapshot_taken(&mut self, index: Index) {
        let write = self.journal.trim(index, &self.settings.limits);
        self.out.extend(write);
    }
}
