//! Bringing every follower's log to the leader's, and knowing what a majority has (P5, P7).

use std::collections::VecDeque;

use super::io::{Event, Output};
use super::message::{Message, Records};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use super::quorum::reached_by;
use super::settings::Settings;
use crate::types::{Epoch, Index, NodeId, Position, Span, Time, Vector};

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
    /// Available mode: it is of this side, as far as is known (P32).
    pub joined: bool,
    /// What its log included when it joined.
    pub vector: Option<Vector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// Nothing is known: its next answer to a beat will say where it stands.
    Unknown,
    /// Looking for the common position: one append at a time.
    Probe,
    /// Appends follow each other without waiting.
    Stream,
    /// A snapshot is on its way.
    Snapshot,
}

/// What to do next for one follower.
enum Step {
    Wait,
    Append(Index),
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
            joined: false,
            vector: None,
        }
    }

    /// Nothing is known of it, and nothing is sent until it answers.
    pub fn unknown(next: Index, now: Time) -> Progress {
        Progress { mode: Mode::Unknown, ..Progress::new(next, now) }
    }

    pub fn answered(&mut self, round: u64, sent: Time, now: Time) {
        if round >= self.answered_round {
            self.answered_round = round;
            self.answered_sent = self.answered_sent.max(sent);
        }
        self.answered_at = now;
    }

    /// It is on another side.
    pub fn leave(&mut self) {
        self.joined = false;
        self.mode = Mode::Unknown;
        self.inflight.clear();
        self.matched = 0;
    }

    fn acknowledged(&mut self, matched: Index) {
        self.joined = true;
        self.matched = self.matched.max(matched);
        self.next = self.next.max(matched + 1);
        self.inflight.retain(|index| *index > matched);
    }

    fn streams_again(&mut self, base: Index) {
        let found = match self.mode {
            Mode::Probe => self.inflight.is_empty(),
            Mode::Snapshot => self.next > base,
            Mode::Unknown | Mode::Stream => false,
        };
        if found {
            self.mode = Mode::Stream;
        }
    }

    /// It has said where it stands: what follows `common` is tried next.
    pub fn located(&mut self, common: Index) {
        if self.mode == Mode::Unknown {
            self.rewind(common.max(self.matched));
        }
    }

    fn step(&mut self, now: Time, base: Index, last: Index, settings: &Settings) -> Step {
        let quiet = now.since(self.last_sent);
        let lost = !self.inflight.is_empty() && quiet > settings.timing.fresh();
        if lost || (self.mode == Mode::Snapshot && quiet > settings.timing.window) {
            self.inflight.clear();
            self.mode = Mode::Unknown;
        }
        match self.mode {
            _ if self.full => Step::Wait,
            Mode::Unknown | Mode::Snapshot => Step::Wait,
            _ if self.next <= base => {
                self.mode = Mode::Snapshot;
                self.last_sent = now;
                Step::Snapshot
            }
            Mode::Probe if self.inflight.is_empty() => Step::Append(self.next),
            Mode::Stream if self.may_stream(quiet, last, settings) => Step::Append(self.next),
            _ => Step::Wait,
        }
    }

    fn may_stream(&self, quiet: Span, last: Index, settings: &Settings) -> bool {
        match self.next > last {
            // Nothing to send, but a follower that began to follow anew must learn how far it matches.
            true => self.reported < self.matched && quiet > settings.timing.fresh(),
            false => self.inflight.len() < settings.limits.inflight,
        }
    }

    /// Starts over after `index`.
    fn rewind(&mut self, index: Index) {
        self.next = index + 1;
        self.inflight.clear();
        self.mode = Mode::Probe;
    }
}

impl Node {
    /// The process is dead, or another answers in its name, perhaps on another disk: what the one before
    /// acknowledged may not be on it (P10). Nothing is sent until it says where it stands.
    pub(super) fn forget_progress(&mut self, node: NodeId, replaced: bool) {
        let (now, next) = (self.mono(), self.log.last().index + 1);
        let Some(leading) = self.leading_mut() else {
            return;
        };
        if replaced {
            leading.ballots.forget(node);
        }
        if let Some(progress) = leading.progress.get_mut(&node) {
            let anew = Progress::unknown(next, now);
            *progress = match replaced {
                true => anew,
                // The same disk keeps its promises: that it answered remains true.
                false => Progress {
                    answered_round: progress.answered_round,
                    answered_sent: progress.answered_sent,
                    answered_at: progress.answered_at,
                    ..anew
                },
            };
        }
    }

    /// Sends every follower what it lacks, as much as may be on its way at once.
    pub(super) fn replicate(&mut self) {
        let mut shared: Option<(Index, Records)> = None;
        for to in self.settings.others() {
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
                self.send_append(to, next, records);
            }
        }
    }

    /// A follower's next record is gone. What it has is known in available mode: the rest will do.
    fn send_whole_or_rest(&mut self, to: NodeId) {
        let term = self.vote.promise;
        let progress = self.leading().and_then(|leading| leading.progress.get(&to));
        let base = progress.and_then(|progress| progress.vector.clone()).filter(|base| !base.is_empty());
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
        self.send(to, Message::Append { term, prev, records, commit });
    }

    pub(super) fn on_appended(&mut self, from: NodeId, epoch: Epoch, matched: Index) {
        if self.leading().is_some_and(|leading| leading.term.epoch == epoch) {
            self.note_matched(from, matched);
        }
    }

    pub(super) fn note_matched(&mut self, from: NodeId, matched: Index) {
        let (matched, base) = (matched.min(self.log.last().index), self.log.base().index);
        let Some(progress) = self.leading_mut().and_then(|leading| leading.progress.get_mut(&from)) else {
            return;
        };
        if matched > 0 {
            progress.acknowledged(matched);
            progress.streams_again(base);
        }
    }

    /// The follower does not have `prev`. Its hint and our log name the greatest position that both
    /// may have; each such round skips at least one epoch.
    pub(super) fn on_gap(&mut self, from: NodeId, epoch: Epoch, prev: Position, hint: Position) {
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
            self.event(Event::Opened { epoch });
        }
    }

    fn mutated_majority(&self, reached: Option<Index>) -> Option<Index> {
        if !mutant::is_on(Mutant::CommitBelowMajority) {
            return reached;
        }
        let matched = self.leading()?.progress.values().map(|progress| progress.matched);
        reached_by(matched.chain([self.disk.upto()]), self.settings.quorum() - 1)
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
