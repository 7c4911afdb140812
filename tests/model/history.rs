//! What a spectator who sees all nodes at once remembers, and what must never be seen.

use eldest::protocol::{Term, Verdict};
use eldest::types::{Entry, Epoch, Position, Record, RequestId};

/// A broken promise of the protocol, found while an action was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// Two processes lead in one epoch (I1).
    TwoLeaders,
    /// Two nodes have committed different records at one index (I5).
    CommittedDiffer,
    /// A write was acknowledged that is not committed (I2).
    AcknowledgedNotCommitted,
    /// A write that was surely refused is committed (P15).
    RefusedCommitted,
    /// A promise on disk went down, or changed hands (P2).
    PromiseLowered,
    /// A message left before what it says was safe (I9).
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
    /// Every epoch that anybody led in, with its claim.
    pub leaders: Vec<Term>,
    /// The epochs that were opened.
    pub opened: Vec<Epoch>,
    /// The longest log that any node knows to be committed.
    pub committed: Vec<Record>,
    /// The epoch that each was committed in: its leader is the first to know.
    pub decided: Vec<Epoch>,
    /// Writes that were said to be surely not applied.
    pub refused: Vec<RequestId>,
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

    pub fn note_applied(&mut self, records: &[Record], epoch: Epoch) -> Result<(), Breach> {
        for record in records {
            match self.committed.get(record.index() as usize - 1) {
                Some(known) if known == record => {}
                Some(_) => return Err(Breach::CommittedDiffer),
                None => {
                    self.committed.push(record.clone());
                    self.decided.push(epoch);
                }
            }
            if request_of(record).is_some_and(|request| self.refused.contains(&request)) {
                return Err(Breach::RefusedCommitted);
            }
        }
        Ok(())
    }

    pub fn note_verdict(&mut self, request: RequestId, verdict: &Verdict) -> Result<(), Breach> {
        match verdict {
            Verdict::Written { position, .. } if !self.has_committed(*position) => {
                Err(Breach::AcknowledgedNotCommitted)
            }
            Verdict::Refused(_) => {
                self.refused.push(request);
                let mut committed = self.committed.iter();
                match committed.any(|record| request_of(record) == Some(request)) {
                    true => Err(Breach::RefusedCommitted),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn has_committed(&self, position: Position) -> bool {
        let record = self.committed.get(position.index as usize - 1);
        record.is_some_and(|record| record.position == position)
    }

    pub fn writes(&self) -> usize {
        let writes = self.committed.iter();
        writes.filter(|record| request_of(record).is_some()).count()
    }
}

/// A write's text is its request's number.
fn request_of(record: &Record) -> Option<RequestId> {
    match &record.entry {
        Entry::Client(payload) => payload.text.parse().ok().map(RequestId),
        _ => None,
    }
}
