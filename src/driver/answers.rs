//! From headers and body to a message, and answers that ride in responses.

use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

use super::handle::PeerCall;
use crate::storage::{Encoded, decode_all};
use crate::types::NodeId;
use crate::wire::{self, Attached, Attachment, Packet, Route, Sender, WireError};

/// Decodes a message whose body has been read. A state's body is received on its own way.
pub fn decode(sender: Sender, message: &str, body: Bytes) -> Result<PeerCall, WireError> {
    let (attached, lines) = match wire::attachment(message)? {
        Attachment::Nothing => (Attached::Nothing, Encoded::default()),
        Attachment::Snapshot | Attachment::Difference => {
            return Err(WireError::WrongBody { expected: "a stream" });
        }
        Attachment::Lines { chain, .. } => {
            let expected = WireError::WrongBody { expected: "lines of the log whose checksums follow on" };
            let batch = decode_all(body, chain).map_err(|_| expected)?;
            (Attached::Lines(batch.records.into()), batch.encoded)
        }
    };
    let message = wire::decode(message, attached)?;
    Ok(PeerCall { envelope: sender.says(message), lines, brought: None })
}

/// Peers' calls that are open: an answer may ride in the response instead of being a call of its own.
/// At most one open call for each peer and route: a newer one means that the older one is given up.
#[derive(Debug, Default)]
pub struct Answers {
    open: BTreeMap<(NodeId, Route), Open>,
}

#[derive(Debug)]
struct Open {
    /// The call's number, where it has one.
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

    /// Puts a message into the response that waits for one of its kind, and of that number: where nobody proves who speaks another
    /// caller in that peer's name would learn it (P51). Gives it back if none does.
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

    /// A second caller in the leader's name gets no answer that names the number of the leader's beat.
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
