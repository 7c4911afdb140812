//! Client writes: from a proposal to its verdict (P12, P15, P22, P23).

use super::io::{Refusal, ServiceChange, Verdict};
use super::message::Records;
use super::mutant::{self, Mutant};
use super::node::Node;
use super::settings::Ack;
use crate::types::{Entry, Format, Index, Position, Record, RequestId};

impl Node {
    /// Each entry becomes one record, or is refused and surely never applied. Those that are taken
    /// go to disk and to the followers as one batch.
    pub(super) fn on_propose(&mut self, entries: Vec<(RequestId, Entry)>) {
        let mut taken = Vec::new();
        for (request, entry) in entries {
            match self.refusal(&entry) {
                Some(refusal) => self.verdict(request, Verdict::Refused(refusal)),
                None => {
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

    fn refusal(&self, entry: &Entry) -> Option<Refusal> {
        let Some(leading) = self.leading().filter(|leading| leading.opened) else {
            return Some(Refusal::NotLeader { leader: self.leader() });
        };
        let limits = &self.settings.limits;
        let many = self.log.last().index - self.commit >= limits.uncommitted;
        let large = leading.uncommitted_bytes >= limits.uncommitted_bytes;
        match () {
            () if leading.handing.is_some() => Some(Refusal::HandingOver),
            () if self.full => Some(Refusal::DiskFull),
            () if many || large => Some(Refusal::TooMany),
            () if self.service_is_down() && matches!(entry, Entry::Client(_)) => Some(Refusal::ServiceDown),
            () if entry.format() > self.shared_format() => Some(Refusal::FormatNotShared),
            () => None,
        }
    }

    /// The newest format that every node of the topology has shown, or that the log already holds (P23).
    fn shared_format(&self) -> Format {
        if mutant::is_on(Mutant::NewFormatAtOnce) {
            return self.settings.format;
        }
        let shown = self.peers.iter().map(|(_, peer)| peer.format).min();
        let shown = shown.unwrap_or(self.settings.format).max(Format(1));
        shown.min(self.settings.format).max(self.log.format())
    }

    fn stamped(&mut self, entry: Entry, offset: Index) -> Record {
        let (now, index) = (self.now, self.log.last().index + 1 + offset);
        let epoch = self.promise();
        let stamp = match self.leading_mut() {
            Some(leading) => {
                let stamp = leading.clock.stamp(now);
                leading.clock.stamped(stamp, now.mono);
                stamp
            }
            None => self.log.last_stamp(),
        };
        Record { position: Position::new(epoch, index), stamp, entry }
    }

    /// One of the protocol's own records.
    pub(super) fn append_as_leader(&mut self, entry: Entry) -> Position {
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

    /// As the leader: acknowledges what is committed, under `ack = all` only once every follower that
    /// is not suspected has it too.
    pub(super) fn release_acknowledgements(&mut self) {
        let upto = match self.settings.ack {
            Ack::Majority => self.commit,
            Ack::All => self.commit.min(self.reached_by_all_alive()),
        };
        self.decide_waiting(upto);
    }

    fn reached_by_all_alive(&self) -> Index {
        let (now, patience) = (self.mono(), self.settings.timing.dead_after);
        let Some(leading) = self.leading() else {
            return 0;
        };
        let alive = leading.progress.iter().filter(|(node, progress)| {
            let heard = progress.answered_at.max(leading.since);
            heard + patience > now && !self.peers.is_refused(**node)
        });
        alive.map(|(_, progress)| progress.matched).min().unwrap_or(Index::MAX)
    }

    /// Answers the writes up to `upto`: each stands there, or another leader's record does.
    pub(super) fn decide_waiting(&mut self, upto: Index) {
        while let Some((index, epoch, request)) = self.waiting.take(upto) {
            let position = Position::new(epoch, index);
            let verdict = match self.log.position(index) {
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

    fn written(&self, position: Position) -> Verdict {
        let durable = |index: Index| usize::from(index >= position.index);
        let acks = self.leading().map_or(self.settings.quorum(), |leading| {
            let others = leading.progress.iter().filter(|(node, _)| self.peer_counts(**node));
            let others: usize = others.map(|(_, progress)| durable(progress.matched)).sum();
            others + durable(self.disk.upto())
        });
        Verdict::Written { position, acks }
    }

    pub(super) fn on_service(&mut self, request: RequestId, change: ServiceChange) {
        let entry = match change {
            ServiceChange::Down { owner, ttl, reason } => Entry::ServiceDown { owner, ttl, reason },
            ServiceChange::Up { owner } if self.log.holds_of_service().held_by(owner) => {
                Entry::ServiceUp { owner }
            }
            // An owner lifts its own hold only; there is none to lift.
            ServiceChange::Up { .. } if self.is_open() => return self.on_read(request, 0),
            ServiceChange::Up { owner } => Entry::ServiceUp { owner },
        };
        self.on_propose(vec![(request, entry)]);
    }

    /// Lifts a hold whose ttl has passed: a dead coordinator cannot keep the cluster down (P22).
    pub(super) fn lift_lapsed_hold(&mut self) {
        let now = self.mono();
        let Some(leading) = self.leading().filter(|leading| leading.opened && !self.full) else {
            return;
        };
        let lapsed = self.log.holds_of_service().lapsed(leading.clock.now(now));
        if let Some(owner) = lapsed.filter(|_| !mutant::is_on(Mutant::HoldForEver)) {
            self.append_as_leader(Entry::ServiceUp { owner });
        }
    }

    /// Lets a disk in again that the log does not know: a replaced or doubtful one (P10).
    pub(super) fn readmit(&mut self) {
        let fresh = self.fresh();
        let now = self.mono();
        let Some(leading) = self.leading().filter(|leading| leading.opened && !self.full) else {
            return;
        };
        let answered = leading.progress.iter().filter(|(_, progress)| progress.answered_at + fresh >= now);
        let answered = answered.filter(|(_, progress)| progress.answered_round > 0);
        let unknown = answered.filter_map(|(node, _)| {
            let incarnation = self.peers.get(*node)?.incarnation;
            (!self.log.roster().knows(*node, incarnation)).then_some((*node, incarnation))
        });
        let own = (self.me(), self.incarnation);
        let own = (!self.log.roster().knows(own.0, own.1)).then_some(own);
        let unknown: Vec<_> = unknown.chain(own).collect();
        for (node, incarnation) in unknown {
            self.append_as_leader(Entry::Rejoin { node, incarnation });
        }
    }
}
