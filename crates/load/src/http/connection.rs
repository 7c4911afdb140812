//! One kept-alive connection, which is opened when it is needed.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::super::target::Target;
use super::failure::Failure;
use super::request::Request;
use super::response::{Answer, Reader};
use super::stream::Stream;

#[derive(Debug)]
pub struct Connection {
    stream: Option<Stream>,
    reader: Reader,
    out: Vec<u8>,
    /// The time limit for connecting, and again for the exchange.
    patience: Duration,
}

impl Connection {
    pub fn new(patience: Duration) -> Connection {
        Connection { stream: None, reader: Reader::default(), out: Vec::new(), patience }
    }

    /// Sends the request and waits for the whole answer. Returns the status; the rest is in `answer`. After a failure
    /// the next exchange opens a new connection.
    pub async fn exchange(&mut self, target: &Target, request: &Request) -> Result<u16, Failure> {
        request.write_to(&mut self.out, &target.host);
        self.reader.reset();
        let mut stream = match self.stream.take().filter(Stream::is_fresh) {
            Some(stream) => stream,
            None => Stream::connect(target, self.patience).await?,
        };
        let conversation = converse(&mut stream, &self.out, &mut self.reader);
        let intact = timeout(self.patience, conversation).await.map_err(|_| Failure::Timeout)??;
        if intact && !self.reader.closes() {
            self.stream = Some(stream);
        }
        Ok(self.reader.answer().status)
    }

    /// The answer of the last exchange.
    pub fn answer(&self) -> Answer<'_> {
        self.reader.answer()
    }
}

/// Returns `false` if the answer arrived although the request could not be sent as a whole: a server may refuse a
/// long body early.
async fn converse(stream: &mut Stream, out: &[u8], reader: &mut Reader) -> Result<bool, Failure> {
    let sent = async {
        stream.write_all(out).await?;
        stream.flush().await
    }
    .await;
    let received = receive(stream, reader).await;
    match (sent, received) {
        (sent, Ok(())) => Ok(sent.is_ok()),
        (Err(error), Err(_)) => Err(Failure::Lost(error.kind())),
        (Ok(()), Err(failure)) => Err(failure),
    }
}

async fn receive(stream: &mut Stream, reader: &mut Reader) -> Result<(), Failure> {
    let mut arrived = false;
    loop {
        let bytes = stream.read_buf(reader.room()).await.map_err(|error| Failure::Lost(error.kind()))?;
        let done = match bytes {
            0 if !arrived => return Err(Failure::Lost(io::ErrorKind::UnexpectedEof)),
            0 => reader.end()?,
            _ => reader.advance()?,
        };
        if done {
            return Ok(());
        }
        arrived = true;
    }
}
