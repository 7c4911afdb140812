//! A connection whose answers are read from one buffer, for any protocol.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::http::Failure;

/// The room for one read.
const ROOM_BYTES: usize = 4096;

/// The bound of an answer. No answer that is asked for here comes near it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub struct PeerStream {
    tcp: TcpStream,
    received: Vec<u8>,
    /// The number of bytes of the buffer that were taken.
    taken: usize,
}

impl PeerStream {
    pub async fn connect(address: SocketAddr) -> Result<PeerStream, Failure> {
        let failed = |error: io::Error| Failure::Connect(error.kind());
        let tcp = TcpStream::connect(address).await.map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        Ok(PeerStream { tcp, received: Vec::new(), taken: 0 })
    }

    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.tcp.write_all(bytes).await.map_err(|error| Failure::Lost(error.kind()))
    }

    /// Waits for this number of bytes, and takes them.
    pub async fn take(&mut self, bytes: usize) -> Result<&[u8], Failure> {
        if bytes > ANSWER_BYTES_MAX {
            return Err(Failure::Lost(io::ErrorKind::InvalidData));
        }
        while self.received.len() - self.taken < bytes {
            self.receive().await?;
        }
        let from = self.taken;
        self.taken += bytes;
        Ok(&self.received[from..from + bytes])
    }

    /// Takes the bytes up to the end of a line, which is not returned.
    pub async fn take_line(&mut self) -> Result<&[u8], Failure> {
        let mut searched = 0;
        loop {
            let rest = &self.received[self.taken..];
            if let Some(at) = rest[searched..].windows(2).position(|pair| pair == b"\r\n") {
                let (from, length) = (self.taken, searched + at);
                self.taken += length + 2;
                return Ok(&self.received[from..from + length]);
            }
            searched = rest.len().saturating_sub(1);
            self.receive().await?;
        }
    }

    /// Takes all bytes until the other side ends the stream.
    pub async fn take_all(&mut self) -> Result<&[u8], Failure> {
        loop {
            match self.receive().await {
                Ok(()) => {}
                Err(Failure::Lost(io::ErrorKind::UnexpectedEof)) => return Ok(&self.received[self.taken..]),
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn receive(&mut self) -> Result<(), Failure> {
        self.received.drain(..self.taken);
        self.taken = 0;
        if self.received.len() > ANSWER_BYTES_MAX {
            return Err(Failure::Lost(io::ErrorKind::InvalidData));
        }
        self.received.reserve(ROOM_BYTES);
        match self.tcp.read_buf(&mut self.received).await {
            Ok(0) => Err(Failure::Lost(io::ErrorKind::UnexpectedEof)),
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Lost(error.kind())),
        }
    }
}
