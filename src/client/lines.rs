//! An answer without an end, line by line.

use std::time::Duration;

use bytes::BytesMut;
use reqwest::Response;
use tokio::time::timeout;

use super::attempt::root_of;

/// The largest message of a channel is a quarter of this.
const LINE_BYTES_MAX: usize = 4 << 20;

/// A node breaks every silence of 5 s.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct Lines {
    response: Response,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    searched: usize,
}

impl Lines {
    pub fn new(response: Response) -> Lines {
        Lines { response, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line that says something; why there is none, when the answer has ended in whatever way. Dropping this
    /// future loses nothing.
    pub async fn next(&mut self) -> Result<String, String> {
        loop {
            if let Some(line) = self.line() {
                if !line.is_empty() {
                    return Ok(line);
                }
                continue;
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
            }
            match timeout(SILENCE_MAX, self.response.chunk()).await {
                Ok(Ok(Some(more))) => self.buffer.extend_from_slice(&more),
                Ok(Ok(None)) => return Err("the answer has ended".to_string()),
                Ok(Err(error)) => return Err(root_of(&error)),
                Err(_) => return Err("no sign of life".to_string()),
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
