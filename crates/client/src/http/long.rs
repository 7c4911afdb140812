//! What is too large to be held: an answer that is taken piece by piece, and a body that is sent so.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use reqwest::{Body, Response};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::exchange::{Broken, root_of};
use crate::call_error::CallError;

/// A node that is alive sends more, or takes more, within this.
const SILENCE_MAX: Duration = Duration::from_secs(60);

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
        match timeout(SILENCE_MAX, self.response.chunk()).await {
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
