//! The tools that all rules use: writing, promising, sending, committing. What must be durable
//! before a message leaves is decided here and nowhere else (I9).

use super::node::{Node, Role};
use crate::protocol::log::{After, Seq};
use crate::protocol::messages::{Envelope, Event, Fault, Message, Output, Term, Verdict, Write};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{
    ClaimId, Epoch, Incarnation, Index, NUMBER_MOST, NodeId, Position, RequestId, Span, Time,
};

impl Node {
    pub(in crate::protocol) fn me(&self) -> NodeId {
        self.settings.me
    }

    pub(in crate::protocol) fn mono(&self) -> Time {
        self.now.mono
    }

    pub(in crate::protocol) fn promise(&self) -> Epoch {
        self.vote.promise.epoch
    }

    /// The disk that this node's last message came from.
    pub(in crate::protocol) fn disk_of(&self, node: NodeId) -> Incarnation {
        self.peers.get(node).map(|peer| peer.incarnation).unwrap_or_default()
    }

    /// The next counter above every epoch promised or heard of (P2).
    pub(in crate::protocol) fn next_counter(&self) -> u64 {
        (self.newest_counter() + 1).min(NUMBER_MOST)
    }

    pub(in crate::protocol) fn own_term(&self, counter: u64) -> Term {
        Term { epoch: Epoch::new(counter, self.me()), claim: ClaimId(self.boot.0) }
    }

    pub(in crate::protocol) fn write(&mut self, seq: Seq, write: Write) {
        self.out.push(Output::Write { seq, write });
    }

    pub(in crate::protocol) fn write_vote(&mut self) {
        let seq = self.disk.vote_written();
        self.write(seq, Write::Vote(self.vote));
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub(in crate::protocol) fn raise_promise(&mut self, term: Term) {
        debug_assert!(term.epoch > self.promise() || mutant::is_on(Mutant::SameEpochTwice));
        self.vote.promise = term;
        self.seen = self.seen.max(term.epoch);
        self.write_vote();
    }

    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        Envelope {
            from: self.me(),
            to,
            boot: self.boot,
            incarnation: self.incarnation,
            admitted: self.vote.admitted,
            cluster: self.log.roster().cluster(),
            format: self.settings.format,
            message,
        }
    }

    /// A message that binds this node to its promise: leaves once the promise is on disk (P29).
    pub(in crate::protocol) fn send(&mut self, to: NodeId, message: Message) {
        let after = self.disk.vote();
        self.send_after(to, message, after);
    }

    /// An acknowledgement: leaves once the records are on disk too (P29).
    pub(in crate::protocol) fn send_acknowledgement(&mut self, to: NodeId, message: Message) {
        let after = match mutant::is_on(Mutant::AckBeforeSync) {
            true => After::default(),
            false => self.disk.vote_and_log(),
        };
        self.send_after(to, message, after);
    }

    /// The end of the log that a promise or the answer to a beat may name, and what must be on disk for that. Where records
    /// wait for room only the promise is waited for, and they are not named (P24). In available mode they are: what goes with
    /// such a message says what the whole log includes.
    pub(in crate::protocol) fn told_end(&self) -> (Position, After) {
        let stuck = self.full && self.disk.lacks_records_only() && !self.settings.is_available();
        if !stuck || mutant::is_on(Mutant::FullWaitsForRoom) {
            return (self.log.last(), self.disk.vote_and_log());
        }
        // What lies below the base is in a snapshot, which is durable.
        let there = self.log.position(self.disk.upto()).unwrap_or(self.log.base());
        let named = if mutant::is_on(Mutant::FullTellsAll) { self.log.last() } else { there };
        (named, self.disk.vote())
    }

    pub(in crate::protocol) fn send_after(&mut self, to: NodeId, message: Message, after: After) {
        let envelope = self.envelope(to, message);
        self.out.push(Output::Send { envelope, after });
    }

    pub(in crate::protocol) fn broadcast(&mut self, message: &Message, after: After) {
        for to in self.others() {
            self.send_after(to, message.clone(), after);
        }
    }

    pub(in crate::protocol) fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    pub(in crate::protocol) fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        self.out.push(Output::Verdict { request, verdict });
    }

    /// Ends this node because of what another one has sent. Where nobody proves who speaks anybody may have sent it: there
    /// people are told, once, and what was sent is not listened to (P51).
    pub(in crate::protocol) fn stop_on_word(&mut self, fault: Fault) {
        if self.settings.peers_prove {
            self.stop(fault);
        } else if self.told_fault != Some(fault) {
            self.told_fault = Some(fault);
            self.event(Event::Accused { fault });
        }
    }

    pub(in crate::protocol) fn stop(&mut self, fault: Fault) {
        self.stopped = true;
        self.out.push(Output::Stop(fault));
    }

    /// Raises the commit index, applies what it covers, and answers what it decides.
    pub(in crate::protocol) fn commit_to(&mut self, index: Index) {
        let index = index.min(self.log.last().index);
        if index <= self.commit {
            return;
        }
        let records = self.log.range(self.commit, index);
        self.commit = index;
        if let Some(leading) = self.leading_mut() {
            let bytes: usize = records.iter().map(|record| record.entry.size()).sum();
            leading.uncommitted_bytes = leading.uncommitted_bytes.saturating_sub(bytes);
        }
        self.out.push(Output::Apply(records));
        if !matches!(self.role, Role::Leading(_)) {
            self.decide_waiting(index);
        }
    }

    pub(in crate::protocol) fn fresh(&self) -> Span {
        self.settings.timing.fresh()
    }
}
