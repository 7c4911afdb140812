//! An answer without an end, line by line.

use std::time::Duration;

use bytes::BytesMut;
use reqwest::Response;
use tokio::time::timeout;

use super::exchange::root_of;

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
