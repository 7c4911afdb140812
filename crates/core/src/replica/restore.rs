//! A document replaces all data, or is merged in: record after record, each when the record before it is committed (P46).
//!
//! ```text
//!   Call::Restore ──► part ──► part ──► end ──► its outcome when it was applied ──────► the caller
//!                      │        │        └─ no verdict ─────────────────────────────► unknown
//!                      └────────┴─ refused, deposed, too late ──► surely nothing ───► the caller
//!                                                └──► a record that clears away what is staged
//! ```
//!
//! Before its last step is proposed, an attempt has no effect. So an attempt that breaks off before that has a sure answer. The
//! leader clears away the parts that are left staged: by the record that opens the next epoch, or by a record of the present
//! leader, which is due whenever something is staged and no attempt continues it.

use std::collections::VecDeque;

use super::answer::{Answer, Denied, Written};
use super::desk::Desk;
use super::io::CallId;
use super::pending::{Waiting, WriteOutcome};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Refusal, Verdict};
use crate::store::{Guard, Reason, Reply, Rule, Steps, ending, give_up_restore};
use crate::types::{Entry, Epoch, Payload, Span, Time, WallTime};

/// An attempt is given up after `WITHIN`, or after `STEP_WITHIN` for each of its steps if that is longer, because no snapshot
/// is taken while a restore goes on, and its staged parts are held in memory. The largest document has a thousand steps, and
/// over slow links a step takes less than half a second. A backup may have more steps.
const WITHIN: Span = Span::millis(10 * 60 * 1000);
const STEP_WITHIN: Span = Span::millis(500);
/// A number that no restore has. The record that clears up has this number, and gives up any restore that is staged.
const NONE: u64 = 0;

/// The restore under way. One document is restored at a time.
#[derive(Clone, Debug, Default)]
pub struct Restores {
    under_way: Option<Restoring>,
}

/// One attempt. All of its steps belong to one epoch of this node, or the attempt has no effect.
#[derive(Clone, Debug)]
struct Restoring {
    call: CallId,
    /// The steps that are yet to be proposed.
    steps: VecDeque<Payload>,
    /// The guard is checked before the first step, and again before the last.
    guard: Guard,
    epoch: Epoch,
    /// The attempt is given up at this time.
    until: Time,
    /// A step waits for its verdict.
    waits: bool,
}

impl Restoring {
    /// The last step may be in a log: only its verdict tells the outcome.
    fn is_in_doubt(&self) -> bool {
        self.waits && self.steps.is_empty()
    }
}

impl Restores {
    pub fn on_restore(&mut self, desk: &mut Desk, call: CallId, document: Steps) {
        let Steps { steps, replaces_with, guard } = document;
        let refused = replaces_with.and_then(|bytes| state_with(desk, bytes));
        let refused = refused.or_else(|| guarded(desk, guard));
        let denied = match desk.leads_in() {
            _ if self.under_way.is_some() => Denied::TooMany { bound: "documents at a time" },
            None => desk.not_leading(),
            Some(epoch) => {
                if let Some(reason) = refused {
                    return desk.deny(call, Denied::Rejected(reason.into()));
                }
                // The last step is checked before the first one is written. Otherwise a format that some node cannot
                // read yet (P23) would be noticed when everything is staged.
                if steps.last().is_some_and(|last| is_unread(desk, &last_step(desk, last, guard))) {
                    return desk.deny(call, Denied::FormatNotShared);
                }
                let endless = mutant::is_on(Mutant::RestoreNeverGivenUp);
                let within = WITHIN.max(STEP_WITHIN.times(steps.len() as u64));
                let until = if endless { Time::NEVER } else { desk.now.mono + within };
                let steps = steps.into();
                self.under_way = Some(Restoring { call, steps, guard, epoch, until, waits: false });
                return;
            }
        };
        desk.deny(call, denied);
    }

