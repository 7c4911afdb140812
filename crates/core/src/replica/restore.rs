//! All data is replaced by a document, or one is merged in: record after record, each when the one before is committed (P46).
//!
//! ```text
//!   Call::Restore ──► part ──► part ──► end ──► what it came to when it was applied ──► the caller
//!                      │        │        └─ no verdict ─────────────────────────────► unknown
//!                      └────────┴─ refused, deposed, too late ──► surely nothing ───► the caller
//!                                                └──► a record that clears away what is staged
//! ```
//!
//! Until the last step is proposed, nothing can come of an attempt; so whatever breaks it off before is a sure answer. What is left
//! staged is cleared away by whoever leads: by the record that opens the next epoch, or by one of this leader's own, which is due
//! whenever something is staged and nobody goes on with it.

use super::answer::{Answer, Denied, Written};
use super::io::CallId;
use super::pending::{Restoring, Waiting, WriteOutcome};
use super::state::Replica;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Refusal, Verdict};
use crate::store::{Guard, Reason, Reply, Rule, Steps, ending, give_up_restore};
use crate::types::{Entry, Epoch, Payload, Span, Time, WallTime};

/// While it goes on no snapshot is taken, and what it stages is held in memory. The largest document has a thousand steps, and
/// over slow links a step takes less than half a second. A backup may have more of them.
const WITHIN: Span = Span::millis(10 * 60 * 1000);
const STEP_WITHIN: Span = Span::millis(500);
/// The number of no restore: what is given up may be any.
const NONE: u64 = 0;

impl Replica {
    pub(super) fn on_restore(&mut self, call: CallId, document: Steps) {
        let Steps { steps, replaces_with, guard } = document;
        let refused = replaces_with.and_then(|bytes| self.state_with(bytes));
        let refused = refused.or_else(|| self.guarded(guard));
        let denied = match self.leads_in() {
            _ if self.restoring.is_some() => Denied::TooMany { bound: "documents at a time" },
            None => self.not_leading(),
            Some(epoch) => {
                if let Some(reason) = refused {
                    return self.deny(call, Denied::Rejected(reason.into()));
                }
                if steps.last().is_some_and(|last| self.is_unread(&self.last_step(last, guard))) {
                    return self.deny(call, Denied::FormatNotShared);
                }
                let endless = mutant::is_on(Mutant::RestoreNeverGivenUp);
                let within = WITHIN.max(STEP_WITHIN.times(steps.len() as u64));
                let until = if endless { Time::NEVER } else { self.now.mono + within };
                let steps = steps.into();
                self.restoring = Some(Restoring { call, steps, guard, epoch, until, waits: false });
                return;
            }
        };
        self.deny(call, denied);
    }

    /// Why all data is not replaced by rows that come to so many bytes (P55).
    fn state_with(&self, bytes: u64) -> Option<Reason> {
        let (state, most) = (self.versions.newest(), self.quota().most);
        let then = state.bytes_that_stay() + bytes;
        let over = then > most && then > state.bytes() && !mutant::is_on(Mutant::StateGrowsOn);
        over.then_some(Reason::StateFull { area: None, used: then, most })
    }

    /// Why a backup does not belong here (P57).
    fn guarded(&self, guard: Guard) -> Option<Reason> {
        let state = self.versions.newest();
        let clock = self.wall();
        // What was granted after the backup stands here, or an operator knows it, or the clock is past it.
        let is_known = guard.floor.is_some() || (guard.is_own && state.last_token() >= guard.token);
        let is_behind = clock < guard.time || clock.0 < guard.token;
        if is_behind && !is_known && !mutant::is_on(Mutant::RestoreTurnsTokensBack) {
            let Guard { time: written, token, .. } = guard;
            return Some(Reason::RuleViolated(Rule::TokenAhead { clock, written, token }));
        }
        let replaces = guard.only_if_empty && !state.has_no_data();
        replaces.then_some(Reason::RuleViolated(Rule::OtherCluster))
    }

    /// By the stamp of a record that would be written now.
    fn wall(&self) -> WallTime {
        self.core.stamp(self.now).unwrap_or_default().wall
    }

    /// The last step raises the last token where it has to (P57), and begins a history where another cluster's ends (P60). If some
    /// node may not read that yet (P23), all that it would say is the token, and the clock is past that, the plain one does: stamps
    /// never go back, so the next token is greater anyway.
    fn last_step(&self, step: &Payload, guard: Guard) -> Payload {
        let token = Some(guard.last_token()).filter(|token| *token > self.versions.newest().last_token());
        let begins = guard.is_foreign && !self.core.settings().is_available();
        let full = ending(step, token, begins);
        let past = token.is_none_or(|token| self.wall().0 > token);
        if !begins && past && self.is_unread(&full) { step.clone() } else { full }
    }

    /// Whether some node may not read this step (P23).
    fn is_unread(&self, step: &Payload) -> bool {
        let entry = Entry::Client(step.clone());
        self.core.refusal(&entry, false, 0, 0) == Some(Refusal::FormatNotShared)
    }

    fn leads_in(&self) -> Option<Epoch> {
        self.core.is_open().then(|| self.core.vote().promise.epoch)
    }

