//! All data is replaced by a document, or one is merged in: record after record, each when the one before is committed.

use super::answer::{Answer, Denied, Written};
use super::io::CallId;
use super::state::{Replica, Restoring, Turn, Waiting};
use crate::protocol::Verdict;
use crate::protocol::mutant::{self, Mutant};
use crate::store::{Reply, give_up_restore};
use crate::types::Payload;

/// The number of no restore: what is given up may be any.
const NONE: u64 = 0;

impl Replica {
    pub(super) fn on_restore(&mut self, call: CallId, steps: Vec<Payload>, give_up: Payload) {
        let restoring =
            Restoring { call, steps: steps.into(), give_up, epoch: None, reply: None, failed: None };
        self.roles.add_turn(Turn::Restore(restoring.into()));
    }

    /// The next step, or the last word.
    pub(super) fn take_restore(&mut self, mut restoring: Box<Restoring>) {
        if !self.core.is_open() || !self.goes_on(&mut restoring) || !self.look_ahead() {
            let denied = restoring.failed.take().unwrap_or_else(|| self.not_leading());
            return self.deny(restoring.call, denied);
        }
        let step = match &restoring.failed {
            Some(_) => Some(restoring.give_up.clone()),
            None => restoring.steps.pop_front(),
        };
        let Some(step) = step else {
            return self.deny(restoring.call, Denied::Unknown);
        };
        self.propose(step, Waiting::Restore(restoring));
    }

    /// A step may be committed in a later epoch of this very node. What it had staged is gone by then, and its last step,
    /// which was never proposed, would put nothing in place and be acknowledged (P15).
    fn goes_on(&self, restoring: &mut Restoring) -> bool {
        let epoch = self.core.vote().promise.epoch;
        *restoring.epoch.get_or_insert(epoch) == epoch || mutant::is_on(Mutant::RestoreGoesOn)
    }

    /// A step was refused, and so was the record that gives the restore up. It is written once this leader can: no snapshot
    /// is taken while anything is staged (P26).
    pub(super) fn clear_staged(&mut self) {
        let is_left = |this: &Replica| this.versions.newest().is_restoring() && !this.pending.is_restoring();
        let nobody_clears = mutant::is_on(Mutant::StagedIsLeft);
        if !nobody_clears && self.core.is_open() && is_left(self) && self.look_ahead() && is_left(self) {
            self.propose(give_up_restore(NONE), Waiting::Nobody);
        }
    }

    pub(super) fn restore_verdict(&mut self, mut restoring: Box<Restoring>, verdict: Verdict) {
        if let Some(denied) = restoring.failed.take() {
            return self.deny(restoring.call, denied);
        }
        match verdict {
            Verdict::Written { position, acks } if restoring.steps.is_empty() => {
                let reply = restoring.reply.unwrap_or_else(Reply::none);
                self.answer(
                    restoring.call,
                    Ok(Answer::Written(Written { position, acks: Some(acks), reply })),
                );
            }
            Verdict::Written { .. } => self.roles.add_turn(Turn::Restore(restoring)),
            // Whoever leads next clears away what is staged.
            Verdict::Unknown | Verdict::Done | Verdict::Readable { .. } => {
                self.deny(restoring.call, Denied::Unknown)
            }
            Verdict::Refused(_) => {
                restoring.failed = Some(self.denied(&verdict));
                self.roles.add_turn(Turn::Restore(restoring));
            }
        }
    }
}
