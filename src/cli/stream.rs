//! Reading an answer without an end, line by line.

use bytes::BytesMut;
use reqwest::Response;

use super::client::Caller;
use super::exit::{Failure, root_of};

/// The largest message of a channel is a quarter of this.
const LINE_BYTES_MOST: usize = 4 << 20;

#[derive(Debug)]
pub struct Lines {
    url: String,
    response: Response,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    searched: usize,
}

impl Lines {
    /// From the first of these nodes that can be connected to.
    pub async fn open(caller: &Caller, urls: &[String], path: &str) -> Result<Lines, Failure> {
        let mut unreached = Vec::new();
        for url in urls {
            match caller.open(url, path).await {
                Ok(response) => {
                    let (url, buffer) = (url.clone(), BytesMut::new());
                    return Ok(Lines { url, response, buffer, searched: 0 });
                }
                Err(Failure::NotReachable(mut tried)) => unreached.append(&mut tried),
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::NotReachable(unreached))
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next line that says something, without its end; none when the answer has ended, or has broken off.
    pub async fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            while let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                if line.len() > 1 {
                    let text = String::from_utf8_lossy(&line[..line.len() - 1]);
                    return Ok(Some(text.into_owned()));
                }
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_BYTES_MOST {
                let why = format!("a line of more than {LINE_BYTES_MOST} bytes");
                return Err(Failure::Strange { url: self.url.clone(), why });
            }
            match self.response.chunk().await {
                Ok(Some(more)) => self.buffer.extend_from_slice(&more),
                Ok(None) => return Ok(None),
                Err(error) => {
                    super::out::note(&format!("{}: {}", self.url, root_of(&error)));
                    return Ok(None);
                }
            }
        }
    }
}
