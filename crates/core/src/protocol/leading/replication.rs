//! A leader brings every follower's log up to its own, and commits what a majority has (P5, P7).

use super::Leading;
use crate::protocol::core::Core;
use crate::protocol::messages::{Event, Message, Output};
use crate::protocol::meta::Records;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::progress::{Progress, Sending, Step};
use crate::protocol::quorum::reached_by;
use crate::types::{Index, NodeId, Position, Vector};

// Sending records.
impl Leading {
    /// Sends every follower what it lacks, up to the bound on appends in flight.
    pub(super) fn replicate(&mut self, core: &mut Core) {
        // The batch that was read from the log last: the next follower is usually sent the same one.
        let mut shared: Option<(Index, Records)> = None;
        for to in core.others() {
            loop {
                let next = match self.next_step(core, to) {
                    Step::Wait => break,
                    Step::Snapshot => {
                        self.send_whole_or_rest(core, to);
                        break;
                    }
                    Step::Append(next) => next,
                };
                let records = match &shared {
                    Some((from, records)) if *from == next => records.clone(),
                    _ => core.log().above(next - 1, &core.settings.limits),
                };
                shared = Some((next, records.clone()));
                if !self.send_append(core, to, next, records) {
                    break;
                }
            }
        }
    }

    /// The next message that this follower may be sent.
    fn next_step(&mut self, core: &Core, to: NodeId) -> Step {
        let (last, base) = (core.last().index, core.log().base().index);
        let progress = self.progress.get_mut(&to);
        progress.map_or(Step::Wait, |progress| progress.step(core.mono(), base, last, &core.settings))
    }

    /// Returns false, and sends nothing, if this log does not know the position before `next`.
    fn send_append(&mut self, core: &mut Core, to: NodeId, next: Index, records: Records) -> bool {
        let (term, commit) = (self.term, core.journal.commit());
        let Some(prev) = core.log().position(next - 1) else {
            return false;
        };
        if let Some(progress) = self.progress.get_mut(&to) {
            progress.sent(prev.index + records.len() as Index, core.mono());
            progress.told = commit;
        }
        core.send(to, Message::Append { term, prev, records, commit });
        true
    }

    /// The follower's next record is gone from this log. In available mode the leader knows what the follower's log includes, and sends
    /// only the rest. The rest also leaves out what the follower has acknowledged since it joined. Otherwise a follower that needs longer
    /// to apply a state transfer than records are kept would be sent the whole transfer again and again.
    fn send_whole_or_rest(&self, core: &mut Core, to: NodeId) {
        let term = self.term;
        match self.included_by(to).filter(|base| !base.is_empty()) {
            Some(base) => {
                let after = core.journal.disk().vote_and_log();
                core.out.push(Output::SendOverride { to, term, base, after });
            }
            None => core.send_snapshot(to, term),
        }
    }

    /// The vector of a follower's log, as far as it is known: the one at the time when it joined, or everything up to its match index.
    fn included_by(&self, follower: NodeId) -> Option<Vector> {
        let progress = self.progress.get(&follower)?;
        let joined = progress.vector.clone()?;
        let brought = self.included_at(progress.matched);
        Some(brought.filter(|_| !mutant::is_on(Mutant::OverrideFromTheStart)).unwrap_or(joined))
    }

    /// The vector of a log that matches the leader's up to `matched`, as far as it is known.
    fn included_at(&self, matched: Index) -> Option<Vector> {
        (matched >= self.open_index).then(|| {
            let mut vector = self.began_with.clone();
            vector.note(Position::new(self.term.epoch, matched));
            vector
        })
    }
}

// The answers of followers.
impl Leading {
    pub fn on_appended(&mut self, core: &Core, from: NodeId, matched: Index) {
        self.note_matched(core, from, matched);
        self.note_kept(core, from, matched, false);
    }

