//! Linear reads (P13, I3): one confirmation round for all reads that wait.

use super::io::{Refusal, Verdict};
use super::leading::Leading;
use super::mutant::{self, Mutant};
use super::node::Node;
use super::quorum::reached_by;
use crate::types::{Index, RequestId};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reads {
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    request: RequestId,
    /// The state must have applied this.
    index: Index,
    /// A majority must have answered this round or a later one: it started after the read arrived.
    round: u64,
}

impl Reads {
    pub fn drain(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.waiting).into_iter().map(|read| read.request).collect()
    }
}

impl Node {
    /// `at_least` is zero for a plain read. For an answer that changes nothing it is the newest record
    /// that the answer was judged against: the answer waits for that record's commit as well (P14).
    pub(super) fn on_read(&mut self, request: RequestId, at_least: Index) {
        let leader = self.leader();
        let (commit, most) = (self.commit, self.settings.limits.reads);
        let Some(leading) = self.leading_mut() else {
            return self.verdict(request, Verdict::Refused(Refusal::NotLeader { leader }));
        };
        if leading.reads.waiting.len() >= most {
            return self.verdict(request, Verdict::Refused(Refusal::TooMany));
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

    pub(super) fn settle_reads(&mut self) {
        let Some(leading) = self.leading() else {
            return;
        };
        if leading.reads.waiting.is_empty() {
            return;
        }
        let confirmed = self.confirmed_round(leading.round);
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

    fn confirmed_round(&self, newest: u64) -> u64 {
        match () {
            () if mutant::is_on(Mutant::ReadUnconfirmed) => u64::MAX,
            () if mutant::is_on(Mutant::AnyoneConfirms) => {
                let rounds = self.leading().into_iter().flat_map(|leading| leading.progress.values());
                let rounds = rounds.map(|progress| progress.answered_round).chain([newest]);
                reached_by(rounds, self.settings.quorum()).unwrap_or(0)
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
