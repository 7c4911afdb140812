//! From a record to the next state, and the leader's question beforehand.

use super::calls::Created;
use super::command::{Command, Operation};
use super::key::Key;
use super::leases::LeaseEvent;
use super::leasing::Making;
use super::parse::Unreadable;
use super::rejection::{Reason, Rejection};
use super::reply::Reply;
use super::restore::is_step;
use super::state::Store;
use crate::types::{Call, Entry, Position, Record, Stamp, WallTime};

/// What a record came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub outcome: Result<Reply, Rejection>,
    /// Each entry that was written or removed, in order, the remembered calls among them: what a snapshot of the
    /// difference has to look up. An entry that a batch changes twice is here twice.
    pub changes: Vec<Key>,
    /// What became of leases.
    pub events: Vec<LeaseEvent>,
    /// All data has been replaced: there is no list of what changed.
    pub restored: bool,
}

/// What would come of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It would change the state: worth a record.
    Accept,
    /// This call was carried out before, by the record at that position.
    Replay {
        at: Position,
        reply: Reply,
    },
    Rejected(Rejection),
    /// It has an idempotency key, and as many are remembered as may be. Only the leader says this: what is in the log is
    /// applied.
    TooManyKeys,
}

/// The changes of one command, and which of its operations made a document.
#[derive(Debug, Default)]
struct Changes {
    keys: Vec<Key>,
    events: Vec<LeaseEvent>,
    created: Vec<u16>,
}

impl Store {
    /// Applies the next record. An unreadable one leaves the state as it was; one that the rules reject changes no
    /// data, on every node alike.
    pub fn apply(&mut self, record: &Record) -> Result<Applied, Unreadable> {
        assert_eq!(record.index(), self.applied.index + 1, "applied with a gap (I5)");
        if let Entry::Lead { .. } = &record.entry {
            self.staged = None;
        }
        let command = match &record.entry {
            Entry::Client(payload) if is_step(payload) => return self.apply_restore(record, payload),
            Entry::Client(payload) => Some((Command::from_payload(payload)?, payload.call)),
            Entry::Lead { .. } | Entry::Rejoin { .. } => None,
            Entry::ServiceDown { .. } | Entry::ServiceUp { .. } | Entry::Settled { .. } => None,
        };
        self.applied = record.position;
        self.stamp = record.stamp;
        let mut changes = Vec::new();
        self.forget_old_calls(&mut changes);
        self.keep_sides(&record.entry, &mut changes);
        let mut events = Vec::new();
        let outcome = match command {
            Some((command, call)) => self.run(&command, call, &mut changes, &mut events),
            None => Ok(Reply::none()),
        };
        Ok(Applied { outcome, changes, events, restored: false })
    }

    fn forget_old_calls(&mut self, changes: &mut Vec<Key>) {
        let forgotten = self.calls.forget_old(self.stamp.cluster);
        changes.extend(forgotten.iter().map(|(_, key)| Key::Call(*key)));
        if let Some(sides) = self.sides_mut().filter(|_| !forgotten.is_empty()) {
            for (age, key) in forgotten {
                sides.forget(&Key::Call(key), Some(age.1));
                sides.bounds.calls = sides.bounds.calls.max(age);
            }
            changes.push(Key::Side);
        }
    }

    /// With each leader the bounds are written anew: the snapshot of a state of safe mode has none.
    fn keep_sides(&mut self, entry: &Entry, changes: &mut Vec<Key>) {
        let Some(sides) = self.sides_mut() else { return };
        match entry {
            Entry::Settled { upto } => sides.settle(*upto, changes),
            Entry::Lead { .. } => changes.push(Key::Side),
            _ => {}
        }
    }

    /// What a command would come to if its record were written now, with the stamp `now`.
    pub fn judge(&self, command: &Command, call: Option<Call>, now: Stamp) -> Judged {
        if let Some(call) = call {
            if let Some((at, first)) = self.first_answer(command, call) {
                return match first {
                    Ok(reply) => Judged::Replay { at, reply },
                    Err(rejection) => Judged::Rejected(rejection),
                };
            }
            if self.calls.are_full(now.cluster) {
                return Judged::TooManyKeys;
            }
        }
        match self.would(command, now.wall) {
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

    /// The answer to an earlier call with the same key.
    fn first_answer(&self, command: &Command, call: Call) -> Option<(Position, Result<Reply, Rejection>)> {
        let first = self.calls.get(call.key)?;
        let answer = match first.body == call.body {
            true => Ok(Reply::new(command, &self.rev(first.at), &first.created)),
            false => Err(Reason::KeyReused.into()),
        };
        Some((first.at, answer))
    }

    fn run(
        &mut self,
        command: &Command,
        call: Option<Call>,
        changes: &mut Vec<Key>,
        events: &mut Vec<LeaseEvent>,
    ) -> Result<Reply, Rejection> {
        if let Some((_, answer)) = call.and_then(|call| self.first_answer(command, call)) {
            return answer;
        }
        let (at, stamp, mut made) = (self.applied, self.stamp, Changes::default());
        match command {
            Command::Single(operation) => {
                self.check(operation, stamp.wall)?;
                self.change(0, operation, at, stamp.wall, &mut made);
            }
            Command::Batch(operations) => {
                let mut next = self.clone();
                next.run_batch(operations, at, stamp.wall, &mut made)?;
                *self = next;
            }
        }
        changes.append(&mut made.keys);
        events.append(&mut made.events);
        let created: Created = (!made.created.is_empty()).then(|| made.created.into());
        let reply = Reply::new(command, &self.rev(at), &created);
        if let Some(call) = call {
            self.calls.remember(call, at, stamp.cluster, created);
            if let Some(sides) = self.sides_mut() {
                sides.note(Key::Call(call.key), at);
            }
            changes.push(Key::Call(call.key));
        }
        Ok(reply)
    }

    /// Each operation sees what those before it did. After a rejection this state is good for nothing.
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

    fn change(
        &mut self,
        number: usize,
        operation: &Operation,
        at: Position,
        wall: WallTime,
        made: &mut Changes,
    ) {
        let mut making = Making { at, wall, changes: &mut made.keys, events: &mut made.events };
        if self.carry_out(operation, &mut making) {
            made.created.extend(u16::try_from(number));
        }
    }
}