    pub(super) fn note_matched(&mut self, core: &Core, from: NodeId, matched: Index) {
        let (matched, base) = (matched.min(core.last().index), core.log().base().index);
        if let Some(progress) = self.progress.get_mut(&from).filter(|_| matched > 0) {
            progress.acknowledged(matched);
            progress.resume_streaming(base);
        }
    }

    /// The follower does not have `prev`. Its hint and this log give the greatest position that both
    /// logs may have; each such exchange skips at least one epoch. A gap that answers an older append is
    /// ignored: it would rewind a follower that has moved on since.
    pub fn on_gap(&mut self, core: &Core, from: NodeId, prev: Position, hint: Position) {
        let common = core.log().common_candidate(hint);
        let Some(progress) = self.progress.get_mut(&from) else {
            return;
        };
        let outdated = prev.index < progress.matched || prev.index >= progress.next;
        let answered_already = progress.mode == Sending::Probe && prev.index + 1 != progress.next;
        let elsewhere = matches!(progress.mode, Sending::Unknown | Sending::Snapshot);
        if outdated || answered_already || elsewhere {
            return;
        }
        if common.is_none() && core.settings.is_available() && progress.vector.is_none() {
            // The follower's next answer to a beat says what its log includes.
            progress.mode = Sending::Unknown;
            progress.inflight.clear();
            return;
        }
        // A common position below this log's base is unknown here: index zero makes the next step a snapshot.
        let from_index = common.map_or(0, |position| position.index);
        progress.rewind(from_index.max(progress.matched));
    }

    /// The node's process is dead, or a new one answers in its name. `replaced`: the new process runs on another disk, which may lack
    /// what the disk before it acknowledged (P10). Nothing is sent until the follower reports its position.
    pub fn forget_progress(&mut self, core: &Core, node: NodeId, replaced: bool) {
        let (now, next) = (core.mono(), core.last().index + 1);
        if let Some(progress) = self.progress.get_mut(&node) {
            *progress = if replaced { progress.replaced(next, now) } else { progress.restarted(next, now) };
        }
        if replaced {
            self.ballots.forget(node);
        }
    }

    /// No other node has the merged state: each node says with its next answer what its log includes.
    pub(super) fn find_out_where_all_stand(&mut self, core: &Core) {
        let (now, next) = (core.mono(), core.last().index + 1);
        let progress = self.progress.values_mut();
        progress.for_each(|progress| *progress = Progress::unknown(next, now));
    }
}

// Committing.
impl Leading {
    /// Commits what a majority has durably. Records of older epochs are committed only along with a record
    /// of this epoch (P7): until then another leader may still overwrite them.
    pub(super) fn advance_commit(&mut self, core: &mut Core) {
        self.commit_what_is_reached(core);
        self.note_whether_behind(core);
        self.release_acknowledgements(core);
    }

    fn commit_what_is_reached(&mut self, core: &mut Core) {
        let Some(reached) = self.committable(core) else {
            return;
        };
        if reached < self.open_index && !mutant::is_on(Mutant::CommitOldEpoch) {
            return;
        }
        let opens = !self.opened && reached >= self.open_index;
        self.opened |= opens;
        core.commit_to(reached);
        if opens {
            core.event(Event::Opened { epoch: self.term.epoch });
        }
    }

    /// The last index that a majority has on disk.
    fn committable(&self, core: &Core) -> Option<Index> {
        let own = core.journal.disk().upto();
        if mutant::is_on(Mutant::CommitBelowMajority) {
            let matched = self.progress.values().map(|progress| progress.matched);
            return reached_by(matched.chain([own]), core.quorum() - 1);
        }
        self.reached(core, own, |progress| progress.matched)
    }

    fn note_whether_behind(&mut self, core: &Core) {
        let (commit, last) = (core.journal.commit(), core.last().index);
        let advanced = self.behind_from != commit;
        self.behind_from = commit;
        match (commit < last, self.behind_since) {
            (false, _) => self.behind_since = None,
            (true, Some(_)) if !advanced => {}
            (true, _) => self.behind_since = Some(core.mono()),
        }
    }
}
