//! A disk whose writes wait for a sync, and the messages that wait with them (P29).

use std::collections::VecDeque;

use eldest::protocol::{
    After, Beat, BeatReply, Envelope, Message, Recovered, Seq, SnapshotMeta, Vote, Write,
};
use eldest::types::{Boot, Epoch, Incarnation, Index, Position, Record};

use crate::history::Breach;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub records: Vec<Record>,
    /// Given to the disk, but not safe yet.
    pub queue: VecDeque<(Seq, Write)>,
    /// Every write up to this one is safe.
    done: Seq,
    held: VecDeque<(After, Envelope)>,
}

impl Disk {
    pub fn new(incarnation: Incarnation, vote: Vote, records: Vec<Record>) -> Disk {
        Disk {
            incarnation,
            vote,
            records,
            queue: VecDeque::new(),
            done: Seq::default(),
            held: VecDeque::new(),
        }
    }

    pub fn recover(&self, boot: Boot) -> Recovered {
        Recovered {
            boot,
            incarnation: self.incarnation,
            vote: self.vote,
            base: SnapshotMeta::default(),
            records: self.records.clone(),
        }
    }

    pub fn last(&self) -> Position {
        self.records.last().map_or(Position::ZERO, |record| record.position)
    }

    fn position(&self, index: Index) -> Option<Position> {
        let offset = index.checked_sub(1)? as usize;
        self.records.get(offset).map(|record| record.position)
    }

    fn holds(&self, position: Position) -> bool {
        position == Position::ZERO || self.position(position.index) == Some(position)
    }

    /// Returns the message at once if its writes are safe, or holds it until they are.
    pub fn hold(&mut self, envelope: Envelope, after: After) -> Option<Envelope> {
        if after.is_met(self.done, self.done) {
            return Some(envelope);
        }
        self.held.push_back((after, envelope));
        None
    }

    /// Everything that waits becomes safe. Returns the last write and the messages that are free to leave.
    pub fn sync(&mut self) -> Result<(Seq, Vec<Envelope>), Breach> {
        while let Some((seq, write)) = self.queue.pop_front() {
            self.apply(write)?;
            self.done = seq;
        }
        let done = self.done;
        let (free, held) = self.held.drain(..).partition(|(after, _)| after.is_met(done, done));
        self.held = held;
        let free: VecDeque<(After, Envelope)> = free;
        Ok((done, free.into_iter().map(|(_, envelope)| envelope).collect()))
    }

    /// Power is cut: the first `kept` of the waiting writes reached the disk, the others did not.
    pub fn lose(&mut self, kept: usize) -> Result<(), Breach> {
        for (_, write) in self.queue.drain(..).take(kept).collect::<Vec<_>>() {
            self.apply(write)?;
        }
        self.held.clear();
        self.done = Seq::default();
        Ok(())
    }

    fn apply(&mut self, write: Write) -> Result<(), Breach> {
        match write {
            Write::Vote(vote) => return self.store_vote(vote),
            Write::Append(records) => self.records.extend(records.iter().cloned()),
            Write::Truncate { above } => self.records.truncate(above as usize),
            // No case here takes snapshots.
            Write::Install(_) | Write::Rebase(_) | Write::Trim { .. } => return Err(Breach::Unexpected),
        }
        Ok(())
    }

    fn store_vote(&mut self, vote: Vote) -> Result<(), Breach> {
        let (before, after) = (self.vote.promise, vote.promise);
        self.vote = vote;
        let twice = before.epoch == after.epoch && before.claim != after.claim;
        match before.epoch > after.epoch || twice {
            true => Err(Breach::PromiseLowered),
            false => Ok(()),
        }
    }

    /// True if the statements of a message about its sender are true of this disk (I9). `in_memory` is the
    /// position in the sender's log in memory at the matched index, `now` its promise there. An answer given
    /// under an older promise may name records that have been replaced since, and no node counts those
    /// against the newer leader.
    pub fn covers(&self, message: &Message, now: Epoch, in_memory: Option<Position>) -> bool {
        let promised = |epoch: Epoch| self.vote.promise.epoch >= epoch;
        match message {
            Message::Approve { term, last, .. } => {
                // A record of that same epoch shows that its leader was decided without this approval.
                let outdated = now > term.epoch || self.last().epoch == term.epoch;
                promised(term.epoch) && (outdated || self.holds(*last))
            }
            Message::Appended { epoch, matched }
            | Message::HeartbeatReply(BeatReply { epoch, matched, .. }) => {
                let outdated = now > *epoch || *matched == 0;
                promised(*epoch) && (outdated || self.position(*matched) == in_memory)
            }
            Message::Pulled { term, records, .. } => {
                let last = records.last().map_or(Position::ZERO, |r| r.position);
                promised(term.epoch) && (now > term.epoch || self.holds(last))
            }
            Message::Refuse { promise, .. } => promised(*promise),
            Message::Stale { promise } => promised(promise.epoch),
            Message::Heartbeat(Beat { term, .. }) | Message::Append { term, .. } => promised(term.epoch),
            _ => true,
        }
    }
}
