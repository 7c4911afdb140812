//! Decodes a peer's headers and body into a message, and keeps the open peer calls whose responses may carry an answer.

use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

use super::handle::PeerCall;
use crate::storage::{Encoded, decode_all};
use crate::types::NodeId;
use crate::wire::{self, Attached, Attachment, Packet, Route, Sender, WireError};

/// Decodes a message whose body has been read. The body of a state is streamed and received elsewhere. The checksums are checked
/// here, so the loop gets no damaged lines.
pub fn decode(sender: Sender, message: &str, body: Bytes) -> Result<PeerCall, WireError> {
    let (attached, lines) = match wire::attachment(message)? {
        Attachment::Nothing => (Attached::Nothing, Encoded::default()),
        Attachment::Snapshot | Attachment::Difference => {
            return Err(WireError::WrongBody { expected: "a stream" });
        }
        Attachment::Lines { chain, .. } => {
            let expected =
                WireError::WrongBody { expected: "consecutive lines of the log with valid checksums" };
            let batch = decode_all(body, chain).map_err(|_| expected)?;
            (Attached::Lines(batch.records.into()), batch.encoded)
        }
    };
    let message = wire::decode(message, attached)?;
    Ok(PeerCall { envelope: sender.says(message), lines, brought: None })
}

/// Open calls of peers. An answer may travel in the response to such a call instead of being a call itself. There is at most one
/// open call for each peer and route: a newer call means that the peer has given up the older one. The peer's call stays open for
/// one heartbeat (`http/peer`). After that its receiver is gone, and `give` returns the message to be sent as a call.
#[derive(Debug, Default)]
pub struct Answers {
    open: BTreeMap<(NodeId, Route), Open>,
}

#[derive(Debug)]
struct Open {
    /// The call's number, if it has one.
    number: Option<u64>,
    reply: oneshot::Sender<Option<Packet>>,
}

impl Answers {
    pub fn open(
        &mut self,
        peer: NodeId,
        route: Route,
        number: Option<u64>,
        reply: oneshot::Sender<Option<Packet>>,
    ) {
        if let Some(older) = self.open.insert((peer, route), Open { number, reply }) {
            let _ = older.reply.send(None);
        }
    }

    /// Puts the message into the response to the open call of that peer and route, if the call has that number. Returns the
    /// message if no such call is open. The number must match because without a shared secret another caller can open a call in
    /// the peer's name, and would learn the number of the peer's own call (P51).
    pub fn give(&mut self, route: Route, number: Option<u64>, packet: Packet) -> Result<(), Packet> {
        let place = (packet.sender.to, route);
        if self.open.get(&place).is_none_or(|open| open.number != number) {
            return Err(packet);
        }
        match self.open.remove(&place) {
            Some(Open { reply, .. }) => {
                reply.send(Some(packet)).map_err(|given_up| given_up.expect("what was sent comes back"))
            }
            None => Err(packet),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::types::{Boot, ClusterId, Format, Incarnation};
    use crate::wire::Sender;

    fn packet(to: NodeId) -> Packet {
        let (from, boot, incarnation) = (NodeId(2), Boot(1), Incarnation(1));
        let (admitted, cluster, format) = (true, ClusterId::NONE, Format(1));
        let sender = Sender { from, to, boot, incarnation, admitted, cluster, format };
        Packet { route: Route::Heartbeat, sender, message: "heard".into(), body: Bytes::new() }
    }

    /// A second caller that uses the leader's name gets no answer with the number of the leader's beat.
    #[test]
    fn an_answer_goes_to_the_call_of_its_number() {
        let (leader, mut answers) = (NodeId(1), Answers::default());
        let (reply, mut theirs) = oneshot::channel();
        answers.open(leader, Route::Heartbeat, Some(77), reply);
        let (reply, mut another) = oneshot::channel();
        answers.open(leader, Route::Heartbeat, Some(5), reply);
        assert!(theirs.try_recv().is_ok_and(|answer| answer.is_none()), "the older one is given up");
        assert!(answers.give(Route::Heartbeat, Some(77), packet(leader)).is_err());
        assert!(another.try_recv().is_err(), "somebody else learns the number");
        assert!(answers.give(Route::Heartbeat, Some(5), packet(leader)).is_ok());
        assert!(another.try_recv().is_ok_and(|answer| answer.is_some()));
    }
}
