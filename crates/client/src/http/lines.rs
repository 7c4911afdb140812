//! An answer without an end, line by line.

use std::io;
use std::time::Duration;

use crate::call_error::CallError;
use crate::http::exchange::{Broken, root_of};
use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use reqwest::{Body, Response};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The largest message of a channel is a quarter of this.
const LINE_BYTES_MAX: usize = 4 << 20;

/// A node breaks every silence of 5 s.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Why there is no further line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Ended,
    BrokenOff {
        why: String,
    },
    /// What sends this is no node.
    TooLong {
        why: String,
    },
}

#[derive(Debug)]
pub struct Lines {
    url: String,
    response: Response,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    searched: usize,
}

impl Lines {
    pub(super) fn new(url: String, response: Response) -> Lines {
        Lines { url, response, buffer: BytesMut::new(), searched: 0 }
    }

    /// The node that sends them.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next line that says something, without its end. Dropping this future loses nothing.
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
                Err(_) => return Err(End::BrokenOff { why: "no sign of life".to_string() }),
            }
        }
    }

    /// The next whole line of what has come, without its end.
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

// What is too large to be held: an answer that is taken piece by piece, and a body that is sent so.

/// A node that is alive sends more, or takes more, within this.
const PIECE_SILENCE_MAX: Duration = Duration::from_secs(60);

/// Whose pieces come one by one.
#[derive(Debug)]
pub struct LongAnswer {
    url: String,
    response: Response,
}

impl LongAnswer {
    pub(super) fn new(url: String, response: Response) -> LongAnswer {
        LongAnswer { url, response }
    }

    /// The node that sends them.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// None at the end. An answer that breaks off is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let broken = |why: String| Broken::NoAnswer { why }.at(&self.url);
        match timeout(PIECE_SILENCE_MAX, self.response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(broken(root_of(&error))),
            Err(_) => Err(broken("no sign of life".to_string())),
        }
    }
}

/// Pieces of a body, and what went wrong with the next one.
pub type BodyPieces = mpsc::Receiver<io::Result<Bytes>>;

pub fn body_of(pieces: BodyPieces) -> Body {
    Body::wrap_stream(unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) }))
}
