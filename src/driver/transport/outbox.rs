//! The queue of small messages to one peer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::wire::Packet;

/// The maximum number of messages that wait for one peer. Beyond it the oldest is dropped: the protocol repeats every message, and the
/// oldest message is worth least.
const WAITING_MOST: usize = 128;

#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<VecDeque<Packet>>,
    more: Notify,
}

impl Outbox {
    pub fn push(&self, packet: Packet) {
        let mut queue = self.queue();
        // If a newer message of the same kind makes older ones obsolete, only the newest is sent: heartbeats, acknowledgements,
        // the question whether the peer would approve this node, and what leaders of sides tell each other. For a peer that is far
        // away more of them are produced than calls can carry, and a question that waits behind older ones is answered too late to
        // count. All others stay, such as claims and approvals: each has its own meaning.
        if let Some(kind) = superseded_kind(&packet.message) {
            queue.retain(|waiting| superseded_kind(&waiting.message) != Some(kind));
        }
        if queue.len() >= WAITING_MOST {
            queue.pop_front();
        }
        queue.push_back(packet);
        drop(queue);
        self.more.notify_one();
    }

    pub async fn take(&self) -> Packet {
        loop {
            let taken = {
                let mut queue = self.queue();
                let taken = queue.pop_front();
                // Two tasks take from this queue, and many calls of `notify_one` may have left a single permit. The task that
                // takes a message wakes the other one for the rest.
                if !queue.is_empty() {
                    self.more.notify_one();
                }
                taken
            };
            match taken {
                Some(packet) => return packet,
                None => self.more.notified().await,
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Packet>> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn superseded_kind(message: &str) -> Option<&str> {
    let name = message.split(' ').next()?;
    matches!(name, "heartbeat" | "appended" | "poll" | "side" | "meet" | "willing").then_some(name)
}
