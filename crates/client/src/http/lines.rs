//! Streamed answers: an endless answer that is read line by line, and bodies that are too large for memory.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use reqwest::{Body, Method, Response};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::call_error::CallError;
use crate::http::exchange::{Broken, root_of};

/// The bound on the length of a line: four times the largest message of a channel.
const LINE_BYTES_MAX: usize = 4 << 20;

/// A stream that is silent for this long counts as broken. A node sends something at least every 5 s.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Why there is no further line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Ended,
    BrokenOff {
        why: String,
    },
    /// The line is longer than any that a node sends.
    TooLong {
        why: String,
    },
}

/// An endless answer that is read line by line.
#[derive(Debug)]
pub struct Lines {
    url: String,
    response: Response,
    buffer: BytesMut,
    /// The buffer contains no line break before this offset.
    searched: usize,
}

impl Lines {
    pub(super) fn new(url: String, response: Response) -> Lines {
        Lines { url, response, buffer: BytesMut::new(), searched: 0 }
    }

    /// The URL of the node that sends the lines.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next line that is not empty, without its line break. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Result<String, End> {
        loop {
            if let Some(line) = self.line() {
                if !line.is_empty() {
                    return Ok(line);
                }
                continue;
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                let why = format!("a line of more than {LINE_BYTES_MAX} bytes");
                return Err(End::TooLong { why });
            }
            match timeout(SILENCE_MAX, self.response.chunk()).await {
                Ok(Ok(Some(more))) => self.buffer.extend_from_slice(&more),
                Ok(Ok(None)) => return Err(End::Ended),
                Ok(Err(error)) => return Err(End::BrokenOff { why: root_of(&error) }),
                Err(_) => return Err(End::BrokenOff { why: "no data in time".to_string() }),
            }
        }
    }

    /// The next whole line in the buffer, without its line break.
    fn line(&mut self) -> Option<String> {
        match self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                Some(String::from_utf8_lossy(&line[..line.len() - 1]).trim_end().to_string())
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }
}

// Bodies that are too large for memory: an answer that is read piece by piece, and a request body that is sent piece
// by piece.

/// A live node sends the next piece within this time.
const PIECE_SILENCE_MAX: Duration = Duration::from_secs(60);

/// An answer whose pieces are read one by one.
#[derive(Debug)]
pub struct LongAnswer {
    url: String,
    response: Response,
}

impl LongAnswer {
    pub(super) fn new(url: String, response: Response) -> LongAnswer {
        LongAnswer { url, response }
    }

    /// The URL of the node that sends the answer.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next piece. Returns `None` at the end, and an error if the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let broken = |why: String| Broken::NoAnswer { why }.at(&self.url, &Method::GET);
        match timeout(PIECE_SILENCE_MAX, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(broken(root_of(&error))),
            Err(_) => Err(broken("no data in time".to_string())),
        }
    }
}

/// The pieces of a request body. An error in place of a piece ends the body.
pub type BodyPieces = mpsc::Receiver<io::Result<Bytes>>;

/// A request body that is sent piece by piece. It ends when the sender is dropped.
pub fn body_of(pieces: BodyPieces) -> Body {
    Body::wrap_stream(unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) }))
}
