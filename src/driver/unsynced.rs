//! Messages that wait for the writes they rely on (P29, I9).

use std::collections::VecDeque;

use super::transfer::TransferSource;
use super::transport::LogPacket;
use crate::protocol::{After, Seq, Term};
use crate::types::NodeId;
use crate::wire::{Packet, Route};

/// A message in its final form.
#[derive(Debug)]
pub enum Message {
    /// May ride in the response to an open call of that route.
    Small {
        packet: Packet,
        /// With the number of the call that it answers.
        answers: Option<(Route, Option<u64>)>,
    },
    Lines {
        to: NodeId,
        packet: LogPacket,
    },
    Snapshot {
        to: NodeId,
        term: Term,
    },
    Difference(Box<TransferSource>),
}

/// Bounded by what the core sends between two syncs.
#[derive(Debug, Default)]
pub struct Unsynced {
    waiting: VecDeque<(After, Message)>,
}

impl Unsynced {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn add(&mut self, after: After, message: Message) {
        self.waiting.push_back((after, message));
    }

    /// What may leave now, in the order in which it was said.
    pub fn release(&mut self, durable: Seq, promised: Seq) -> Vec<Message> {
        let (free, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(after, _)| after.is_met(durable, promised));
        self.waiting = waiting;
        let free: VecDeque<(After, Message)> = free;
        free.into_iter().map(|(_, message)| message).collect()
    }
}
