//! P15: under `ack = all` a write is acknowledged only when it is on the leader's disk and on the disk of
//! every follower that the leader has heard from within `dead_after`.

use std::collections::BTreeMap;

use eldest::protocol::{Ack, Beat, BeatReply, Envelope, Message};
use eldest::types::{Epoch, Incarnation, Index, NodeId, Span, Time};

use super::{Check, ensure};
use crate::host::Host;

/// For each leader, in its present epoch: the nodes that answered its beats, the time by the leader's own
/// clock, and the disk that answered.
#[derive(Debug, Default)]
pub struct Answered {
    answers: BTreeMap<(NodeId, Epoch), BTreeMap<NodeId, (Time, Incarnation)>>,
    /// The time at which each beat left, by its leader's clock.
    beats: BTreeMap<(Epoch, u64), Time>,
    /// The time at which each port last refused each leader, by the same clock.
    refusals: BTreeMap<(NodeId, NodeId), Time>,
}

impl Answered {
    pub fn asks(&mut self, envelope: &Envelope, now: Time) {
        if let Message::Heartbeat(Beat { term, round, .. }) = &envelope.message {
            self.beats.entry((term.epoch, *round)).or_insert(now);
        }
    }

    /// An answer is late if its beat left more than `patience` ago, or before the port refused. A late answer
    /// does not show that the node lives.
    pub fn heard(&mut self, envelope: &Envelope, now: Time, patience: Span) {
        let Message::HeartbeatReply(BeatReply { epoch, round, .. }) = &envelope.message else {
            return;
        };
        let refused = self.refusals.get(&(envelope.to, envelope.from));
        let counts = |left: &Time| *left + patience > now && refused.is_none_or(|at| left > at);
        if self.beats.get(&(*epoch, *round)).is_some_and(counts) {
            let answers = self.answers.entry((envelope.to, *epoch)).or_default();
            answers.insert(envelope.from, (now, envelope.incarnation));
        }
    }

    /// The peer's port refuses, so the peer need not have anything.
    pub fn refused(&mut self, node: NodeId, peer: NodeId, now: Time) {
        self.refusals.insert((node, peer), now);
        for (_, answers) in self.answers.iter_mut().filter(|((at, _), _)| *at == node) {
            answers.remove(&peer);
        }
    }

    /// A leader acknowledges this record, which is of the epoch that it leads.
    pub fn acknowledges(&self, leader: &Host, epoch: Epoch, index: Index, now: Time, all: &[Host]) -> Check {
        if leader.settings.ack != Ack::All {
            return Ok(());
        }
        let patience = leader.settings.timing.dead_after;
        let lacks = |host: &&Host| {
            let answers = self.answers.get(&(leader.id, epoch)).and_then(|answers| answers.get(&host.id));
            // If the disk has been lost since, it did hold the record.
            let counts = answers
                .is_some_and(|(at, disk)| *at + patience > now && *disk == host.disk.durable.incarnation);
            (counts || std::ptr::eq(*host, leader)) && host.disk.durable.last() < index
        };
        // A node that was only a learner when the leader was given its last input was not a follower yet
        // (P43).
        let voted = |node: NodeId| {
            let before = leader.members_before.as_deref().unwrap_or_default();
            before.iter().any(|member| member.id == node && member.votes)
        };
        let votes = |host: &&Host| voted(host.id) && leader.core().is_some_and(|core| core.is_voter(host.id));
        let lacking = all.iter().filter(votes).find(lacks);
        ensure(lacking.is_none(), "P15 all have it", || {
            format!("{} acknowledges {index}, {:?} has it not", leader.id, lacking.map(|host| host.id))
        })
    }
}
