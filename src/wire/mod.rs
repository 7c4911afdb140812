//! Messages of the protocol travel over HTTP: each has a route, headers and a body.
//!
//! The routes and bodies are those of the *seed*, the design that this program began as (`docs/coming-from.md`). Five headers,
//! the *envelope*, carry what safety needs beyond them:
//!
//! ```text
//! Eldest-Cluster: eldest mode=safe settings=53e1c0… ids=8d02… at=10.0.0.1:9000
//! Eldest-From: 1 to=2 boot=9f… incarnation=4c… admitted=yes cluster=e6… format=1
//! Eldest-Message: append term=7.1/5e02 prev=6.2@11 chain=9a3f01bc count=3 commit=10
//! Eldest-Proof: …                                                     (if the cluster has a secret)
//! Eldest-Head-Proof: …                                                (the same, only on calls)
//! ```
//!
//! If the cluster has a secret, a call without a valid proof is answered with 401 and a sixth header, `Eldest-Challenge`, from which the
//! caller makes its next proofs (`proof`).
//!
//! Every message is one-way for the protocol. An HTTP response may carry a message back, in the same headers, if the answer is at hand;
//! otherwise the answer is sent as a separate call.
//!
//! This module only makes and reads values of headers. `driver/transport` sends them, `http/peer` receives them, and says what is
//! refused.
//!
//! Versions understand each other by three rules: a reader ignores fields that it does not know; a missing field has
//! a meaning where older versions leave it out; a value with a new meaning gets a new field, like the digest of another
//! computation (`checked` in `message.rs`).

mod fields;
mod head;
mod message;
mod proof;
mod route;

pub use fields::WireError;
pub use head::{ClusterHead, Sender};
pub use message::{Attached, Attachment, attachment, decode, encode, encode_append, needs_available_mode};
pub use proof::{
    CallProof, Challenge, HeadProof, Hello, Proof, ProofSecret, ProofVerifier, Secrets, Session,
};
pub use route::{Packet, Route};

/// The longest line of a message: a vector of some two thousand epochs, which is as many elections since all nodes were last
/// together. It must fit into the head that a server reads (`http/server/connection.rs`). Nothing checks it before sending: the
/// receiver refuses the head of a longer one, and the sender logs that.
pub const MESSAGE_BYTES_MOST: usize = 48 << 10;

/// The names of the envelope's headers, in the lower case in which they travel.
pub mod header {
    pub const CLUSTER: &str = "eldest-cluster";
    pub const FROM: &str = "eldest-from";
    pub const MESSAGE: &str = "eldest-message";
    pub const PROOF: &str = "eldest-proof";
    /// Proves only the head, and through it `PROOF`.
    pub const HEAD_PROOF: &str = "eldest-head-proof";
    /// With a challenge: the kinds of proof that the server knows.
    pub const CHALLENGE: &str = "eldest-challenge";
}

#[cfg(test)]
mod tests;
