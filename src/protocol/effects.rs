//! The tools that all rules use: writing, promising, sending, committing. What must be durable
//! before a message leaves is decided here and nowhere else (I9).

use super::io::{Event, Fault, Output, Seq, Verdict, Write};
use super::message::{Envelope, Message, Term};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use crate::types::{ClaimId, Epoch, Index, NodeId, RequestId, Span, Time};

impl Node {
    pub(super) fn me(&self) -> NodeId {
        self.settings.me
    }

    pub(super) fn mono(&self) -> Time {
        self.now.mono
    }

    pub(super) fn promise(&self) -> Epoch {
        self.vote.promise.epoch
    }

    /// The next counter above every epoch promised or heard of (P2).
    pub(super) fn next_counter(&self) -> u64 {
        self.promise().counter.max(self.seen.counter) + 1
    }

    pub(super) fn own_term(&self, counter: u64) -> Term {
        Term { epoch: Epoch::new(counter, self.me()), claim: ClaimId(self.boot.0) }
    }

    pub(super) fn write(&mut self, seq: Seq, write: Write) {
        self.out.push(Output::Write { seq, write });
    }

    pub(super) fn write_vote(&mut self) {
        let seq = self.disk.vote_written();
        self.write(seq, Write::Vote(self.vote));
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub(super) fn raise_promise(&mut self, term: Term) {
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
            format: self.settings.format,
            message,
        }
    }

    /// A message that binds this node to its promise: leaves once the promise is on disk (P29).
    pub(super) fn send(&mut self, to: NodeId, message: Message) {
        let after = self.disk.vote();
        self.send_after(to, message, after);
    }

    /// An acknowledgement: leaves once the records are on disk too (P29).
    pub(super) fn send_acknowledgement(&mut self, to: NodeId, message: Message) {
        let after = match mutant::is_on(Mutant::AckBeforeSync) {
            true => Seq::default(),
            false => self.disk.vote_and_log(),
        };
        self.send_after(to, message, after);
    }

    pub(super) fn send_after(&mut self, to: NodeId, message: Message, after: Seq) {
        let envelope = self.envelope(to, message);
        self.out.push(Output::Send { envelope, after });
    }

    pub(super) fn broadcast(&mut self, message: &Message, after: Seq) {
        for to in self.settings.others() {
            self.send_after(to, message.clone(), after);
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    pub(super) fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        self.out.push(Output::Verdict { request, verdict });
    }

    pub(super) fn stop(&mut self, fault: Fault) {
        self.stopped = true;
        self.out.push(Output::Stop(fault));
    }

    /// Raises the commit index, applies what it covers, and answers what it decides.
    pub(super) fn commit_to(&mut self, index: Index) {
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
        self.admit_if_committed();
        if !matches!(self.role, Role::Leading(_)) {
            self.decide_waiting(index);
        }
    }

    pub(super) fn fresh(&self) -> Span {
        self.settings.timing.fresh()
    }
}