    /// Continues the restore, gives it up, or clears up after one. Returns false if there is nothing to do now.
    pub fn settle(&mut self, desk: &mut Desk) -> bool {
        let Some(restoring) = &self.under_way else {
            return self.clear_staged(desk);
        };
        // If another epoch has begun, even one of this node's own, the staged parts are gone (P46). So the attempt surely has no effect
        // (P15).
        let goes_on = desk.leads_in() == Some(restoring.epoch) || mutant::is_on(Mutant::RestoreGoesOn);
        let late = desk.now.mono >= restoring.until;
        match restoring.is_in_doubt() {
            // The caller waits no longer. The last step may still be committed; then the data is replaced, and the
            // caller does not hear of it.
            true if late => self.end(desk, Err(Denied::Unknown)),
            true => return false,
            false if !goes_on => self.end(desk, Err(desk.not_leading())),
            false if late => {
                self.end(desk, Err(Denied::GivenUp { why: "it took longer than its size allows" }));
            }
            false if restoring.waits => return false,
            false => self.take_step(desk),
        }
        true
    }

    fn take_step(&mut self, desk: &mut Desk) {
        // The step is judged by the newest version, so that version must have the records that the protocol wrote
        // meanwhile.
        if !desk.look_ahead() {
            return;
        }
        if let Some(reason) = self.is_forbidden(desk) {
            return self.end(desk, Err(Denied::Rejected(reason.into())));
        }
        let Some(restoring) = &mut self.under_way else { return };
        let (call, guard) = (restoring.call, restoring.guard);
        let (step, is_last) = (restoring.steps.pop_front(), restoring.steps.is_empty());
        match step {
            Some(step) => {
                restoring.waits = true;
                let step = if is_last { last_step(desk, &step, guard) } else { step };
                desk.propose_step(step, Waiting::Restore { call, outcome: Ok(Reply::none()) });
            }
            None => self.end(desk, Err(Denied::GivenUp { why: "it has no steps" })),
        }
    }

    /// The reason to refuse the next step. A step that adds a document may override more values than the journal has room for
    /// (P48), or make the state larger than it may be (P55). The last step must pass the guard again: data may have been
    /// written meanwhile (P57).
    fn is_forbidden(&self, desk: &Desk) -> Option<Reason> {
        let limits = &desk.node().settings().limits;
        let Restoring { steps, guard, .. } = self.under_way.as_ref()?;
        let step = steps.front()?;
        if steps.len() == 1
            && let Some(reason) = guarded(desk, *guard)
        {
            return Some(reason);
        }
        let state = desk.versions.newest();
        let then = state.united_by(step)?;
        let (entries, bytes) = (then.conflict_count(), then.conflict_bytes());
        let over = entries > limits.conflicts || bytes > limits.conflict_bytes;
        if over && entries > state.conflict_count() && !mutant::is_on(Mutant::JournalUnbounded) {
            return Some(Reason::RuleViolated(Rule::JournalFull));
        }
        let (used, most) = (then.bytes(), limits.state_bytes);
        (used > most && used > state.bytes()).then_some(Reason::StateFull { area: None, used, most })
    }

    pub fn verdict(&mut self, desk: &mut Desk, call: CallId, outcome: WriteOutcome, verdict: Verdict) {
        let Some(restoring) = self.under_way.as_mut().filter(|restoring| restoring.call == call) else {
            // The attempt has been given up, and its caller has its answer.
            return;
        };
        restoring.waits = false;
        let was_last = restoring.steps.is_empty();
        match (verdict, outcome) {
            (Verdict::Written { .. }, _) if !was_last => {}
            (Verdict::Written { position, acks }, Ok(reply)) => {
                let written = Written { position, acks: Some(acks), reply };
                self.end(desk, Ok(Answer::Written(written)));
            }
            (Verdict::Written { position, acks }, Err(_)) if mutant::is_on(Mutant::RestoreGoesOn) => {
                let written = Written { position, acks: Some(acks), reply: Reply::none() };
                self.end(desk, Ok(Answer::Written(written)));
            }
            (Verdict::Written { .. }, Err(rejection)) => self.end(desk, Err(Denied::Rejected(rejection))),
            (verdict @ Verdict::Refused(_), _) => {
                let denied = desk.denied(&verdict);
                self.end(desk, Err(denied));
            }
            // A part may be in some log. The last step is in none, and never will be.
            (_, _) if !was_last => {
                let denied = desk.not_leading();
                self.end(desk, Err(denied));
            }
            (_, _) => self.end(desk, Err(Denied::Unknown)),
        }
    }

