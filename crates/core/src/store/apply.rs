//! Turns a record into the next state. The leader also asks beforehand what a command would do.

use std::borrow::Cow;

use super::command::{Command, Created, Operation, Reason, Rejection, Reply, Unreadable};
use super::data::{TokenEffects, TokenEvent};
use super::documents::{Restored, is_step};
use super::encoding::CALLS_MOST;
use super::leases::{DocEnded, Effects, LeaseEvent};
use super::state::Store;
use super::tables::Key;
use crate::types::{Entry, KeyedCall, Payload, Position, Record, Stamp, Text, WallTime};

/// The result of applying a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub outcome: Result<Reply, Rejection>,
    /// Each entry that was written or removed, in order, including remembered calls. A snapshot that writes only the changes
    /// has to look up these entries. An entry that a batch changes twice is listed twice.
    pub changes: Vec<Key>,
    /// The lease events of this record.
    pub events: Vec<LeaseEvent>,
    /// Documents that expired or ended with their lease.
    pub ended: Vec<(Text, DocEnded)>,
    /// The events of clients' tokens.
    pub tokens: Vec<TokenEvent>,
    /// All data has been replaced, so `changes` does not list what changed.
    pub restored: bool,
}

/// The leader's verdict on a command before it writes a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The command would change the state, so it needs a record.
    Accept,
    /// The call was carried out before, by the record at that position.
    Replay {
        at: Position,
        reply: Reply,
    },
    Rejected(Rejection),
    /// The command has an idempotency key, and the table of remembered calls is full. Only the leader returns this, in
    /// available mode. A record that is already in the log is applied anyway.
    TooManyKeys,
}

/// The changes of one command, and the operations in it that created a document.
#[derive(Debug, Default)]
pub struct Changes {
    keys: Vec<Key>,
    events: Vec<LeaseEvent>,
    ended: Vec<(Text, DocEnded)>,
    tokens: Vec<TokenEvent>,
    created: Vec<u16>,
}

impl Store {
    /// Applies the next record. An unreadable record leaves the state unchanged. A record that the rules reject changes no
    /// data, on any node.
    pub fn apply(&mut self, record: &Record) -> Result<Applied, Unreadable> {
        self.apply_read(record, None)
    }

    /// The same, for callers that have already parsed the record's command.
    pub fn apply_read(&mut self, record: &Record, command: Option<&Command>) -> Result<Applied, Unreadable> {
        assert_eq!(record.index(), self.applied.index + 1, "applied with a gap (I5)");
        if let Entry::Lead { .. } = &record.entry {
            // Steps of one restore belong to one epoch (P46, mutant `RestoreGoesOn`).
            self.staged = None;
        }
        let command = match &record.entry {
            Entry::Client(payload) if is_step(payload) => return self.apply_step(record, payload),
            Entry::Client(payload) => Some((read(payload, command)?, payload.call)),
            Entry::Lead { .. } | Entry::Rejoin { .. } | Entry::Members { .. } => None,
            Entry::ServiceDown { .. } | Entry::ServiceUp { .. } | Entry::Settled { .. } => None,
        };
        self.applied = record.position;
        self.stamp = record.stamp;
        let mut changes = Vec::new();
        // Calls are forgotten by the stamp of the record, so every node forgets the same ones at the same record (I5).
        self.forget_old_calls(&mut changes);
        self.keep_merge_metadata(&record.entry, &mut changes);
        let mut made = Changes { keys: changes, ..Changes::default() };
        let outcome = match command {
            Some((command, call)) => self.run(&command, call, &mut made),
            None => Ok(Reply::none()),
        };
        let Changes { keys: changes, events, ended, tokens, .. } = made;
        Ok(Applied { outcome, changes, events, ended, tokens, restored: false })
    }

    fn apply_step(&mut self, record: &Record, step: &Payload) -> Result<Applied, Unreadable> {
        let Restored { outcome, changes, restored } = self.apply_restore(record, step)?;
        self.applied = record.position;
        self.stamp = record.stamp;
        let (events, ended, tokens) = Default::default();
        Ok(Applied { outcome, changes, events, ended, tokens, restored })
    }

    fn forget_old_calls(&mut self, changes: &mut Vec<Key>) {
        let forgotten = self.idempotency_keys.forget_old(self.stamp.cluster);
        changes.extend(forgotten.iter().map(|(_, key)| Key::Call(*key)));
        if let Some(merging) = self.merging_mut().filter(|_| !forgotten.is_empty()) {
            for (age, key) in forgotten {
                merging.forget(&Key::Call(key), Some(age.1));
                merging.bounds.calls = merging.bounds.calls.max(age);
            }
            changes.push(Key::Side);
        }
    }

    /// Every leader's first record counts the bounds as changed, because a snapshot of a safe-mode state has none.
    fn keep_merge_metadata(&mut self, entry: &Entry, changes: &mut Vec<Key>) {
        let Some(merging) = self.merging_mut() else { return };
        match entry {
            Entry::Settled { upto } => merging.settle(*upto, changes),
            Entry::Lead { .. } => changes.push(Key::Side),
            _ => {}
        }
    }

    /// The result that a command would have if its record were written now, with the stamp `now`.
    pub fn judge(&self, command: &Command, call: Option<KeyedCall>, now: Stamp) -> Judged {
        if let Some((at, first)) = self.first_answer(command, call) {
            return match first {
                Ok(reply) => Judged::Replay { at, reply },
                Err(rejection) => Judged::Rejected(rejection),
            };
        }
        let full = |call: KeyedCall| self.idempotency_keys.are_full_for(call.who, now.cluster);
        if self.is_mergeable() && call.is_some_and(full) {
            return Judged::TooManyKeys;
        }
        // The leader alone can check the secret: the record will not contain it (P54).
        match self.admits_bonds(command).and_then(|()| self.would(command, now.wall)) {
            Ok(()) => Judged::Accept,
            Err(rejection) => Judged::Rejected(rejection),
        }
    }

