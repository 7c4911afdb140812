//! A node gives and takes what another log lacks: by records, or by a snapshot (P6, P26).

use crate::protocol::log::SnapshotMeta;
use crate::protocol::messages::{Message, Output, Term, Write};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Node, Role};
use crate::types::{Epoch, Index, NodeId, Position};

impl Node {
    /// A candidate pulls. Whoever promised that very claim answers, leader or not; nobody else does.
    pub(in crate::protocol) fn on_pull(&mut self, from: NodeId, term: Term, after: Position) {
        if term != self.vote.promise || term.epoch.leader != from {
            return;
        }
        let Some(prev) = self.log.common_candidate(after) else {
            return self.send_snapshot(from, term);
        };
        let (end, after) = self.told_end();
        if prev.index > end.index {
            return;
        }
        let mut records = self.log.above(prev.index, &self.settings.limits);
        if records.last().is_some_and(|last| last.index() > end.index) {
            records = records.iter().filter(|record| record.index() <= end.index).cloned().collect();
        }
        self.send_after(from, Message::Pulled { term, prev, records }, after);
    }

    pub(in crate::protocol) fn send_snapshot(&mut self, to: NodeId, term: Term) {
        let after = self.disk.vote_and_log();
        self.out.push(Output::SendSnapshot { to, term, after });
    }

    /// A whole state, from the leader or for a claim.
    pub(in crate::protocol) fn on_snapshot(&mut self, from: NodeId, term: Term, meta: SnapshotMeta) {
        if meta.at.epoch > term.epoch {
            return;
        }
        let pulled = self.claiming().is_some_and(|claiming| claiming.term == term);
        if (!pulled && !self.accept_leader(from, term, meta.vector.as_ref())) || self.full {
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
        if let Role::Following(following) = &mut self.role {
            following.matched = following.matched.max(index);
        }
        self.send_acknowledgement(leader, Message::Appended { epoch, matched: index });
    }

    /// A snapshot holds only what is committed, so it never takes back what is committed here (I7).
    fn take_snapshot(&mut self, meta: SnapshotMeta) {
        let index = meta.index();
        if index <= self.commit && !mutant::is_on(Mutant::SnapshotGoesBack) {
            return;
        }
        if self.log.holds(meta.at) {
            return self.commit_to(index);
        }
        self.go_on_from(meta.clone(), Write::Install);
        self.out.push(Output::Restore(meta));
        self.note_formed();
        self.decide_waiting(index);
    }

    /// Log and state are replaced by a state that includes them.
    pub(in crate::protocol) fn go_on_from(&mut self, meta: SnapshotMeta, write: fn(SnapshotMeta) -> Write) {
        let index = meta.index();
        self.log.reset(meta.clone());
        self.commit = index;
        self.stamped_at = Some(self.mono());
        if self.settings.is_available() {
            // Digests of another history say nothing about this one (P25).
            self.checkpoints = Default::default();
        }
        let seq = self.disk.installed(index);
        self.write(seq, write(meta));
    }

    /// The snapshot is safe: the records below it go, but for what lagging followers may need (P26).
    pub(in crate::protocol) fn on_snapshot_taken(&mut self, index: Index) {
        let spare = self.log.kept_above(&self.settings.limits);
        let upto = index.min(self.commit).min(spare);
        if upto > self.log.base().index {
            self.log.trim(upto);
            let seq = self.disk.trimmed();
            self.write(seq, Write::Trim { upto });
        }
    }
}
