//! Peers' calls that are open: an answer may ride in the response instead of being a call of its own.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use crate::types::NodeId;
use crate::wire::{Packet, Route};

/// At most one open call for each peer and route: a newer one means that the older one is given up.
#[derive(Debug, Default)]
pub struct Answers {
    open: BTreeMap<(NodeId, Route), oneshot::Sender<Option<Packet>>>,
}

impl Answers {
    pub fn open(&mut self, peer: NodeId, route: Route, reply: oneshot::Sender<Option<Packet>>) {
        if let Some(older) = self.open.insert((peer, route), reply) {
            let _ = older.send(None);
        }
    }

    /// Puts a message into the response that waits for one of its kind. Gives it back if none does.
    pub fn give(&mut self, route: Route, packet: Packet) -> Result<(), Packet> {
        match self.open.remove(&(packet.sender.to, route)) {
            Some(reply) => {
                reply.send(Some(packet)).map_err(|given_up| given_up.expect("what was sent comes back"))
            }
            None => Err(packet),
        }
    }
}