    fn would(&self, command: &Command, wall: WallTime) -> Result<(), Rejection> {
        match command {
            Command::Single(operation) => Ok(self.check(operation, wall)?),
            Command::Batch(operations) => {
                let next = Position::new(self.applied.epoch, self.applied.index + 1);
                self.clone().run_batch(operations, next, wall, &mut Changes::default())
            }
        }
    }

    /// Whether this same call has been carried out, as far as the table still remembers it.
    pub fn remembers(&self, call: KeyedCall) -> bool {
        self.idempotency_keys.get(call.key).is_some_and(|first| first.body == call.body)
    }

    /// The answer to an earlier call with the same key. A token that exists already is itself the evidence of the earlier call.
    fn first_answer(
        &self,
        command: &Command,
        call: Option<KeyedCall>,
    ) -> Option<(Position, Result<Reply, Rejection>)> {
        if let Some(at) = self.made_before(command) {
            return Some((at, Ok(Reply::new(command, &self.rev(at), &None))));
        }
        let call = call?;
        let first = self.idempotency_keys.get(call.key)?;
        let answer = match first.body == call.body {
            true => Ok(Reply::new(command, &self.rev(first.at), &first.created)),
            false => Err(Reason::KeyReused.into()),
        };
        Some((first.at, answer))
    }

    fn run(
        &mut self,
        command: &Command,
        call: Option<KeyedCall>,
        all: &mut Changes,
    ) -> Result<Reply, Rejection> {
        if let Some((_, answer)) = self.first_answer(command, call) {
            return answer;
        }
        let (at, stamp, mut made) = (self.applied, self.stamp, Changes::default());
        match command {
            Command::Single(operation) => {
                self.check(operation, stamp.wall)?;
                self.change(0, operation, at, stamp.wall, &mut made);
            }
            Command::Batch(operations) => {
                // A rejection in the middle of the batch leaves this state untouched (P12). The copy shares its rows.
                let mut next = self.clone();
                next.run_batch(operations, at, stamp.wall, &mut made)?;
                *self = next;
            }
        }
        all.keys.append(&mut made.keys);
        all.events.append(&mut made.events);
        all.ended.append(&mut made.ended);
        all.tokens.append(&mut made.tokens);
        let created: Created = (!made.created.is_empty()).then(|| made.created.into());
        let reply = Reply::new(command, &self.rev(at), &created);
        if let Some(call) = call {
            // In available mode no key is dropped to make room: the leader refuses the call before it writes the record
            // (P52).
            if !self.is_mergeable() {
                let dropped = self.idempotency_keys.make_room(CALLS_MOST);
                all.keys.extend(dropped.into_iter().map(|(_, key)| Key::Call(key)));
            }
            self.idempotency_keys.remember(call, at, stamp.cluster, created);
            if let Some(merging) = self.merging_mut() {
                merging.note(Key::Call(call.key), at);
            }
            all.keys.push(Key::Call(call.key));
        }
        Ok(reply)
    }

    /// Each operation sees the changes of the operations before it. After a rejection this state must be discarded.
    fn run_batch(
        &mut self,
        operations: &[Operation],
        at: Position,
        wall: WallTime,
        made: &mut Changes,
    ) -> Result<(), Rejection> {
        for (number, operation) in operations.iter().enumerate() {
            let rejected = |reason| Rejection { operation: Some(number), reason };
            self.check(operation, wall).map_err(rejected)?;
            self.change(number, operation, at, wall, made);
        }
        Ok(())
    }

    /// The caller must have called `check` first.
    pub(in crate::store) fn change(
        &mut self,
        number: usize,
        operation: &Operation,
        at: Position,
        wall: WallTime,
        made: &mut Changes,
    ) {
        let changes = &mut made.keys;
        match operation {
            Operation::Lease(operation) => {
                let mut effects =
                    Effects { at, wall, changes, events: &mut made.events, ended: &mut made.ended };
                self.carry_out_lease(operation, &mut effects);
            }
            Operation::Token(operation) => {
                let mut effects = TokenEffects { at, wall, changes, events: &mut made.tokens };
                self.carry_out_token(operation, &mut effects);
            }
            Operation::ApplyConflict { id } => self.apply_conflict(id, at, changes),
            Operation::DropConflict { id } => self.drop_conflict(id, at, changes),
            operation => {
                if self.carry_out(operation, at, changes) {
                    made.created.extend(u16::try_from(number));
                }
            }
        }
    }

    /// Checks an operation's preconditions. The leader checks them before it writes a record, and every node checks them again
    /// when it applies the record.
    fn check(&self, operation: &Operation, wall: WallTime) -> Result<(), Reason> {
        match operation {
            Operation::Lease(operation) => self.check_lease(operation),
            Operation::Token(operation) => self.check_token(operation, wall),
            Operation::ApplyConflict { id } => self.check_apply_conflict(id),
            Operation::DropConflict { id } => self.check_conflict(id),
            operation => self.check_data(operation, wall),
        }
    }
}

fn read<'a>(payload: &Payload, command: Option<&'a Command>) -> Result<Cow<'a, Command>, Unreadable> {
    // A leader has the command at hand. It must be what the others read from the record, or the states differ.
    let Some(command) = command else { return Command::from_payload(payload).map(Cow::Owned) };
    debug_assert_eq!(
        Command::from_payload(payload).ok().as_ref(),
        Some(command),
        "every node reads the same"
    );
    Ok(Cow::Borrowed(command))
}
