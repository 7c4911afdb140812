//! What the network tells the loop.

use super::super::handle::PeerCall;
use crate::types::NodeId;

#[derive(Debug)]
pub enum Arrived {
    /// A message in a response.
    Call(Box<PeerCall>),
    /// A side's difference is more than that peer takes.
    TooLarge { to: NodeId, bytes: u64 },
    /// Nothing listens where that peer should: its process is dead.
    Refused(NodeId),
}
