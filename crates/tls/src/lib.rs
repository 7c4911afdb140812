//! Certificates of nodes and clients: read from files, checked, and made into what TLS connections are set up with.
//!
//! ```text
//!   node      a node's files, looked at again and again ─► how it answers, how it dials, who a caller is
//!   client    a client's files ─► how it dials
//!   callers, dialled    whose certificate counts: of those who call, of those who are called
//!   files     PEM files, with their bounds, and what is wrong with them
//!   names     what a node's certificate calls it
//!   facts     what a certificate says, for people and for its end
//!   explain   what a failed handshake means, in words to act on
//! ```
//!
//! There is one provider of cryptography, and each configuration names it: nothing is installed for the process, so that a
//! program which uses the client library keeps its own. Nothing here opens a socket.

mod callers;
mod client;
mod dialled;
mod explain;
mod facts;
mod files;
mod names;
mod node;
mod provider;
#[cfg(test)]
mod tests;

pub use client::{ClientFiles, trusting_nobody};
pub use explain::explain;
pub use facts::Facts;
pub use files::{Kind, TlsError, certificates};
pub use names::NodeName;
pub use node::{Caller, NodeFiles, NodeTls, Rules};
/// What the configurations are for.
pub use rustls;