    fn end(&mut self, desk: &mut Desk, answer: Result<Answer, Denied>) {
        if let Some(restoring) = self.under_way.take() {
            desk.answer(restoring.call, answer);
        }
    }

    /// Clears away staged parts that no attempt continues, because no snapshot is taken while something is staged (P26).
    fn clear_staged(&mut self, desk: &mut Desk) -> bool {
        let is_left = |desk: &Desk| desk.versions.newest().is_restoring();
        let nobody_clears = mutant::is_on(Mutant::StagedIsLeft);
        // The second look is at the version that includes the records of the protocol: one of them may have cleared
        // what was staged.
        if nobody_clears || !desk.node().is_open() || !is_left(desk) || !desk.look_ahead() || !is_left(desk) {
            return false;
        }
        let give_up = give_up_restore(NONE);
        // A refusal ends by itself or with this leader: leadership is being handed over, or the disk is full.
        let refused = desk.refusal(&Entry::Client(give_up.clone()), true).is_some();
        if !refused {
            desk.propose_clearing(give_up);
        }
        !refused
    }

    /// The replica ends. A restore whose last step has not been proposed has no effect.
    pub fn break_off(&mut self, desk: &mut Desk) {
        if let Some(restoring) = self.under_way.take() {
            let denied = if restoring.is_in_doubt() { Denied::Unknown } else { Denied::Stopping };
            desk.deny(restoring.call, denied);
        }
    }

    /// The time when the restore is given up.
    pub fn deadline(&self) -> Time {
        self.under_way.as_ref().map_or(Time::NEVER, |restoring| restoring.until)
    }
}

/// The reason not to replace all data by rows of so many bytes (P55).
fn state_with(desk: &Desk, bytes: u64) -> Option<Reason> {
    let (state, most) = (desk.versions.newest(), desk.quota().most);
    let then = state.bytes_that_stay() + bytes;
    let over = then > most && then > state.bytes() && !mutant::is_on(Mutant::StateGrowsOn);
    over.then_some(Reason::StateFull { area: None, used: then, most })
}

/// The reason why a backup does not belong here (P57).
fn guarded(desk: &Desk, guard: Guard) -> Option<Reason> {
    let state = desk.versions.newest();
    let clock = wall(desk);
    // The tokens granted after the backup are in this state, or an operator knows them, or the clock is past them.
    let is_known = guard.floor.is_some() || (guard.is_own && state.last_token() >= guard.token);
    let is_behind = clock < guard.time || clock.0 < guard.token;
    if is_behind && !is_known && !mutant::is_on(Mutant::RestoreTurnsTokensBack) {
        let Guard { time: written, token, .. } = guard;
        return Some(Reason::RuleViolated(Rule::TokenAhead { clock, written, token }));
    }
    let replaces = guard.only_if_empty && !state.has_no_data();
    replaces.then_some(Reason::RuleViolated(Rule::OtherCluster))
}

/// The wall time in the stamp that a record written now would get.
fn wall(desk: &Desk) -> WallTime {
    desk.node().stamp(desk.now).unwrap_or_default().wall
}

/// The last step raises the last token where it has to (P57), and begins a new history if the data is another cluster's (P60). The plain
/// step is enough if some node cannot read that format yet (P23), the token is all that the step would add, and the clock is past the
/// token: stamps never go back, so the next token is greater anyway.
fn last_step(desk: &Desk, step: &Payload, guard: Guard) -> Payload {
    let token = Some(guard.last_token()).filter(|token| *token > desk.versions.newest().last_token());
    let begins = guard.is_foreign && !desk.node().settings().is_available();
    let full = ending(step, token, begins);
    let past = token.is_none_or(|token| wall(desk).0 > token);
    if !begins && past && is_unread(desk, &full) { step.clone() } else { full }
}

/// Whether some node may be unable to read this step (P23).
fn is_unread(desk: &Desk, step: &Payload) -> bool {
    let entry = Entry::Client(step.clone());
    desk.node().refusal(&entry, false, 0, 0) == Some(Refusal::FormatNotShared)
}
