//! One confirmation round answers all linear reads that wait (P13, I3).

use crate::protocol::messages::{Refusal, Verdict};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::reached_by;
use crate::protocol::state::{Leader, Leading, Node, Waiting};
use crate::types::{Index, RequestId};

impl Node {
    /// `at_least` is zero for a plain read. For an answer that changes nothing it is the newest record
    /// that the answer was judged against: the answer waits for that record's commit as well (P14).
    pub(in crate::protocol) fn on_read(&mut self, request: RequestId, at_least: Index) {
        let leader = self.leader();
        let (commit, most) = (self.commit, self.settings.limits.reads);
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
        leading.reads.waiting.push(Waiting { request, index, round });
    }

    pub(in crate::protocol) fn settle_reads(&mut self) {
        let Some(leader) = self.as_leader().filter(|leader| !leader.leading.reads.waiting.is_empty()) else {
            return;
        };
        let confirmed = leader.confirmed_round();
        let commit = self.commit;
        let ready = |read: &Waiting| read.round <= confirmed && read.index <= commit;
        let Some(leading) = self.leading_mut() else {
            return;
        };
        let (ready, waiting) = std::mem::take(&mut leading.reads.waiting).into_iter().partition(ready);
        leading.reads.waiting = waiting;
        leading.want_round_for_reads(confirmed);
        for Waiting { request, index, .. } in ready {
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
