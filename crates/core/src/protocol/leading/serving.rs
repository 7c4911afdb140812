//! The requests of clients to a leader: writes and the answers to them (P15), holds of the service (P22), and linear reads. One
//! confirmation round serves all reads that wait (P13, I3).

use super::{Leading, WaitingRead};
use crate::protocol::core::Core;
use crate::protocol::messages::{Proposal, Refusal, ServiceChange, Verdict};
use crate::protocol::meta::Records;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::reached_by;
use crate::protocol::settings::Ack;
use crate::types::{Entry, Format, Index, Position, Record, RequestId};

// A client's write goes from a proposal to its verdict (P12, P15, P22, P23).
impl Leading {
    /// Each entry becomes one record, or is refused and surely never applied. The accepted entries
    /// go to disk and to the followers as one batch.
    pub fn on_propose(&mut self, core: &mut Core, proposals: Vec<Proposal>) {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for proposal in proposals {
            let Proposal { request, entry, clears_up } = proposal;
            match self.refusal(core, &entry, clears_up, taken.len() as Index, bytes) {
                Some(refusal) => core.refuse(request, refusal),
                None => {
                    bytes += entry.size();
                    let record = self.stamped(core, entry, taken.len() as Index);
                    // An earlier write of this node stood at that index, and is gone from the log. Only one
                    // writer is remembered for an index, and the new record is not committed, so the earlier
                    // writer hears that its outcome is unknown (P15).
                    if let Some(replaced) = core.undecided.add(record.position, request) {
                        core.verdict(replaced, Verdict::Unknown);
                    }
                    taken.push(record);
                }
            }
        }
        if !taken.is_empty() {
            core.append(taken.into());
        }
    }

    /// The reason why a proposal would be refused now, if `records` records of `bytes` bytes are proposed before it in the same batch. The
    /// answer stays the same while nothing else happens.
    pub fn refusal(
        &self,
        core: &Core,
        entry: &Entry,
        clears_up: bool,
        records: Index,
        bytes: usize,
    ) -> Option<Refusal> {
        let limits = &core.settings.limits;
        // The accepted part of the same batch counts, too: otherwise eight proposals at once would pass a bound of one.
        let many = core.last().index + records - core.journal.commit() >= limits.uncommitted;
        let large = core.journal.uncommitted_bytes() + bytes >= limits.uncommitted_bytes;
        let is_clients = !clears_up || mutant::is_on(Mutant::GiveUpIsRefused);
        let is_held = core.service_is_down() && matches!(entry, Entry::Client(_));
        match () {
            () if !self.opened => Some(Refusal::NotLeader { leader: None }),
            () if self.handing.is_some() => Some(Refusal::HandingOver),
            () if core.journal.is_full() => Some(Refusal::DiskFull),
            () if is_clients && (many || large) => Some(Refusal::TooMany),
            () if is_clients && is_held => Some(Refusal::ServiceDown),
            () if entry.format() > shared_format(core) => Some(Refusal::FormatNotShared),
            () => None,
        }
    }

    fn stamped(&mut self, core: &Core, entry: Entry, offset: Index) -> Record {
        let stamp = self.clock.stamp(core.now);
        self.clock.stamped(stamp, core.mono());
        let position = Position::new(self.term.epoch, core.last().index + 1 + offset);
        Record { position, stamp, entry }
    }

    /// Appends one of the protocol's own records.
    pub(super) fn append(&mut self, core: &mut Core, entry: Entry) -> Position {
        let record = self.stamped(core, entry, 0);
        let position = record.position;
        core.append(Records::from([record]));
        position
    }

    /// Answers the writes that may be acknowledged. A record may have been trimmed while some follower lacked it. Its outcome is still
    /// known if this leader wrote it: no other record replaces it.
    pub(super) fn release_acknowledgements(&self, core: &mut Core) {
        core.decide(self.acknowledged(core), |core, position, stands| {
            let own = position.epoch == self.term.epoch && !mutant::is_on(Mutant::TrimmedIsUnknown);
            match stands || own {
                true => self.written(core, position),
                false => Verdict::Unknown,
            }
        });
    }

    /// The last index that is acknowledged. It is the commit index. Under `ack = all` a record also has to be on this node's own disk, and
    /// on the disk of every follower that is not suspected.
    pub(super) fn acknowledged(&self, core: &Core) -> Index {
        match core.settings.ack {
            Ack::Majority => core.journal.commit(),
            Ack::All if mutant::is_on(Mutant::AckAllByMajority) => core.journal.commit(),
            Ack::All => core.journal.commit().min(self.reached_by_all_alive(core)),
        }
    }

    fn reached_by_all_alive(&self, core: &Core) -> Index {
        let (now, patience) = (core.mono(), core.settings.timing.dead_after);
        let voters = self.progress.iter().filter(|(node, _)| core.is_voter(**node));
        let alive = voters.filter(|(node, progress)| {
            // A new leader has heard no node yet. At first every voter counts as alive: otherwise a write would not wait for a
            // voter that is alive (P15).
            let heard = progress.answered_at.max(self.since);
            heard + patience > now && !core.peers.is_refused(**node)
        });
        let own = match mutant::is_on(Mutant::AckAllBeforeOwnDisk) {
            true => Index::MAX,
            false => core.journal.disk().upto(),
        };
        alive.map(|(_, progress)| progress.matched).fold(own, Index::min)
    }

