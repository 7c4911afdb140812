//! Carrying out what concerns the disk and small messages.

use bytes::Bytes;

use super::clock;
use super::end::End;
use super::engine::Engine;
use super::transport::LogPacket;
use super::unsynced::Message as Waiting;
use crate::protocol::{After, Envelope, Message, Seq};
use crate::replica::{DiskWrite, In, SnapshotOrder};
use crate::storage::Job;
use crate::types::NodeId;
use crate::wire::{Packet, Route, Sender};

impl Engine {
    pub fn write(&mut self, seq: Seq, write: DiskWrite) {
        let Some(job) = self.disk.encoder.job(write) else {
            return self.end = Some(End::Broken("a snapshot to install that nobody sent"));
        };
        if let Job::Install(incoming) = &job {
            tracing::info!(index = incoming.boundary().index(), "the state is replaced by a snapshot");
        }
        self.disk.jobs.push((seq, job));
    }

    pub fn take_snapshot(&mut self, order: SnapshotOrder) {
        match self.disk.encoder.boundary(&order.meta, order.origin) {
            Some(boundary) => {
                self.counting.snapshot_begins(clock::now().mono);
                self.snapshot_writer.write(boundary, order);
            }
            // Its changes are due again with the next one.
            None => self.inputs.push_back(In::SnapshotEnded(None)),
        }
    }

    pub fn send(&mut self, envelope: &Envelope, after: After) {
        let message = match &envelope.message {
            Message::Append { term, prev, records, commit } => {
                let Some((chain, lines)) = self.disk.encoder.lines_after(*prev, records) else {
                    return self.end = Some(End::Broken("records to send that have no lines"));
                };
                let last = records.last().map_or(*prev, |record| record.position);
                let (count, sender) = (records.len(), Sender::of(envelope));
                let (term, prev, commit) = (*term, *prev, *commit);
                let packet = LogPacket { sender, term, prev, chain, count, last, commit, lines };
                Waiting::Lines { to: envelope.to, packet }
            }
            message => {
                let lines = match message {
                    Message::Pulled { prev, records, .. } => self.disk.encoder.lines_after(*prev, records),
                    _ => Some((0, Bytes::new())),
                };
                let Some((chain, lines)) = lines else {
                    return self.end = Some(End::Broken("records to send that have no lines"));
                };
                let packet = Packet::new(envelope, lines, chain);
                let number = Route::number(message);
                Waiting::Small { packet, answers: Route::answered_by(message).map(|route| (route, number)) }
            }
        };
        self.send_when(after, message);
    }

    pub fn send_when(&mut self, after: After, message: Waiting) {
        if after.is_met(self.disk.durable, self.disk.promised) {
            self.transmit(message);
        } else {
            self.disk.unsynced.add(after, message);
        }
    }

    pub fn release_unsynced(&mut self) {
        for message in self.disk.unsynced.release(self.disk.durable, self.disk.promised) {
            self.transmit(message);
        }
    }

    fn transmit(&mut self, message: Waiting) {
        match message {
            Waiting::Lines { to, packet } => self.disk.appends.push((to, packet)),
            Waiting::Snapshot { to, term } => self.transmit_snapshot(to, term),
            Waiting::Difference(source) => self.transmit_difference(*source),
            Waiting::Small { packet, answers } => {
                let left = match answers {
                    Some((route, number)) => self.answers.give(route, number, packet).err(),
                    None => Some(packet),
                };
                if let Some(packet) = left {
                    self.network.look_elsewhere(&self.setup, packet.sender.to);
                    self.network.send(packet);
                }
            }
        }
    }

    pub fn send_snapshot(&mut self, to: NodeId, term: crate::protocol::Term, after: After) {
        self.send_when(after, Waiting::Snapshot { to, term });
    }
}
