//! Bringing every follower's log to the leader's, and knowing what a majority has (P5, P7).

use std::collections::VecDeque;

use super::message::{Message, Records};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use super::quorum::reached_by;
use crate::types::{Epoch, Index, NodeId, Position, Time};

/// How far one follower is, as far as the leader knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// Known to match, and durable there.
    pub matched: Index,
    /// The next index to send.
    pub next: Index,
    pub mode: Mode,
    /// The last index of each append on its way.
    inflight: VecDeque<Index>,
    last_sent: Time,
    pub answered_round: u64,
    /// When the newest round that it answered was sent: leases count from there (P11).
    pub answered_sent: Time,
    pub answered_at: Time,
    /// What it last said that it knows to match: less than `matched` if it has started anew since.
    pub reported: Index,
    pub full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// Looking for the common position: one append at a time.
    Probe,
    /// Appends follow each other without waiting.
    Stream,
    /// A snapshot is on its way.
    Snapshot,
}

impl Progress {
    pub fn new(next: Index, now: Time) -> Progress {
        Progress {
            matched: 0,
            next,
            mode: Mode::Stream,
            inflight: VecDeque::new(),
            last_sent: now,
            answered_round: 0,
            answered_sent: Time::default(),
            answered_at: Time::default(),
            reported: 0,
            full: false,
        }
    }

    pub fn answered(&mut self, round: u64, sent: Time, now: Time) {
        if round >= self.answered_round {
            self.answered_round = round;
            self.answered_sent = self.answered_sent.max(sent);
        }
        self.answered_at = now;
    }

    fn acknowledged(&mut self, matched: Index) {
        self.matched = self.matched.max(matched);
        self.next = self.next.max(matched + 1);
        self.inflight.retain(|index| *index > matched);
    }

    /// Starts over after `index`.
    fn rewind(&mut self, index: Index) {
        self.next = index + 1;
        self.inflight.clear();
        self.mode = Mode::Probe;
    }
}

impl Node {
    /// Another disk answers in this node's name: what the one before acknowledged is not on it (P10).
    pub(super) fn forget_progress(&mut self, node: NodeId) {
        let (now, next) = (self.mono(), self.log.last().index + 1);
        if let Some(leading) = self.leading_mut()
            && let Some(progress) = leading.progress.get_mut(&node)
        {
            *progress = Progress::new(next, now);
        }
    }

    /// Sends every follower what it lacks, as much as may be on its way at once.
    pub(super) fn replicate(&mut self) {
        let mut shared: Option<(Index, Records)> = None;
        for to in self.settings.others() {
            while let Some(next) = self.next_to_send(to) {
                let records = match &shared {
                    Some((from, records)) if *from == next => records.clone(),
                    _ => self.log.above(next - 1, self.settings.limits.batch),
                };
                shared = Some((next, records.clone()));
                self.send_append(to, next, records);
            }
        }
    }

    /// The index to send from, if this follower may be sent anything now.
    fn next_to_send(&mut self, to: NodeId) -> Option<Index> {
        let (now, fresh, last) = (self.mono(), self.fresh(), self.log.last().index);
        let (base, inflight) = (self.log.base().index, self.settings.limits.inflight);
        let window = self.settings.timing.window;
        let Role::Leading(leading) = &mut self.role else {
            return None;
        };
        let term = leading.term;
        let progress = leading.progress.get_mut(&to)?;
        if progress.full {
            return None;
        }
        let quiet = now.since(progress.last_sent);
        let behind = progress.matched < last;
        if behind && progress.mode == Mode::Stream && !progress.inflight.is_empty() && quiet > fresh
        {
            // Nothing was heard of what we sent: it is lost.
            progress.rewind(progress.matched.max(base));
        }
        if progress.next <= base {
            let due = progress.mode != Mode::Snapshot || quiet > window;
            progress.mode = Mode::Snapshot;
            if due {
                progress.last_sent = now;
                self.send_snapshot(to, term);
            }
            return None;
        }
        let may = match progress.mode {
            Mode::Probe => progress.inflight.is_empty() || quiet > fresh,
            Mode::Stream if progress.next > last => {
                // Nothing to send, but a follower that has restarted must learn how far it matches.
                progress.reported < progress.matched && quiet > fresh
            }
            Mode::Stream => progress.inflight.len() < inflight,
            Mode::Snapshot => {
                progress.mode = Mode::Probe;
                true
            }
        };
        may.then_some(progress.next)
    }

