//! A follower hears its leader, or awaits the candidate that it has approved. This module says how long it waits, and how much of its log
//! matches the leader's (P3, P8).

use super::core::Core;
use super::durability::After;
use super::messages::{Beat, BeatReply, Message, Objection};
use super::meta::Records;
use super::mutant::{self, Mutant};
use crate::types::{Epoch, Index, NodeId, Position, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Following {
    /// The leader of the promised epoch, or the candidate that the promise was given to.
    leader: NodeId,
    epoch: Epoch,
    heard: Time,
    /// Set while the candidate has not opened its epoch: until when this node waits for it (P8).
    tentative: Option<Tentative>,
    /// The last index known to match this epoch's leader (P5). It starts at zero in each epoch, even in the
    /// next epoch of the same leader: a suffix that matched before may have been replaced since.
    matched: Index,
    heir: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tentative {
    until: Time,
    progress: Position,
}

impl Following {
    /// This node has heard the leader of that epoch.
    pub fn new(epoch: Epoch, now: Time) -> Following {
        Following { leader: epoch.leader, epoch, heard: now, tentative: None, matched: 0, heir: None }
    }

    /// This node has approved a candidate, whose log ends at `progress`, and waits for it until `until`.
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

    /// The leader of the epoch has sent a message. Returns whether this node was still waiting for that leader to open
    /// its epoch.
    pub fn hear(&mut self, now: Time) -> bool {
        self.heard = now;
        self.tentative.take().is_some()
    }

    /// The awaited candidate reports its progress. A candidate that makes progress gets more time (C27). Returns whether a candidate is
    /// awaited at all.
    pub fn waits_on(&mut self, progress: Position, until: Time) -> bool {
        if let Some(tentative) = &mut self.tentative
            && progress > tentative.progress
        {
            *tentative = Tentative { until, progress };
        }
        self.is_awaiting()
    }

    /// The time at which the leader is given up if it stays silent.
    pub fn deadline(&self, core: &Core) -> Time {
        match self.tentative {
            Some(tentative) => tentative.until,
            None => self.silent_since(core) + self.patience(core),
        }
    }

    /// The time for which the leader has been silent, and the time for which this node waits.
    pub fn silence(&self, core: &Core) -> (Span, Span) {
        (core.mono().since(self.silent_since(core)), self.patience(core))
    }

    /// This node's own sleep is no silence of the leader.
    fn silent_since(&self, core: &Core) -> Time {
        self.heard.max(core.woke_at)
    }

    fn patience(&self, core: &Core) -> Span {
        let timing = &core.settings.timing;
        let peer = core.peers.get(self.leader);
        peer.map_or(timing.dead_after, |peer| peer.patience(core.mono(), timing))
    }

    /// The objection of a follower to every other candidate (P58).
    pub fn objection(&self) -> Objection {
        match self.tentative {
            Some(_) => Objection::Awaits { candidate: self.leader },
            None => Objection::Follows { leader: self.leader },
        }
    }

    /// Whether this node would approve `candidate`. It approves the leader that it follows. While it waits for the
    /// node that it has approved to open the epoch, it may turn to an elder candidate, but not to a younger one (P8,
    /// C27). `ranks_last`: the candidate is on hold, so others come before it even if its id is lower.
    pub fn would_leave(&self, candidate: NodeId, ranks_last: bool) -> bool {
        candidate == self.leader
            || (self.is_awaiting() && candidate < self.leader && !ranks_last)
            || mutant::is_on(Mutant::ApproveWithoutSuspicion)
    }

    /// This log now holds everything up to `index`, as the leader's log does.
    pub fn matches(&mut self, index: Index) {
        self.matched = self.matched.max(index);
    }

    /// The leader's commit index counts here only as far as this log is known to match (P7).
    fn commit(&self, core: &mut Core, commit: Index) {
        match mutant::is_on(Mutant::CommitUnmatched) {
            true => core.commit_to_leaders_index(commit),
            false => core.commit_to_leaders_index(commit.min(self.matched)),
        }
    }

    /// Handles records of the leader, which has been accepted already.
    pub fn take(&mut self, core: &mut Core, prev: Position, records: &Records, commit: Index) {
        // The leader gets no answer to these records. The answer to its next beat says that this disk is full
        // (P24, C32).
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
        // This log was kept up to `stayed`. If more than that matched before, the leader has contradicted itself.
        self.matched = self.matched.min(stayed);
        let matched = if mutant::is_on(Mutant::AckLogEnd) { core.last().index } else { end.index };
        self.matches(matched);
        self.commit(core, commit);
        core.send_acknowledgement(leader, Message::Appended { epoch, matched });
    }

    /// Answers a beat of the leader, which has been accepted already: the answer grants the lease and reports the position of this log.
    pub fn answer_beat(&mut self, core: &mut Core, beat: &Beat) {
        // The grant comes first: it may write the vote, and the answer then waits for that write. If the
        // answer left earlier, a restart could forget a lease that the leader relies on (P11).
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

    /// The report about this log in the answer to a beat: how much of it counts, where it ends, and what must be on disk before the answer
    /// leaves. In safe mode the answer does not wait for records (P29): only those on disk count, and the end only tells the leader where to
    /// go on. In available mode, or while a snapshot replaces the log, the answer waits.
    fn end(&self, core: &Core) -> (Index, Position, After) {
        if mutant::is_on(Mutant::AckBeforeSync) {
            return (self.matched, core.last(), After::default());
        }
        let disk = core.journal.disk();
        let waits = core.settings.is_available() || disk.is_installing();
        if waits || mutant::is_on(Mutant::BeatsWaitForRecords) {
            let (last, after) = core.journal.reported_end(&core.settings);
            return (self.matched.min(last.index), last, after);
        }
        let counts = if mutant::is_on(Mutant::BeatsCountUnsynced) { Index::MAX } else { disk.upto() };
        (self.matched.min(counts), core.last(), disk.vote())
    }

    /// Checks what must be true after every input (I11).
    pub fn validate(&self, core: &Core) {
        assert!(self.matched <= core.last().index, "matched beyond the log");
        assert_eq!(self.leader, self.epoch.leader, "follows a node in another node's epoch");
        assert_ne!(self.leader, core.me(), "follows itself (P2)");
    }
}
