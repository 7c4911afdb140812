//! Appends to one peer: in order, one call at a time. Appends that gather while a call is open are sent together in the next call.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::protocol::Term;
use crate::types::{Index, Position};
use crate::wire::{Packet, Route, Sender};

/// The maximum number of appends that wait for one peer: more than the protocol sends without an answer (`limits.inflight`). Beyond it the
/// oldest are dropped; the peer then answers with the end of its log.
const WAITING_MOST: usize = 256;

/// An append with its lines already encoded.
#[derive(Clone, Debug)]
pub struct LogPacket {
    pub sender: Sender,
    pub term: Term,
    pub prev: Position,
    /// The checksum of the line at `prev`.
    pub chain: u32,
    pub count: usize,
    /// The position of the last line.
    pub last: Position,
    pub commit: Index,
    pub lines: Bytes,
}

#[derive(Debug)]
pub struct LogBox {
    queue: Mutex<VecDeque<LogPacket>>,
    more: Notify,
    /// The maximum number of bytes in one call.
    most: usize,
}

impl LogBox {
    pub fn new(most: usize) -> LogBox {
        LogBox { queue: Mutex::default(), more: Notify::new(), most }
    }

    pub fn push(&self, packet: LogPacket) {
        let mut queue = self.queue();
        if queue.len() >= WAITING_MOST {
            queue.pop_front();
        }
        queue.push_back(packet);
        drop(queue);
        self.more.notify_one();
    }

    /// Returns the next append, joined with the appends that directly follow it. The first append goes alone if it is larger than
    /// a call may be: otherwise it would never leave.
    pub async fn take(&self) -> LogPacket {
        loop {
            if let Some(packet) = self.take_joined() {
                return packet;
            }
            self.more.notified().await;
        }
    }

    fn take_joined(&self) -> Option<LogPacket> {
        let mut queue = self.queue();
        let mut joined = queue.pop_front()?;
        let mut size = joined.lines.len();
        let mut followers = Vec::new();
        while let Some(next) = queue.pop_front() {
            size += next.lines.len();
            let last = followers.last().map_or(joined.last, |packet: &LogPacket| packet.last);
            // A call names one term, and lines behind a gap would not be taken (P5).
            if next.term != joined.term || next.prev != last || size > self.most {
                queue.push_front(next);
                break;
            }
            followers.push(next);
        }
        if !queue.is_empty() {
            self.more.notify_one();
        }
        drop(queue);
        if followers.is_empty() {
            return Some(joined);
        }
        let mut lines = BytesMut::with_capacity(size);
        lines.extend_from_slice(&joined.lines);
        for next in followers {
            lines.extend_from_slice(&next.lines);
            joined.count += next.count;
            joined.commit = joined.commit.max(next.commit);
            (joined.last, joined.sender) = (next.last, next.sender);
        }
        joined.lines = lines.freeze();
        Some(joined)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<LogPacket>> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl LogPacket {
    pub fn into_packet(self) -> Packet {
        let message = crate::wire::encode_append(self.term, self.prev, self.chain, self.count, self.commit);
        Packet { route: Route::WriteSync, sender: self.sender, message, body: self.lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Boot, ClaimId, ClusterId, Epoch, Format, Incarnation, NodeId};

    /// An append of one line in that epoch, after the line at `prev`.
    fn packet(counter: u64, prev: Index) -> LogPacket {
        let epoch = Epoch::new(counter, NodeId(1));
        let sender = Sender {
            from: NodeId(1),
            to: NodeId(2),
            boot: Boot(1),
            incarnation: Incarnation(1),
            admitted: true,
            cluster: ClusterId::NONE,
            format: Format(1),
        };
        LogPacket {
            sender,
            term: Term { epoch, claim: ClaimId(1) },
            prev: Position::new(epoch, prev),
            chain: 0,
            count: 1,
            last: Position::new(epoch, prev + 1),
            commit: prev,
            lines: Bytes::from_static(b"line\n"),
        }
    }

    /// Returns how many lines each call carries.
    fn calls(packets: Vec<LogPacket>, most: usize) -> Vec<usize> {
        let log = LogBox::new(most);
        packets.into_iter().for_each(|packet| log.push(packet));
        std::iter::from_fn(|| log.take_joined()).map(|packet| packet.count).collect()
    }

    #[test]
    fn what_follows_on_travels_together_and_nothing_else_does() {
        assert_eq!(calls(vec![packet(7, 4), packet(7, 5), packet(7, 6)], 100), [3]);
        assert_eq!(
            calls(vec![packet(7, 4), packet(7, 5), packet(7, 6)], 10),
            [2, 1],
            "no more bytes than a call may have"
        );
        assert_eq!(calls(vec![packet(7, 4), packet(7, 6)], 100), [1, 1], "a gap");
        let same_place = LogPacket { prev: Position::new(Epoch::new(7, NodeId(1)), 5), ..packet(8, 5) };
        assert_eq!(calls(vec![packet(7, 4), same_place], 100), [1, 1], "another term");
    }
}
