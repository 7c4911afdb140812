//! From headers and body to a message for the core: the same for calls and for what responses bring.

use bytes::Bytes;

use super::api::PeerCall;
use crate::storage::{Encoded, decode_all};
use crate::wire::{self, Attached, Attachment, Sender, WireError};

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
