//! Unary gRPC calls, one at a time on a connection.

use std::net::SocketAddr;

use super::super::super::http::Failure;
use super::super::super::session::{Fate, Trouble};
use super::super::stream::PeerStream;
use super::frames::{self, FrameHead};

/// The prefix of a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// The number of bytes of messages that are read before the server receives a new window.
const WINDOW_BYTES: u32 = 1 << 24;

/// Streams have odd numbers of up to 31 bits.
const STREAM_MAX: u32 = i32::MAX as u32 - 2;

#[derive(Debug)]
struct Connection {
    stream: PeerStream,
    /// The number of the last call.
    number: u32,
    taken: u32,
}

#[derive(Debug, Default)]
pub struct Grpc {
    connection: Option<Connection>,
    out: Vec<u8>,
    answer: Vec<u8>,
}

impl Grpc {
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Makes a call, and returns the message of the answer.
    pub async fn call(
        &mut self,
        address: SocketAddr,
        headers: &[u8],
        message: &[u8],
    ) -> Result<&[u8], Trouble> {
        self.out.clear();
        let connection = match self.connection.as_mut().filter(|one| one.number < STREAM_MAX) {
            Some(connection) => {
                connection.number += 2;
                connection
            }
            None => {
                let stream = PeerStream::connect(address).await.map_err(Trouble::of_failure)?;
                frames::preface(&mut self.out);
                self.connection.insert(Connection { stream, number: 1, taken: 0 })
            }
        };
        frames::call(&mut self.out, connection.number, headers, message);
        connection.stream.send(&self.out).await.map_err(Trouble::of_failure)?;
        self.answer.clear();
        connection.receive(&mut self.answer).await.map_err(Trouble::of_failure)?;
        self.answer.get(PREFIX_BYTES..).ok_or_else(refused)
    }
}

/// The trouble of a call that failed and therefore has no message.
fn refused() -> Trouble {
    Trouble { fate: Fate::Unknown, code: "grpc_error".into(), status: None }
}

impl Connection {
    /// Reads until the call's stream has ended.
    async fn receive(&mut self, answer: &mut Vec<u8>) -> Result<(), Failure> {
        loop {
            let mut head = [0; frames::HEAD_BYTES];
            head.copy_from_slice(self.stream.take(frames::HEAD_BYTES).await?);
            let head = FrameHead::parse(head);
            let payload = self.stream.take(head.length).await?;
            let own = head.stream == self.number;
            let mut reply = Vec::new();
            match head.kind {
                frames::DATA => {
                    self.taken += head.length as u32;
                    if own {
                        answer.extend_from_slice(payload);
                    }
                }
                frames::SETTINGS if !head.is(frames::ACK) => {
                    frames::frame(&mut reply, frames::SETTINGS, frames::ACK, 0, &[]);
                }
                frames::PING if !head.is(frames::ACK) => {
                    frames::frame(&mut reply, frames::PING, frames::ACK, 0, payload);
                }
                frames::RST_STREAM if own => return Err(lost()),
                frames::GOAWAY => return Err(lost()),
                _ => {}
            }
            if self.taken > WINDOW_BYTES {
                frames::window_update(&mut reply, self.taken);
                self.taken = 0;
            }
            if !reply.is_empty() {
                self.stream.send(&reply).await?;
            }
            let ends = matches!(head.kind, frames::DATA | frames::HEADERS) && head.is(frames::END_STREAM);
            if own && ends {
                return Ok(());
            }
        }
    }
}

fn lost() -> Failure {
    Failure::Lost(std::io::ErrorKind::ConnectionAborted)
}
