//! Carrying out what the core says.

use bytes::Bytes;

use super::api::{Brought, Denied, Written};
use super::engine::Engine;
use super::held::Message as HeldMessage;
use super::pending::{Call, Outcome};
use super::transport::LogParcel;
use super::{End, clock};
use crate::protocol::{
    Checkpoint, Envelope, Input, Message, Records, Refusal, Seq, SnapshotMeta, Term, Verdict, Write,
};
use crate::storage::{Boundary, Job};
use crate::types::{Index, NodeId, Position, Record, RequestId};
use crate::wire::{Parcel, Route, Sender};

impl Engine {
    pub fn write(&mut self, seq: Seq, write: Write) {
        let job = match write {
            Write::Vote(vote) => Job::Vote(vote),
            Write::Append(records) => {
                let lines = self.lines.append(&records);
                Job::Append { records, lines }
            }
            Write::Truncate { above } => {
                self.lines.truncate(above);
                Job::Truncate { above }
            }
            Write::Trim { upto } => {
                self.lines.trim(upto);
                Job::Trim { upto }
            }
            Write::Rebase(_) => match self.rebase() {
                Some(job) => job,
                None => {
                    // Where the state is odd, or could not be read, that is what people are told.
                    self.end.get_or_insert(End::Broken("a log to begin anew without a merge"));
                    return;
                }
            },
            Write::Install(_) => match self.install() {
                Some(job) => job,
                // The core installs nothing but what came with the message being handled.
                None => return self.end = Some(End::Broken("a snapshot to install that nobody sent")),
            },
        };
        self.jobs.push((seq, job));
    }

    fn install(&mut self) -> Option<Job> {
        let Some(Brought::Snapshot(snapshot)) = self.brought.take() else {
            return None;
        };
        let (incoming, store) = *snapshot;
        let boundary = incoming.boundary().clone();
        self.lines.reset(&boundary);
        self.taker.forget();
        self.origin = boundary.origin;
        self.snapshot_index = boundary.index();
        self.meta = boundary.meta;
        self.boundary = None;
        self.states.restore(store);
        Some(Job::Install(incoming))
    }

    /// The state came with the snapshot that was installed a moment before.
    pub fn restore(&mut self, meta: SnapshotMeta) {
        tracing::info!(index = meta.index(), "the state is replaced by a snapshot");
        debug_assert_eq!(self.meta, meta);
        self.tell_installed(meta.at);
    }

    pub fn send(&mut self, envelope: Envelope, after: Seq) {
        let message = match &envelope.message {
            Message::Append { term, prev, records, commit } => {
                let Some((chain, lines)) = self.lines_after(*prev, records) else {
                    return self.end = Some(End::Broken("records to send that have no lines"));
                };
                let last = records.last().map_or(*prev, |record| record.position);
                let (count, sender) = (records.len(), Sender::of(&envelope));
                let (term, prev, commit) = (*term, *prev, *commit);
                let parcel = LogParcel { sender, term, prev, chain, count, last, commit, lines };
                HeldMessage::Lines { to: envelope.to, parcel }
            }
            message => {
                let lines = match message {
                    Message::Pulled { prev, records, .. } => self.lines_after(*prev, records),
                    _ => Some((0, Bytes::new())),
                };
                let Some((chain, lines)) = lines else {
                    return self.end = Some(End::Broken("records to send that have no lines"));
                };
                let parcel = Parcel::new(&envelope, lines, chain);
                HeldMessage::Small { parcel, answers: Route::answered_by(message) }
            }
        };
        self.send_when(after, message);
    }

    /// The lines of these records as they stand in the log, and the checksum that they go on from.
    fn lines_after(&self, prev: Position, records: &Records) -> Option<(u32, Bytes)> {
        let chain = self.lines.chain_at(prev.index)?;
        match records.is_empty() {
            true => Some((chain, Bytes::new())),
            false => Some((chain, self.lines.slice(prev.index, records.len())?)),
        }
    }

    pub fn send_snapshot(&mut self, to: NodeId, term: Term, after: Seq) {
        self.send_when(after, HeldMessage::Snapshot { to, term });
    }

    pub fn send_when(&mut self, after: Seq, message: HeldMessage) {
        match after <= self.durable {
            true => self.transmit(message),
            false => self.held.add(after, message),
        }
    }

    pub fn release_held(&mut self) {
        for message in self.held.release(self.durable) {
            self.transmit(message);
        }
    }

