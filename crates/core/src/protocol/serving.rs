//! What clients ask of a leader: writes and the answers to them (P15), holds of the service (P22), reads by one confirmation round for all that
//! wait (P13, I3).

use super::messages::{Proposal, Refusal, ServiceChange, Verdict};
use super::meta::Records;
use super::mutant::{self, Mutant};
use super::node::{Leader, Node};
use super::quorum::reached_by;
use super::roles::{Leading, WaitingRead};
use super::settings::Ack;
use crate::types::{Entry, Format, Index, Owner, Position, Record, RequestId};

// A client's write goes from a proposal to its verdict (P12, P15, P22, P23).
impl Node {
    /// Each entry becomes one record, or is refused and surely never applied. Those that are taken
    /// go to disk and to the followers as one batch.
    pub(in crate::protocol) fn on_propose(&mut self, proposals: Vec<Proposal>) {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for proposal in proposals {
            let Proposal { request, entry, clears_up } = proposal;
            match self.refusal(&entry, clears_up, taken.len() as Index, bytes) {
                Some(refusal) => self.verdict(request, Verdict::Refused(refusal)),
                None => {
                    bytes += entry.size();
                    let record = self.stamped(entry, taken.len() as Index);
                    self.wait_for(request, record.position);
                    taken.push(record);
                }
            }
        }
        if !taken.is_empty() {
            self.append_to_log(taken.into());
        }
    }

    /// Why a proposal would be refused now, behind so many records and bytes that are proposed with it. It does not change
    /// while nothing else happens.
    pub fn refusal(&self, entry: &Entry, clears_up: bool, records: Index, bytes: usize) -> Option<Refusal> {
        let Some(leading) = self.leading().filter(|leading| leading.opened) else {
            return Some(Refusal::NotLeader { leader: self.leader() });
        };
        let limits = &self.settings.limits;
        let many = self.last().index + records - self.journal.commit() >= limits.uncommitted;
        let large = leading.uncommitted_bytes + bytes >= limits.uncommitted_bytes;
        let is_clients = !clears_up || mutant::is_on(Mutant::GiveUpIsRefused);
        let is_held = self.service_is_down() && matches!(entry, Entry::Client(_));
        match () {
            () if leading.handing.is_some() => Some(Refusal::HandingOver),
            () if self.journal.is_full() => Some(Refusal::DiskFull),
            () if is_clients && (many || large) => Some(Refusal::TooMany),
            () if is_clients && is_held => Some(Refusal::ServiceDown),
            () if entry.format() > self.shared_format() => Some(Refusal::FormatNotShared),
            () => None,
        }
    }

    /// The newest format that every node of the topology has shown, or that the log already holds (P23).
    fn shared_format(&self) -> Format {
        if mutant::is_on(Mutant::NewFormatAtOnce) {
            return self.settings.format;
        }
        let members = self.peers.iter().filter(|(node, _)| self.is_member(*node));
        let shown = members.map(|(_, peer)| peer.format).min();
        let shown = shown.unwrap_or(self.settings.format).max(Format(1));
        shown.min(self.settings.format).max(self.log().format())
    }

    fn stamped(&mut self, entry: Entry, offset: Index) -> Record {
        let (now, index) = (self.now, self.last().index + 1 + offset);
        let epoch = self.promise();
        let stamp = match self.leading_mut() {
            Some(leading) => {
                let stamp = leading.clock.stamp(now);
                leading.clock.stamped(stamp, now.mono);
                stamp
            }
            None => self.log().last_stamp(),
        };
        Record { position: Position::new(epoch, index), stamp, entry }
    }

    /// One of the protocol's own records.
    pub(in crate::protocol) fn append_as_leader(&mut self, entry: Entry) -> Position {
        let record = self.stamped(entry, 0);
        let position = record.position;
        self.append_to_log(Records::from([record]));
        position
    }

    fn wait_for(&mut self, request: RequestId, position: Position) {
        let replaced = self.waiting.add(position.index, position.epoch, request);
        if let Some(before) = replaced {
            self.verdict(before, Verdict::Unknown);
        }
    }

    pub(in crate::protocol) fn release_acknowledgements(&mut self) {
        self.decide_waiting(self.acknowledged());
    }

    /// What a leader acknowledges: what is committed, under `ack = all` only once it has it on its own disk, and so has every
    /// follower that is not suspected.
    pub(in crate::protocol) fn acknowledged(&self) -> Index {
        match self.settings.ack {
            Ack::Majority => self.journal.commit(),
            Ack::All if mutant::is_on(Mutant::AckAllByMajority) => self.journal.commit(),
            Ack::All => self.journal.commit().min(self.as_leader().map_or(0, Leader::reached_by_all_alive)),
        }
    }

    /// Answers the writes up to `upto`: each stands there, or another leader's record does.
    pub(in crate::protocol) fn decide_waiting(&mut self, upto: Index) {
        while let Some((index, epoch, request)) = self.waiting.take(upto) {
            let position = Position::new(epoch, index);
            let verdict = match self.log().position(index) {
                // Who does not lead hears of a commit, and not of who has it: that it happened is not what was asked for.
                Some(there) if there == position && self.knows_commits_only() => Verdict::Unknown,
                Some(there) if there == position => self.written(position),
                Some(_) => Verdict::Refused(Refusal::Superseded),
                // Trimmed while some follower lacked it: nothing takes the place of a leader's own record.
                None if self.leads() == Some(epoch) && !mutant::is_on(Mutant::TrimmedIsUnknown) => {
                    self.written(position)
                }
                // Covered by a snapshot: what stood there is out of sight.
                None => Verdict::Unknown,
            };
            self.verdict(request, verdict);
        }
    }

