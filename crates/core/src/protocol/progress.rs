//! The position of one follower, as far as its leader knows, and what it may be sent next (P5).

use std::collections::VecDeque;

use super::mutant::{self, Mutant};
use super::settings::Settings;
use crate::types::{Index, Span, Time, Vector};

/// The position of one follower, as far as the leader knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Up to this index the follower's log is known to match, and is durable there.
    pub matched: Index,
    /// The next index to send.
    pub next: Index,
    pub mode: Sending,
    /// The last index of each append in flight.
    pub inflight: VecDeque<Index>,
    pub last_sent: Time,
    pub answered_round: u64,
    /// The time at which the newest round that it answered was sent: leases count from that time (P11).
    pub answered_sent: Time,
    pub answered_at: Time,
    /// The commit index in the last message to this follower.
    pub told: Index,
    /// The match index in its last answer: less than `matched` if the follower has restarted since.
    pub reported: Index,
    pub full: bool,
    /// Safe mode: the index up to which this disk has acknowledged records in this epoch, and the newest round at the time of
    /// that acknowledgement. In its answer to a later round the follower says where its log ends, and that must not be below this
    /// index (P27).
    kept: (Index, u64),
    /// Available mode: the follower is on this side, as far as is known (P32).
    pub joined: bool,
    /// Available mode: the follower has kept up. Writes wait for it, however slow its answers are now (P37).
    pub kept_up: bool,
    /// The vector of its log when it joined.
    pub vector: Option<Vector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// The follower's position is unknown: its next answer to a beat will tell it.
    Unknown,
    /// The leader looks for the common position: one append at a time.
    Probe,
    /// Appends follow each other without waiting.
    Stream,
    /// A snapshot is in flight.
    Snapshot,
}

/// The next step for one follower.
pub enum Step {
    Wait,
    Append(Index),
    Snapshot,
}

impl Progress {
    pub fn new(next: Index, now: Time) -> Progress {
        Progress {
            matched: 0,
            next,
            mode: Sending::Stream,
            inflight: VecDeque::new(),
            last_sent: now,
            answered_round: 0,
            answered_sent: Time::default(),
            answered_at: Time::default(),
            told: 0,
            reported: 0,
            full: false,
            kept: (0, 0),
            joined: false,
            kept_up: false,
            vector: None,
        }
    }

    /// The follower's position is unknown, and nothing is sent until it answers.
    pub fn unknown(next: Index, now: Time) -> Progress {
        Progress { mode: Sending::Unknown, ..Progress::new(next, now) }
    }

    pub fn answered(&mut self, round: u64, sent: Time, now: Time) {
        if round >= self.answered_round {
            self.answered_round = round;
            self.answered_sent = self.answered_sent.max(sent);
        }
        self.answered_at = now;
    }

    /// Another process runs on the same disk. The disk keeps its promises, so the answers before still count.
    pub fn restarted(&self, next: Index, now: Time) -> Progress {
        Progress {
            answered_round: self.answered_round,
            answered_sent: self.answered_sent,
            answered_at: self.answered_at,
            kept: self.kept,
            ..Progress::unknown(next, now)
        }
    }

    pub fn keeps(&mut self, matched: Index, round: u64) {
        if matched > self.kept.0 {
            self.kept = (matched, round);
        }
    }

    /// The index up to which the follower had acknowledged records before it can have heard of that round.
    pub fn kept_before(&self, round: u64) -> Index {
        let (kept, heard_in) = self.kept;
        if heard_in < round { kept } else { 0 }
    }

    /// Another disk took the follower's place: it may lack everything that the disk before it acknowledged. The time of the last
    /// answer stays, because some process of that node lived then. So under `ack = all` writes wait for the node, even if the
    /// message that showed the other disk was a late one of the disk before (P15).
    pub fn replaced(&self, next: Index, now: Time) -> Progress {
        let silent = mutant::is_on(Mutant::ReplacedIsSilent);
        let answered_at = if silent { Time::default() } else { self.answered_at };
        Progress { answered_at, ..Progress::unknown(next, now) }
    }

