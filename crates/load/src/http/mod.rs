//! HTTP/1.1 as far as a load generator needs it: one request at a time on one kept-alive connection.
//!
//! The generator shares two cores with the servers that it measures, so each cycle that it uses is taken from them. A
//! request consists of bytes that were prepared beforehand, and an answer is parsed in the buffer that received it.
//! Once the buffers have grown to their size, an exchange allocates nothing.
//!
//! The server's answers are not trusted: every length is bounded, and everything that is not plain HTTP/1.1 is an
//! error.

mod chunked;
mod connection;
mod failure;
mod head;
mod request;
mod response;
mod stream;

pub use chunked::Chunks;
pub use connection::Connection;
pub use failure::Failure;
pub use head::{find_end, parse};
pub use request::Request;
pub use response::Answer;
pub use stream::Stream;
