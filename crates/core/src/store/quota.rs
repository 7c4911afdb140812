//! How large the state may become (P55): the leader asks before it writes a record. What is in the log is applied.

use super::apply::Changes;
use super::command::{Command, Operation, Reason};
use super::state::Store;
use super::tables::area;
use crate::types::{Position, Stamp, Text};

/// What one leader lets clients fill. Others may be told otherwise: only the leader's word counts.
#[derive(Clone, Copy, Debug)]
pub struct Quota<'a> {
    /// For all rows together.
    pub most: u64,
    /// For the documents under some areas: keys up to their first slash.
    pub areas: &'a [(Text, u64)],
}

/// An operation adds less than this to the state beyond twice its own text: a vote's name has its quotes escaped.
const BEYOND_TEXT: u64 = 1024;

impl Store {
    /// Why a command that the rules accept would make the state larger than it may be. Whatever makes it no larger passes,
    /// however large it is already.
    pub fn outgrown(&self, command: &Command, now: Stamp, quota: Quota) -> Option<Reason> {
        if !self.is_near(command, quota) {
            return None;
        }
        let next = self.after(command, now);
        let over = |before: u64, then: u64, most: u64| then > before && then > most;
        if over(self.bytes(), next.bytes(), quota.most) {
            return Some(Reason::StateFull { area: None, used: self.bytes(), most: quota.most });
        }
        let full =
            quota.areas.iter().find(|(area, most)| over(self.bytes_in(area), next.bytes_in(area), *most));
        full.map(|(area, most)| {
            let used = self.bytes_in(area);
            Reason::StateFull { area: Some(area.clone()), used, most: *most }
        })
    }

    /// Whether it is worth working out. Most states are far from their limits.
    fn is_near(&self, command: &Command, quota: Quota) -> bool {
        let operations = command.operations();
        // What is put back is as large as it was, and stands under the key that it had: the command says neither.
        if operations.iter().any(|operation| matches!(operation, Operation::ApplyConflict { .. })) {
            return true;
        }
        let text: usize = operations.iter().map(Operation::size).sum();
        let adds = 2 * text as u64 + BEYOND_TEXT * operations.len() as u64;
        let written = |operation: &Operation| match operation {
            Operation::PutDoc { key, .. } => area(key).map(Text::from),
            _ => None,
        };
        let touches = |limited: &Text| operations.iter().filter_map(written).any(|area| area == *limited);
        self.bytes() + adds > quota.most
            || quota.areas.iter().any(|(area, most)| self.bytes_in(area) + adds > *most && touches(area))
    }

    /// A copy costs a few pointers.
    fn after(&self, command: &Command, now: Stamp) -> Store {
        let (mut next, mut made) = (self.clone(), Changes::default());
        let at = Position::new(self.applied.epoch, self.applied.index + 1);
        for (number, operation) in command.operations().iter().enumerate() {
            next.change(number, operation, at, now.wall, &mut made);
        }
        next
    }

    /// How large it is without clients' data: what a restore leaves as it is.
    pub fn bytes_that_stay(&self) -> u64 {
        self.roles.bytes()
            + self.processes.bytes()
            + self.access.bytes()
            + self.idempotency_keys.table().bytes()
    }

    /// How large it is as it would be counted anew.
    #[cfg(any(test, feature = "mutants"))]
    pub fn bytes_anew(&self) -> u64 {
        let data = [
            self.users.bytes_anew(),
            self.elections.bytes_anew(),
            self.votes.table().bytes_anew(),
            self.docs.table().bytes_anew(),
            self.roles.bytes_anew(),
            self.processes.bytes_anew(),
            self.access.bytes_anew(),
            self.idempotency_keys.table().bytes_anew(),
        ];
        data.into_iter().sum()
    }
}