    /// Notes that an append up to `end` was sent.
    pub fn sent(&mut self, end: Index, now: Time) {
        self.last_sent = now;
        match self.mode {
            Sending::Stream => self.next = end + 1,
            _ => self.inflight.clear(),
        }
        self.inflight.push_back(end);
    }

    /// The follower has all that is committed and does not know that it is committed: no append will tell it.
    pub fn needs_only_commit_index(&self, commit: Index) -> bool {
        self.told < commit && self.matched >= commit
    }

    /// The follower is on another side.
    pub fn leave(&mut self) {
        self.joined = false;
        self.kept_up = false;
        self.mode = Sending::Unknown;
        self.inflight.clear();
        self.matched = 0;
    }

    pub fn acknowledged(&mut self, matched: Index) {
        self.joined = true;
        self.kept_up |= self.mode == Sending::Stream;
        self.matched = self.matched.max(matched);
        self.next = self.next.max(matched + 1);
        self.inflight.retain(|index| *index > matched);
    }

    pub fn resume_streaming(&mut self, base: Index) {
        let found = match self.mode {
            // The follower's position must be known to match: an answer alone does not show that.
            Sending::Probe => self.inflight.is_empty() && self.next == self.matched + 1,
            Sending::Snapshot => self.next > base,
            Sending::Unknown | Sending::Stream => false,
        };
        if found {
            self.mode = Sending::Stream;
        }
    }

    /// The follower has said where it stands: the records after `common` are sent next. If its log ends below what it has acknowledged,
    /// this is an old answer, or an old copy of the disk: the next answer decides (P27).
    pub fn located(&mut self, common: Index, end: Index) {
        if self.mode == Sending::Unknown && end >= self.kept.0 {
            self.rewind(common.max(self.matched));
        }
    }

    pub fn step(&mut self, now: Time, base: Index, last: Index, settings: &Settings) -> Step {
        let quiet = now.since(self.last_sent);
        // An append that is not answered within two beats, or a snapshot within a window, counts as lost. It
        // is not sent again at once: the next answer to a beat says where the follower's log ends (P5).
        let lost = !self.inflight.is_empty() && quiet > settings.timing.fresh();
        if lost || (self.mode == Sending::Snapshot && quiet > settings.timing.window) {
            self.inflight.clear();
            self.mode = Sending::Unknown;
        }
        match self.mode {
            _ if self.full => Step::Wait,
            Sending::Unknown | Sending::Snapshot => Step::Wait,
            _ if self.next <= base => {
                self.mode = Sending::Snapshot;
                self.kept_up = false;
                self.last_sent = now;
                Step::Snapshot
            }
            Sending::Probe if self.inflight.is_empty() => Step::Append(self.next),
            Sending::Stream if self.may_stream(quiet, last, settings) => Step::Append(self.next),
            _ => Step::Wait,
        }
    }

    pub fn may_stream(&self, quiet: Span, last: Index, settings: &Settings) -> bool {
        match self.next > last {
            // There is nothing to send, but a follower that has begun to follow again must learn how far it matches.
            true => self.reported < self.matched && quiet > settings.timing.fresh(),
            false => self.inflight.len() < settings.limits.inflight,
        }
    }

    /// Starts over after `index`, one append at a time.
    pub fn rewind(&mut self, index: Index) {
        self.next = index + 1;
        self.inflight.clear();
        self.mode = Sending::Probe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Limits;
    use crate::types::NodeId;

    /// The follower's log ends where the leader's does, but only a part of it is known to match. The leader checks the rest, even if no
    /// more records are written.
    #[test]
    fn an_answer_is_no_match() {
        let settings = Settings { limits: Limits::default(), ..Settings::lan(NodeId(1), Vec::new()) };
        let mut progress = Progress::unknown(192, Time(0));
        progress.located(191, 191);
        progress.acknowledged(180);
        progress.resume_streaming(0);
        assert_eq!(progress.mode, Sending::Probe);
        assert!(matches!(progress.step(Time(1), 0, 191, &settings), Step::Append(192)));
        progress.sent(191, Time(1));
        progress.acknowledged(191);
        progress.resume_streaming(0);
        assert_eq!(progress.mode, Sending::Stream);
    }
}
