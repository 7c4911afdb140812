//! A follower hears its leader, or awaits the candidate that it has promised itself to: how long, and how much of its log is the leader's (P3, P8).

use super::core::Core;
use super::durability::After;
use super::messages::{Beat, BeatReply, Message, Objection};
use super::meta::Records;
use super::mutant::{self, Mutant};
use crate::types::{Epoch, Index, NodeId, Position, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Following {
    /// The leader of the promised epoch, or the candidate that the promise was given to.
    leader: NodeId,
    epoch: Epoch,
    heard: Time,
    /// Given while the candidate has not opened its epoch: how long we wait for it (P8).
    tentative: Option<Tentative>,
    /// The last index known to match this epoch's leader (P5).
    matched: Index,
    heir: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tentative {
    until: Time,
    progress: Position,
}

impl Following {
    /// It has heard the leader of that epoch.
    pub fn new(epoch: Epoch, now: Time) -> Following {
        Following { leader: epoch.leader, epoch, heard: now, tentative: None, matched: 0, heir: None }
    }

    /// It has promised itself to a candidate, whose log ends at `progress`, and waits for it so long.
    pub fn awaiting(epoch: Epoch, now: Time, until: Time, progress: Position) -> Following {
        Following { tentative: Some(Tentative { until, progress }), ..Following::new(epoch, now) }
    }

    pub fn leader(&self) -> NodeId {
        self.leader
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn is_awaiting(&self) -> bool {
        self.tentative.is_some()
    }

    pub fn heir(&self) -> Option<NodeId> {
        self.heir
    }

    /// The leader of its epoch has spoken; says whether it was still awaited.
    pub fn hear(&mut self, now: Time) -> bool {
        self.heard = now;
        self.tentative.take().is_some()
    }

    /// The candidate that is awaited says how far it is. Whoever gets on is waited for longer (C27). Says whether it is awaited at all.
    pub fn waits_on(&mut self, progress: Position, until: Time) -> bool {
        if let Some(tentative) = &mut self.tentative
            && progress > tentative.progress
        {
            *tentative = Tentative { until, progress };
        }
        self.is_awaiting()
    }

    /// When the leader is given up if nothing is heard of it.
    pub fn deadline(&self, core: &Core) -> Time {
        let timing = &core.settings.timing;
        let peer = core.peers.get(self.leader);
        let patience = peer.map_or(timing.dead_after, |peer| peer.patience(core.mono(), timing));
        match self.tentative {
            Some(tentative) => tentative.until,
            None => self.heard.max(core.woke_at) + patience,
        }
    }

    /// What whoever follows has against all others (P58).
    pub fn objection(&self) -> Objection {
        match self.tentative {
            Some(_) => Objection::Awaits { candidate: self.leader },
            None => Objection::Follows { leader: self.leader },
        }
    }

    /// One follows whom one follows; from a candidate that has not opened its epoch one may turn to
    /// its elder, not to its younger (P8, C27). `comes_last`: others come before that candidate, whatever its index.
    pub fn would_leave(&self, candidate: NodeId, comes_last: bool) -> bool {
        candidate == self.leader
            || (self.is_awaiting() && candidate < self.leader && !comes_last)
            || mutant::is_on(Mutant::ApproveWithoutSuspicion)
    }

    /// This log holds everything up to there now, as the leader's does.
    pub fn matches(&mut self, index: Index) {
        self.matched = self.matched.max(index);
    }

    /// What the leader has committed counts here only as far as this log is known to match (P7).
    fn commit(&self, core: &mut Core, commit: Index) {
        match mutant::is_on(Mutant::CommitUnmatched) {
            true => core.commit_as_told(commit),
            false => core.commit_as_told(commit.min(self.matched)),
        }
    }

    /// Records of the leader, which has been accepted.
    pub fn take(&mut self, core: &mut Core, prev: Position, records: &Records, commit: Index) {
        if core.journal.is_full() && !mutant::is_on(Mutant::AckWhenFull) {
            return;
        }
        let (leader, epoch) = (self.leader, self.epoch);
        if !core.continues(prev) && !mutant::is_on(Mutant::NoPrevCheck) {
            let hint = core.could_match(prev);
            return core.send_acknowledgement(leader, Message::Gap { epoch, prev, hint });
        }
        let end = records.last().map_or(prev, |record| record.position);
        let Ok(stayed) = core.merge(records) else {
            return;
        };
        // Only whoever leads and contradicts itself has had more than this acknowledged.
        self.matched = self.matched.min(stayed);
        let matched = if mutant::is_on(Mutant::AckLogEnd) { core.last().index } else { end.index };
        self.matches(matched);
        self.commit(core, commit);
        core.send_acknowledgement(leader, Message::Appended { epoch, matched });
    }

    /// A beat of the leader, which has been accepted: it is granted its lease, and told where this log stands.
    pub fn answer_beat(&mut self, core: &mut Core, beat: &Beat) {
        core.grant(self.leader, self.epoch, beat.lease);
        self.heir = beat.heir;
        self.commit(core, beat.commit);
        let (matched, last, after) = self.end(core);
        let reply = Message::HeartbeatReply(BeatReply {
            epoch: self.epoch,
            round: beat.round,
            matched,
            last,
            full: core.journal.is_full(),
            digest: core.checkpoints.at(beat.boundary),
            vector: core.vector_to_send().filter(|_| self.matched == 0),
        });
        core.send_after(self.leader, reply, after);
    }

    /// What the answer to a beat says of this log: how much of it counts, where it ends, and what must be on disk before the answer
    /// leaves. It does not wait for records (P29): what counts is on disk, and the end only tells the leader where to go on.
    fn end(&self, core: &Core) -> (Index, Position, After) {
        if mutant::is_on(Mutant::AckBeforeSync) {
            return (self.matched, core.last(), After::default());
        }
        let disk = core.journal.disk();
        let waits = core.settings.is_available() || disk.is_installing();
        if waits || mutant::is_on(Mutant::BeatsWaitForRecords) {
            let (last, after) = core.journal.told_end(&core.settings);
            return (self.matched.min(last.index), last, after);
        }
        let counts = if mutant::is_on(Mutant::BeatsCountUnsynced) { Index::MAX } else { disk.upto() };
        (self.matched.min(counts), core.last(), disk.vote())
    }

    /// What must be true after every input (I11).
    pub fn validate(&self, core: &Core) {
        assert!(self.matched <= core.last().index, "matched beyond the log");
        assert_eq!(self.leader, self.epoch.leader, "follows somebody in another one's epoch");
        assert_ne!(self.leader, core.me(), "follows itself (P2)");
    }
}