    fn knows_commits_only(&self) -> bool {
        let all = self.settings.ack == Ack::All && self.leading().is_none();
        all && !mutant::is_on(Mutant::AckAllWhenDeposed)
    }

    fn written(&self, position: Position) -> Verdict {
        let durable = |index: Index| usize::from(index >= position.index);
        let acks = self.leading().map_or(self.quorum(), |leading| {
            let counted = leading.progress.iter().filter(|(node, _)| self.peer_counts(**node));
            let others: usize = counted.map(|(_, progress)| durable(progress.matched)).sum();
            others + durable(self.journal.disk().upto())
        });
        Verdict::Written { position, acks }
    }

    pub(in crate::protocol) fn on_service(&mut self, request: RequestId, change: ServiceChange) {
        let entry = match change {
            ServiceChange::Down { owner, ttl, reason } => Entry::ServiceDown { owner, ttl, reason },
            ServiceChange::Up { owner } if self.log().holds_of_service().held_by(owner) => {
                Entry::ServiceUp { owner }
            }
            // An owner lifts its own hold only; there is none to lift.
            ServiceChange::Up { .. } if self.is_open() => return self.on_read(request, 0),
            ServiceChange::Up { owner } => Entry::ServiceUp { owner },
        };
        self.on_propose(vec![Proposal::new(request, entry)]);
    }

    /// Lifts a hold whose ttl has passed: a dead coordinator cannot keep the cluster down (P22).
    pub(in crate::protocol) fn lift_lapsed_hold(&mut self) {
        let lapsed = self.as_open_leader().filter(|_| !self.journal.is_full()).and_then(Leader::lapsed_hold);
        if let Some(owner) = lapsed.filter(|_| !mutant::is_on(Mutant::HoldForEver)) {
            self.append_as_leader(Entry::ServiceUp { owner });
        }
    }
}

impl Leader<'_> {
    fn reached_by_all_alive(self) -> Index {
        let (now, patience) = (self.node.mono(), self.node.settings.timing.dead_after);
        let voters = self.leading.progress.iter().filter(|(node, _)| self.node.is_voter(**node));
        let alive = voters.filter(|(node, progress)| {
            let heard = progress.answered_at.max(self.leading.since);
            heard + patience > now && !self.node.peers.is_refused(**node)
        });
        let own = match mutant::is_on(Mutant::AckAllBeforeOwnDisk) {
            true => Index::MAX,
            false => self.node.journal.disk().upto(),
        };
        alive.map(|(_, progress)| progress.matched).fold(own, Index::min)
    }

    fn lapsed_hold(self) -> Option<Owner> {
        let now = self.leading.clock.now(self.node.mono());
        self.node.log().holds_of_service().lapsed(now)
    }
}

// One confirmation round answers all linear reads that wait (P13, I3).
impl Node {
    /// `at_least` is zero for a plain read. For an answer that changes nothing it is the newest record
    /// that the answer was judged against: the answer waits for that record's commit as well (P14).
    pub(in crate::protocol) fn on_read(&mut self, request: RequestId, at_least: Index) {
        let leader = self.leader();
        let (commit, most) = (self.journal.commit(), self.settings.limits.reads);
        let Some(leading) = self.leading_mut() else {
            return self.verdict(request, Verdict::Refused(Refusal::NotLeader { leader }));
        };
        if leading.reads.waiting.len() >= most {
            return self.verdict(request, Verdict::Refused(Refusal::TooManyReads));
        }
        let opened = match mutant::is_on(Mutant::ReadBeforeOpen) {
            true => 0,
            false => leading.open_index,
        };
        let joined = mutant::is_on(Mutant::ReadJoinsRound);
        let round = if joined { leading.round } else { leading.round + 1 };
        let index = commit.max(opened).max(at_least);
        leading.reads.waiting.push(WaitingRead { request, index, round });
    }

    pub(in crate::protocol) fn settle_reads(&mut self) {
        let Some(leader) = self.as_leader().filter(|leader| !leader.leading.reads.waiting.is_empty()) else {
            return;
        };
        let confirmed = leader.confirmed_round();
        let commit = self.journal.commit();
        let ready = |read: &WaitingRead| read.round <= confirmed && read.index <= commit;
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let (ready, waiting) = std::mem::take(&mut leading.reads.waiting).into_iter().partition(ready);
        leading.reads.waiting = waiting;
        leading.want_round_for_reads(confirmed);
        for WaitingRead { request, index, .. } in ready {
            self.verdict(request, Verdict::Readable { index });
        }
    }
}

impl Leader<'_> {
    fn confirmed_round(self) -> u64 {
        let newest = self.leading.round;
        match () {
            () if mutant::is_on(Mutant::ReadUnconfirmed) => u64::MAX,
            () if mutant::is_on(Mutant::AnyoneConfirms) => {
                let rounds = self.leading.progress.values().map(|progress| progress.answered_round);
                reached_by(rounds.chain([newest]), self.node.quorum()).unwrap_or(0)
            }
            () => self.reached(newest, |progress| progress.answered_round).unwrap_or(0),
        }
    }
}

impl Leading {
    /// A new round starts when reads wait for it and none is on its way for others.
    fn want_round_for_reads(&mut self, confirmed: u64) {
        let mut rounds = self.reads.waiting.iter().map(|read| read.round);
        let under_way = rounds.clone().any(|round| confirmed < round && round <= self.round);
        let wanted = rounds.any(|round| round > self.round);
        self.beat_wanted |= wanted && !under_way;
    }
}