    fn send_append(&mut self, to: NodeId, next: Index, records: Records) {
        let (now, commit) = (self.mono(), self.commit);
        let Some(prev) = self.log.position(next - 1) else {
            return;
        };
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        let term = leading.term;
        if let Some(progress) = leading.progress.get_mut(&to) {
            let end = prev.index + records.len() as Index;
            progress.last_sent = now;
            match progress.mode {
                Mode::Stream => progress.next = end + 1,
                _ => progress.inflight.clear(),
            }
            progress.inflight.push_back(end);
        }
        self.send(
            to,
            Message::Append {
                term,
                prev,
                records,
                commit,
            },
        );
    }

    pub(super) fn on_appended(&mut self, from: NodeId, epoch: Epoch, matched: Index) {
        if self
            .leading()
            .is_some_and(|leading| leading.term.epoch == epoch)
        {
            self.note_matched(from, matched);
        }
    }

    pub(super) fn note_matched(&mut self, from: NodeId, matched: Index) {
        let matched = matched.min(self.log.last().index);
        let Some(progress) = self
            .leading_mut()
            .and_then(|leading| leading.progress.get_mut(&from))
        else {
            return;
        };
        if matched > 0 {
            progress.acknowledged(matched);
            if progress.mode == Mode::Probe && progress.inflight.is_empty() {
                progress.mode = Mode::Stream;
            }
        }
    }

    /// The follower does not have `prev`. Its hint and our log name the greatest position that both
    /// may have; each such round skips at least one epoch.
    pub(super) fn on_gap(&mut self, from: NodeId, epoch: Epoch, prev: Position, hint: Position) {
        let common = self.log.common_candidate(hint);
        let Some(leading) = self
            .leading_mut()
            .filter(|leading| leading.term.epoch == epoch)
        else {
            return;
        };
        let Some(progress) = leading.progress.get_mut(&from) else {
            return;
        };
        let outdated = prev.index < progress.matched || prev.index >= progress.next;
        let answered_already = progress.mode == Mode::Probe && prev.index + 1 != progress.next;
        if outdated || answered_already || progress.mode == Mode::Snapshot {
            return;
        }
        // Below our base the common position is out of sight: index zero asks for a snapshot.
        let from_index = common.map_or(0, |position| position.index);
        progress.rewind(from_index.max(progress.matched));
    }

    /// Commits what a majority has durably. Records of older epochs are committed only along with one
    /// of this epoch (P7): an elder's record may still replace them until then.
    pub(super) fn advance_commit(&mut self) {
        loop {
            let before = self.commit;
            self.advance_commit_once();
            // A committed rejoin lets a disk count for what follows it (P10).
            if self.commit == before {
                break;
            }
        }
        self.note_whether_behind();
        self.release_acknowledgements();
    }

    fn advance_commit_once(&mut self) {
        let reached = self.reached(self.disk.upto(), |progress| progress.matched);
        let Some(reached) = self.mutated_majority(reached) else {
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
            self.event(super::io::Event::Opened { epoch });
        }
    }

    fn mutated_majority(&self, reached: Option<Index>) -> Option<Index> {
        if !mutant::is_on(Mutant::CommitBelowMajority) {
            return reached;
        }
        let matched = self
            .leading()?
            .progress
            .values()
            .map(|progress| progress.matched);
        reached_by(
            matched.chain([self.disk.upto()]),
            self.settings.quorum() - 1,
        )
    }

    fn note_whether_behind(&mut self) {
        let (now, commit, last) = (self.mono(), self.commit, self.log.last().index);
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
