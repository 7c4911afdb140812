//! The memory of a spectator who sees all nodes at once, and the breaches that must never be seen.

use eldest::protocol::Term;
use eldest::replica::{Answer, CallId, Denied};
use eldest::types::{Entry, Epoch, Format, Payload, Position, Record};

/// A broken promise of the protocol, found while an action was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// Two processes lead in one epoch (I1).
    TwoLeaders,
    /// Two nodes have committed different records at one index (I5).
    CommittedDiffer,
    /// A write was acknowledged that is not committed (I2).
    AcknowledgedNotCommitted,
    /// A write that was refused for certain is committed (P15).
    RefusedCommitted,
    /// A promise on disk went down, or changed hands (P2).
    PromiseLowered,
    /// A message left before its statements were safe (I9).
    SentBeforeDurable,
    /// A node found a contradiction and stopped.
    Stopped,
    /// An assertion of the core failed (I11).
    Assertion,
    /// Something that no case here can bring about.
    Unexpected,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct History {
    /// Every epoch that any node led in, with its claim.
    pub leaders: Vec<Term>,
    /// The epochs that were opened.
    pub opened: Vec<Epoch>,
    /// The longest log that any node knows to be committed.
    pub committed: Vec<Record>,
    /// The epoch in which each record was committed: its leader is the first to know.
    pub decided: Vec<Epoch>,
    /// Writes that are certain not to be applied, by an answer.
    pub refused: Vec<CallId>,
}

impl History {
    pub fn note_leader(&mut self, term: Term) -> Result<(), Breach> {
        match self.leaders.iter().find(|led| led.epoch == term.epoch) {
            Some(led) if led.claim != term.claim => Err(Breach::TwoLeaders),
            Some(_) => Ok(()),
            None => {
                self.leaders.push(term);
                self.leaders.sort_unstable();
                Ok(())
            }
        }
    }

    pub fn note_opened(&mut self, epoch: Epoch) {
        if !self.opened.contains(&epoch) {
            self.opened.push(epoch);
            self.opened.sort_unstable();
        }
    }

    pub fn note_applied(&mut self, record: &Record, epoch: Epoch) -> Result<(), Breach> {
        match self.committed.get(record.index() as usize - 1) {
            Some(known) if known == record => {}
            Some(_) => return Err(Breach::CommittedDiffer),
            None => {
                self.committed.push(record.clone());
                self.decided.push(epoch);
            }
        }
        match call_of(record).is_some_and(|call| self.refused.contains(&call)) {
            true => Err(Breach::RefusedCommitted),
            false => Ok(()),
        }
    }

    pub fn note_answer(&mut self, call: CallId, answer: &Result<Answer, Denied>) -> Result<(), Breach> {
        match answer {
            Ok(Answer::Written(written)) if !self.has_committed(written.position) => {
                Err(Breach::AcknowledgedNotCommitted)
            }
            Ok(_) | Err(Denied::Unknown) => Ok(()),
            Err(_) => {
                self.refused.push(call);
                let mut committed = self.committed.iter();
                match committed.any(|record| call_of(record) == Some(call)) {
                    true => Err(Breach::RefusedCommitted),
                    false => Ok(()),
                }
            }
        }
    }

    fn has_committed(&self, position: Position) -> bool {
        let record = self.committed.get(position.index as usize - 1);
        record.is_some_and(|record| record.position == position)
    }

    pub fn writes(&self) -> usize {
        let writes = self.committed.iter();
        writes.filter(|record| call_of(record).is_some()).count()
    }
}

/// The content of a write: a user whose name is the number of its call.
pub fn user(name: &str) -> Payload {
    let text = format!("{{\"name\":\"{name}\"}}").into();
    Payload { kind: 1, format: Format(1), call: None, text }
}

fn call_of(record: &Record) -> Option<CallId> {
    let Entry::Client(payload) = &record.entry else { return None };
    let name = payload.text.split('"').nth(3)?;
    name.parse().ok().map(CallId)
}