    fn written(&self, core: &Core, position: Position) -> Verdict {
        let durable = |index: Index| usize::from(index >= position.index);
        let counted = self.progress.iter().filter(|(node, _)| self.peer_counts(core, **node));
        let others: usize = counted.map(|(_, progress)| durable(progress.matched)).sum();
        Verdict::Written { position, acks: others + durable(core.journal.disk().upto()) }
    }

    pub fn on_service(&mut self, core: &mut Core, request: RequestId, change: ServiceChange) {
        let entry = match change {
            ServiceChange::Down { owner, ttl, reason } => Entry::ServiceDown { owner, ttl, reason },
            ServiceChange::Up { owner } if core.log().holds_of_service().held_by(owner) => {
                Entry::ServiceUp { owner }
            }
            // An owner lifts only its own hold, and this owner has none.
            ServiceChange::Up { .. } if self.opened => return self.on_read(core, request, 0),
            ServiceChange::Up { owner } => Entry::ServiceUp { owner },
        };
        self.on_propose(core, vec![Proposal::new(request, entry)]);
    }

    /// Lifts a hold whose ttl has passed, so that a dead coordinator cannot keep the cluster down (P22).
    pub(super) fn lift_lapsed_hold(&mut self, core: &mut Core) {
        if !self.opened || core.journal.is_full() {
            return;
        }
        let lapsed = core.log().holds_of_service().lapsed(self.clock.now(core.mono()));
        if let Some(owner) = lapsed.filter(|_| !mutant::is_on(Mutant::HoldForEver)) {
            self.append(core, Entry::ServiceUp { owner });
        }
    }
}

/// The newest format that every member has shown, learners included, or that the log already holds (P23). A
/// member that this process has not heard counts as one that reads only the first format. If a newer record
/// stands in the log, every member could read it when it was written, so the format does not fall again.
fn shared_format(core: &Core) -> Format {
    if mutant::is_on(Mutant::NewFormatAtOnce) {
        return core.settings.format;
    }
    let members = core.peers.iter().filter(|(node, _)| core.is_member(*node));
    let shown = members.map(|(_, peer)| peer.format).min();
    let shown = shown.unwrap_or(core.settings.format).max(Format(1));
    shown.min(core.settings.format).max(core.log().format())
}

// One confirmation round answers all linear reads that wait (P13, I3).
impl Leading {
    /// `at_least` is zero for a plain read. For an answer that changes nothing it is the newest record
    /// that the answer was judged against: the answer waits for that record's commit as well (P14).
    pub fn on_read(&mut self, core: &mut Core, request: RequestId, at_least: Index) {
        if self.reads.len() >= core.settings.limits.reads {
            return core.refuse(request, Refusal::TooManyReads);
        }
        // This leader does not know all that earlier leaders committed until its opening record is committed
        // (P7).
        let opened = match mutant::is_on(Mutant::ReadBeforeOpen) {
            true => 0,
            false => self.open_index,
        };
        // The answers to the round under way may have left before a newer leader acknowledged a write that
        // this read must see (C13). So the read waits for the next round.
        let joined = mutant::is_on(Mutant::ReadJoinsRound);
        let round = if joined { self.round } else { self.round + 1 };
        let index = core.journal.commit().max(opened).max(at_least);
        self.reads.push(WaitingRead { request, index, round });
    }

    pub(super) fn settle_reads(&mut self, core: &mut Core) {
        if self.reads.is_empty() {
            return;
        }
        let (confirmed, commit) = (self.confirmed_round(core), core.journal.commit());
        let ready = |read: &WaitingRead| read.round <= confirmed && read.index <= commit;
        let (ready, waiting) = std::mem::take(&mut self.reads).into_iter().partition(ready);
        self.reads = waiting;
        self.want_round_for_reads(confirmed);
        for WaitingRead { request, index, .. } in ready {
            core.verdict(request, Verdict::Readable { index });
        }
    }

    /// Asks for a new round if reads wait for one and no round is under way for other reads.
    fn want_round_for_reads(&mut self, confirmed: u64) {
        let mut rounds = self.reads.iter().map(|read| read.round);
        let under_way = rounds.clone().any(|round| confirmed < round && round <= self.round);
        let wanted = rounds.any(|round| round > self.round);
        self.beat_wanted |= wanted && !under_way;
    }

    fn confirmed_round(&self, core: &Core) -> u64 {
        let newest = self.round;
        match () {
            () if mutant::is_on(Mutant::ReadUnconfirmed) => u64::MAX,
            () if mutant::is_on(Mutant::AnyoneConfirms) => {
                let rounds = self.progress.values().map(|progress| progress.answered_round);
                reached_by(rounds.chain([newest]), core.quorum()).unwrap_or(0)
            }
            () => self.reached(core, newest, |progress| progress.answered_round).unwrap_or(0),
        }
    }
}