    fn transmit(&mut self, message: HeldMessage) {
        match message {
            HeldMessage::Lines { to, parcel } => self.appends.push((to, parcel)),
            HeldMessage::Snapshot { to, term } => self.transmit_snapshot(to, term),
            HeldMessage::Difference(share) => self.transmit_difference(*share),
            HeldMessage::Small { parcel, answers } => {
                let left = match answers {
                    Some(route) => self.answers.give(route, parcel).err(),
                    None => Some(parcel),
                };
                if let Some(parcel) = left {
                    self.network.send(parcel);
                }
            }
        }
    }

    pub fn apply(&mut self, records: &[Record]) {
        for record in records {
            let index = record.index();
            if index <= self.states.committed().applied().index {
                continue;
            }
            match self.states.commit(record) {
                Ok(applied) if applied.restored => {
                    self.tell_record(record, &applied);
                    self.leasing.start_over();
                    tracing::warn!(index, "all data has been replaced by a restore");
                    self.origin = index;
                    self.taker.start_over();
                }
                Ok(applied) => {
                    self.tell_record(record, &applied);
                    self.count_leases(&applied);
                    self.taker.changed(applied.changes);
                }
                Err(error) => return self.end = Some(End::Unreadable { index, error }),
            }
            self.meta.absorb(record);
            let at_boundary = (index - self.origin).is_multiple_of(self.setup.snapshot_every);
            // What is staged for a restore is in no snapshot: none is taken until that is over.
            if at_boundary && !self.states.committed().is_restoring() {
                self.reach_boundary(index);
            }
        }
        self.feed.wake();
    }

    fn reach_boundary(&mut self, index: Index) {
        let store = self.states.committed().clone();
        let digest = store.digest();
        self.inputs.push_back(Input::Digest(Checkpoint { index, digest }));
        let id = (index - self.origin) / self.setup.snapshot_every;
        self.boundary = Some((id, index, store.clone()));
        if let Some(chain) = self.lines.chain_at(index) {
            let (meta, origin) = (self.meta.clone(), self.origin);
            self.taker.due(Boundary { meta, chain, origin }, store);
        }
    }

    pub fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        let Some(call) = self.pending.take(request) else {
            return;
        };
        // A caller that has gone away is not told; its record stands all the same.
        match (call, verdict) {
            (Call::Write { reply, outcome }, Verdict::Written { position, acks }) => {
                let _ = reply.send(written(position, acks, outcome));
            }
            (Call::Judged { reply, answer }, Verdict::Readable { .. }) => drop(reply.send(*answer)),
            (Call::Read(reply), Verdict::Readable { .. }) => drop(reply.send(Ok(self.view()))),
            (Call::Admin(reply), Verdict::Done | Verdict::Written { .. } | Verdict::Readable { .. }) => {
                drop(reply.send(Ok(())));
            }
            (Call::Acquire(acquiring), verdict) => self.acquire_verdict(acquiring, verdict),
            (Call::Renew(renewing), verdict) => self.renew_verdict(renewing, verdict),
            (Call::Leases(record), verdict) => self.leases_verdict(record, &verdict),
            (Call::Farewell, _) => self.end = Some(End::Asked),
            (call, Verdict::Refused(refusal)) => {
                let denied = self.denied(refusal);
                call.deny(denied);
            }
            (call, _) => call.deny(Denied::Unknown),
        }
    }

    pub fn denied(&self, refusal: Refusal) -> Denied {
        match refusal {
            Refusal::NotLeader { .. } => self.not_leading(),
            // Another leader's record stands in its place: it never happens, and that leader may be asked.
            Refusal::Superseded => self.not_leading(),
            Refusal::HandingOver => Denied::HandingOver,
            Refusal::ServiceDown => Denied::ServiceDown { reason: self.reason_for_stop() },
            Refusal::DiskFull => Denied::DiskFull,
            Refusal::TooMany => Denied::TooMany { bound: "writes that are not committed yet" },
            Refusal::FormatNotShared => Denied::FormatNotShared,
            Refusal::NotAnHeir => Denied::NotAnHeir,
        }
    }

    /// Why this node does not answer as the leader.
    pub fn not_leading(&self) -> Denied {
        let now = clock::now().mono;
        match self.core.leader() {
            Some(leader) if leader != self.me() => Denied::NotLeader { leader },
            _ if !self.core.is_admitted() && self.core.vote().formed => Denied::CatchingUp,
            // In available mode nobody needs a majority.
            _ if self.setup.settings.is_available() || self.core.reaches_majority(now) => Denied::NoLeader,
            _ => Denied::NoQuorum,
        }
    }
}

fn written(position: Position, acks: usize, outcome: Option<Outcome>) -> Result<Written, Denied> {
    match outcome {
        Some(Ok(reply)) => Ok(Written { position, acks: Some(acks), reply }),
        Some(Err(rejection)) => Err(Denied::Rejected(rejection)),
        None => Err(Denied::Unknown),
    }
}
