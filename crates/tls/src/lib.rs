//! Certificates of nodes and clients: they are read from files, checked, and made into the configurations of TLS
//! connections.
//!
//! ```text
//!   node      a node's files, read again and again ─► its server, its connections to others, the names of callers
//!   client    a client's files ─► its connections
//!   callers, dialled    the check of certificates: of callers, and of the nodes that are called
//!   files     PEM files, with their bounds and errors
//!   facts     the contents of a certificate, for people and for its expiry; the name of a node in it
//!   explain   explanations of failed handshakes, in words to act on
//! ```
//!
//! There is one provider of cryptography, and each configuration names it. Nothing is installed for the process, so
//! that a program that uses the client library keeps its own provider. Nothing here opens a socket.

mod callers;
mod client;
mod dialled;
mod explain;
mod facts;
mod files;
mod node;
#[cfg(test)]
mod tests;

pub use client::{ClientFiles, trusting_no_certificate};
pub use explain::explain;
pub use facts::{Facts, NodeName};
pub use files::{Kind, TlsError, certificates};
pub use node::{Caller, NodeFiles, NodeTls, Rules};
/// The library whose configurations this crate builds.
pub use rustls;