    /// Goes on with the restore, gives it up, or clears up behind one. False if there is nothing to do now.
    pub(super) fn settle_restore(&mut self) -> bool {
        let Some(restoring) = &self.restoring else {
            return self.clear_staged();
        };
        // Another epoch has begun, be it this node's own: what was staged is gone (P15).
        let goes_on = self.leads_in() == Some(restoring.epoch) || mutant::is_on(Mutant::RestoreGoesOn);
        let late = self.now.mono >= restoring.until;
        match restoring.is_in_doubt() {
            true if late => self.end_restore(Err(Denied::Unknown)),
            true => return false,
            false if !goes_on => self.end_restore(Err(self.not_leading())),
            false if late => {
                self.end_restore(Err(Denied::GivenUp { why: "it took longer than ten minutes" }));
            }
            false if restoring.waits => return false,
            false => self.take_step(),
        }
        true
    }

    fn take_step(&mut self) {
        if !self.look_ahead() {
            return;
        }
        if let Some(reason) = self.is_forbidden() {
            return self.end_restore(Err(Denied::Rejected(reason.into())));
        }
        let Some(restoring) = &mut self.restoring else { return };
        let (call, guard) = (restoring.call, restoring.guard);
        let (step, is_last) = (restoring.steps.pop_front(), restoring.steps.is_empty());
        match step {
            Some(step) => {
                restoring.waits = true;
                let step = if is_last { self.last_step(&step, guard) } else { step };
                self.propose_step(step, Waiting::Restore { call, outcome: Ok(Reply::none()) });
            }
            None => self.end_restore(Err(Denied::GivenUp { why: "it has no steps" })),
        }
    }

    /// Whether the next step, one that adds a document, would overrule more than the journal has room for (P48), or make the state
    /// larger than it may be (P55); or the last one would replace what somebody has written meanwhile (P57).
    fn is_forbidden(&self) -> Option<Reason> {
        let limits = &self.core.settings().limits;
        let Restoring { steps, guard, .. } = self.restoring.as_ref()?;
        let step = steps.front()?;
        if steps.len() == 1
            && let Some(reason) = self.guarded(*guard)
        {
            return Some(reason);
        }
        let state = self.versions.newest();
        let then = state.united_by(step)?;
        let (entries, bytes) = (then.conflict_count(), then.conflict_bytes());
        let over = entries > limits.conflicts || bytes > limits.conflict_bytes;
        if over && entries > state.conflict_count() && !mutant::is_on(Mutant::JournalUnbounded) {
            return Some(Reason::RuleViolated(Rule::JournalFull));
        }
        let (used, most) = (then.bytes(), limits.state_bytes);
        (used > most && used > state.bytes()).then_some(Reason::StateFull { area: None, used, most })
    }

    pub(super) fn restore_verdict(&mut self, call: CallId, outcome: WriteOutcome, verdict: Verdict) {
        let Some(restoring) = self.restoring.as_mut().filter(|restoring| restoring.call == call) else {
            // It has been given up, and its caller been told.
            return;
        };
        restoring.waits = false;
        let was_last = restoring.steps.is_empty();
        match (verdict, outcome) {
            (Verdict::Written { .. }, _) if !was_last => {}
            (Verdict::Written { position, acks }, Ok(reply)) => {
                let written = Written { position, acks: Some(acks), reply };
                self.end_restore(Ok(Answer::Written(written)));
            }
            (Verdict::Written { position, acks }, Err(_)) if mutant::is_on(Mutant::RestoreGoesOn) => {
                let written = Written { position, acks: Some(acks), reply: Reply::none() };
                self.end_restore(Ok(Answer::Written(written)));
            }
            (Verdict::Written { .. }, Err(rejection)) => self.end_restore(Err(Denied::Rejected(rejection))),
            (verdict @ Verdict::Refused(_), _) => {
                let denied = self.denied(&verdict);
                self.end_restore(Err(denied));
            }
            // A part may be in some log. The end is in none, and never will be.
            (_, _) if !was_last => {
                let denied = self.not_leading();
                self.end_restore(Err(denied));
            }
            (_, _) => self.end_restore(Err(Denied::Unknown)),
        }
    }

    fn end_restore(&mut self, answer: Result<Answer, Denied>) {
        if let Some(restoring) = self.restoring.take() {
            self.answer(restoring.call, answer);
        }
    }

    /// Something is staged and nobody goes on with it. No snapshot is taken while that is so (P26).
    fn clear_staged(&mut self) -> bool {
        let is_left = |this: &Replica| this.versions.newest().is_restoring();
        let nobody_clears = mutant::is_on(Mutant::StagedIsLeft);
        if nobody_clears || !self.core.is_open() || !is_left(self) || !self.look_ahead() || !is_left(self) {
            return false;
        }
        let give_up = give_up_restore(NONE);
        // What refuses this, leadership being handed over or a full disk, ends by itself, or with this leader.
        let refused = self.refusal_of_clearing(&give_up).is_some();
        if !refused {
            self.propose_clearing(give_up);
        }
        !refused
    }

    fn refusal_of_clearing(&self, give_up: &Payload) -> Option<Refusal> {
        let entry = Entry::Client(give_up.clone());
        self.core.refusal(&entry, true, self.round.entries.len() as u64, self.round.bytes)
    }

    /// When a restore is to be given up.
    pub(super) fn restore_deadline(&self) -> Time {
        self.restoring.as_ref().map_or(Time::NEVER, |restoring| restoring.until)
    }
}
