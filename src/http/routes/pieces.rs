//! A response as large as the state: a separate thread writes it, with backpressure from the reader.
//!
//! ```text
//!   a thread: write ─► 64 KiB ─► 4 pieces at most ─► the connection
//!       └ waits when the queue is full; fails when the reader is gone
//! ```
//!
//! So such a response takes less than half a megabyte, in addition to the frozen state that it shows. How
//! long a reader may keep that state is bounded by the answer time-out.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header::CONTENT_TYPE};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;

use crate::http::admission::{ConnectionTimeouts, Place};

const PIECE: usize = 64 << 10;
/// The number of pieces that wait for the reader; the writer waits in turn.
const AHEAD: usize = 4;

/// The place is given back once `write` has ended, and the response has been taken or its reader has disconnected.
pub fn streamed(
    kind: HeaderValue,
    place: Place,
    timeouts: Option<&Arc<ConnectionTimeouts>>,
    write: impl FnOnce(&mut Pieces) -> io::Result<()> + Send + 'static,
) -> Response<Body> {
    let (pieces, ready) = mpsc::channel(AHEAD);
    let place = Arc::new(place);
    let read = Arc::clone(&place);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces { pieces, gathered: Vec::with_capacity(PIECE) };
        // It fails when the reader has disconnected.
        let _ = write(&mut out).and_then(|()| out.give());
        drop(place);
    });
    // Each piece that is asked for is progress; a reader that asks for none loses its connection, and with it
    // the place.
    let untaken = timeouts.map(ConnectionTimeouts::answer);
    let pieces = stream::unfold((ready, untaken, read), |(mut ready, untaken, read)| async move {
        let piece: Bytes = ready.recv().await?;
        if let Some(untaken) = &untaken {
            untaken.goes_on();
        }
        Some((Ok::<_, std::convert::Infallible>(piece), (ready, untaken, read)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The writer's end of the response.
#[derive(Debug)]
pub struct Pieces {
    pieces: mpsc::Sender<Bytes>,
    gathered: Vec<u8>,
}

impl Pieces {
    fn give(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.gathered, Vec::with_capacity(PIECE));
        self.pieces.blocking_send(piece.into()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((fits, rest)) = bytes.split_at_checked(PIECE - self.gathered.len()) {
            self.gathered.extend_from_slice(fits);
            self.give()?;
            bytes = rest;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes()).map_err(|_| fmt::Error)
    }
}
