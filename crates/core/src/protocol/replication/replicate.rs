//! A leader brings every follower's log to its own, and knows what a majority has (P5, P7).

use crate::protocol::log::Records;
use crate::protocol::messages::{Event, Message, Output};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::reached_by;
use crate::protocol::state::{Leader, Mode, Node, Role, Step};
use crate::types::{Epoch, Index, NodeId, Position, Vector};

impl Node {
    /// The process is dead, or another answers in its name, perhaps on another disk: what the one before
    /// acknowledged may not be on it (P10). Nothing is sent until it says where it stands.
    pub(in crate::protocol) fn forget_progress(&mut self, node: NodeId, replaced: bool) {
        let (now, next) = (self.mono(), self.log.last().index + 1);
        if let Some(progress) = self.follower_mut(node) {
            *progress = if replaced { progress.replaced(next, now) } else { progress.restarted(next, now) };
        }
        if let Some(leading) = self.leading_mut().filter(|_| replaced) {
            leading.ballots.forget(node);
        }
    }

    /// Sends every follower what it lacks, as much as may be on its way at once.
    pub(in crate::protocol) fn replicate(&mut self) {
        let mut shared: Option<(Index, Records)> = None;
        for to in self.others() {
            loop {
                let next = match self.next_step(to) {
                    Step::Wait => break,
                    Step::Snapshot => {
                        self.send_whole_or_rest(to);
                        break;
                    }
                    Step::Append(next) => next,
                };
                let records = match &shared {
                    Some((from, records)) if *from == next => records.clone(),
                    _ => self.log.above(next - 1, &self.settings.limits),
                };
                shared = Some((next, records.clone()));
                if !self.send_append(to, next, records) {
                    break;
                }
            }
        }
    }

    /// A follower's next record is gone. What it has is known in available mode: the rest will do. What it has been brought up to
    /// since it joined is no part of that: a difference that took longer to work out than records are kept would come again whole.
    fn send_whole_or_rest(&mut self, to: NodeId) {
        let term = self.vote.promise;
        let base = self.as_leader().and_then(|leader| leader.included_by(to)).filter(|base| !base.is_empty());
        match base {
            Some(base) => {
                let after = self.disk.vote_and_log();
                self.out.push(Output::SendOverride { to, term, base, after });
            }
            None => self.send_snapshot(to, term),
        }
    }

    /// What this follower may be sent now.
    fn next_step(&mut self, to: NodeId) -> Step {
        let (now, last, base) = (self.mono(), self.log.last().index, self.log.base().index);
        let settings = &self.settings;
        let Role::Leading(leading) = &mut self.role else {
            return Step::Wait;
        };
        match leading.progress.get_mut(&to) {
            Some(progress) => progress.step(now, base, last, settings),
            None => Step::Wait,
        }
    }

    /// Says whether anything was sent: there is nothing beyond the end of the log.
    fn send_append(&mut self, to: NodeId, next: Index, records: Records) -> bool {
        let (now, term, commit) = (self.mono(), self.vote.promise, self.commit);
        let Some(prev) = self.log.position(next - 1) else {
            return false;
        };
        if let Some(progress) = self.follower_mut(to) {
            progress.sent(prev.index + records.len() as Index, now);
            progress.told = commit;
        }
        self.send(to, Message::Append { term, prev, records, commit });
        true
    }

    pub(in crate::protocol) fn on_appended(&mut self, from: NodeId, epoch: Epoch, matched: Index) {
        if self.leading().is_some_and(|leading| leading.term.epoch == epoch) {
            self.note_matched(from, matched);
            self.note_kept(from, matched, false);
        }
    }

    pub(in crate::protocol) fn note_matched(&mut self, from: NodeId, matched: Index) {
        let (matched, base) = (matched.min(self.log.last().index), self.log.base().index);
        if let Some(progress) = self.follower_mut(from).filter(|_| matched > 0) {
            progress.acknowledged(matched);
            progress.streams_again(base);
        }
    }

    /// The follower does not have `prev`. Its hint and our log name the greatest position that both
    /// may have; each such round skips at least one epoch.
    pub(in crate::protocol) fn on_gap(&mut self, from: NodeId, epoch: Epoch, prev: Position, hint: Position) {
        let (common, available) = (self.log.common_candidate(hint), self.settings.is_available());
        let Some(leading) = self.leading_mut().filter(|leading| leading.term.epoch == epoch) else {
            return;
        };
        let Some(progress) = leading.progress.get_mut(&from) else {
            return;
        };
        let outdated = prev.index < progress.matched || prev.index >= progress.next;
        let answered_already = progress.mode == Mode::Probe && prev.index + 1 != progress.next;
        let elsewhere = matches!(progress.mode, Mode::Unknown | Mode::Snapshot);
        if outdated || answered_already || elsewhere {
            return;
        }
        // Below our base the common position is out of sight: index zero asks for a snapshot.
        if common.is_none() && available && progress.vector.is_none() {
            // Its next answer to a beat says what it includes.
            progress.mode = Mode::Unknown;
            progress.inflight.clear();
            return;
        }
        let from_index = common.map_or(0, |position| position.index);
        progress.rewind(from_index.max(progress.matched));
    }

    /// Commits what a majority has durably. Records of older epochs are committed only along with one
    /// of this epoch (P7): an elder's record may still replace them until then.
    pub(in crate::protocol) fn advance_commit(&mut self) {
        self.commit_what_is_reached();
        self.note_whether_behind();
        self.release_acknowledgements();
    }

    fn commit_what_is_reached(&mut self) {
        let Some(reached) = self.as_leader().and_then(Leader::committable) else {
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
            self.event(Event::Opened { epoch });
        }
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

impl Leader<'_> {
    /// What a follower's log includes, as far as it is known: what it had when it joined, or all up to where it matches.
    fn included_by(self, follower: NodeId) -> Option<Vector> {
        let progress = self.leading.progress.get(&follower)?;
        let joined = progress.vector.clone()?;
        let brought = self.leading.included_at(progress.matched);
        Some(brought.filter(|_| !mutant::is_on(Mutant::OverrideFromTheStart)).unwrap_or(joined))
    }

    /// What a majority has on disk.
    fn committable(self) -> Option<Index> {
        let own = self.node.disk.upto();
        if mutant::is_on(Mutant::CommitBelowMajority) {
            let matched = self.leading.progress.values().map(|progress| progress.matched);
            return reached_by(matched.chain([own]), self.node.quorum() - 1);
        }
        self.reached(own, |progress| progress.matched)
    }
}
