//! The size limit of the state (P55). The leader checks it before it writes a record. A record that is already in the log is
//! applied anyway.

use super::apply::Changes;
use super::command::{Command, Operation, Reason};
use super::state::Store;
use super::tables::area;
use crate::types::{Position, Stamp, Text};

/// The size limits that one leader enforces. Other nodes may be configured differently: only the leader's limits count.
#[derive(Clone, Copy, Debug)]
pub struct Quota<'a> {
    /// The limit for all rows together.
    pub most: u64,
    /// Limits for the documents of some areas: the part of a key up to and including its first slash.
    pub areas: &'a [(Text, u64)],
}

/// An operation adds at most twice its own text and this many bytes to the state: a vote's name has its quotes escaped.
const BEYOND_TEXT: u64 = 1024;

impl Store {
    /// The reason why a command that the rules accept would make the state larger than allowed. A command that does not make
    /// the state larger passes, however large the state is already.
    pub fn outgrown(&self, command: &Command, now: Stamp, quota: Quota) -> Option<Reason> {
        if !self.is_near(command, quota) {
            return None;
        }
        let next = self.after(command, now);
        // Both: a state that is too large already may shrink, and may be changed as long as it does not grow.
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

    /// Whether the exact size must be computed. Most states are far below their limits.
    fn is_near(&self, command: &Command, quota: Quota) -> bool {
        let operations = command.operations();
        // The size and the key of a value that is restored from the journal do not follow from the command.
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

    /// The state after the command. Copying the state costs a few pointers.
    fn after(&self, command: &Command, now: Stamp) -> Store {
        let (mut next, mut made) = (self.clone(), Changes::default());
        let at = Position::new(self.applied.epoch, self.applied.index + 1);
        for (number, operation) in command.operations().iter().enumerate() {
            next.change(number, operation, at, now.wall, &mut made);
        }
        next
    }

    /// The size of the state without clients' data: the part that a restore keeps.
    pub fn bytes_that_stay(&self) -> u64 {
        self.roles.bytes()
            + self.processes.bytes()
            + self.access.bytes()
            + self.idempotency_keys.table().bytes()
    }

    /// The size of the state, recounted from all rows.
    #[cfg(any(test, feature = "mutants"))]
    pub fn recounted_bytes(&self) -> u64 {
        let data = [
            self.users.recounted_bytes(),
            self.elections.recounted_bytes(),
            self.votes.table().recounted_bytes(),
            self.docs.table().recounted_bytes(),
            self.roles.recounted_bytes(),
            self.processes.recounted_bytes(),
            self.access.recounted_bytes(),
            self.idempotency_keys.table().recounted_bytes(),
        ];
        data.into_iter().sum()
    }
}
