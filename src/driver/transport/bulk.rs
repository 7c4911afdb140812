//! Streams a state to one peer, in pieces, with a proof at the end of the stream.

use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use tokio::sync::mpsc;

use super::post::{Fault, Poster};
use crate::storage::node::SentDifference;
use crate::storage::snapshot::Export;
use crate::wire::Packet;

/// The size of the pieces of a stream. With those that wait, a snapshot takes about 1.5 MiB of memory, however large it is.
const CHUNK: usize = 256 << 10;
/// The number of chunks that are read before the network takes them. Beyond it the reading thread waits.
const AHEAD: usize = 4;
/// The fixed part of a transfer's time limit; a second is added for each `BYTES_PER_SECOND_LEAST` bytes.
const PATIENCE: Duration = Duration::from_secs(30);
/// A slower transfer is cut off, and the protocol begins it again.
const BYTES_PER_SECOND_LEAST: u64 = 1 << 20;

#[derive(Debug)]
pub enum TransferContent {
    /// The files of a chain, one after the other, as they are on disk.
    Snapshot(Export),
    /// A difference with its length. Finding the length is half the work.
    Difference(Box<SentDifference>, u64),
}

impl TransferContent {
    /// Computes the length. This takes a while, so it must not run on a thread that may not block.
    pub fn difference(handed: SentDifference) -> TransferContent {
        let length = handed.length();
        TransferContent::Difference(Box::new(handed), length)
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            TransferContent::Snapshot(export) => export.length(),
            TransferContent::Difference(_, length) => *length,
        }
    }

    fn write(self, out: &mut Chunks) -> io::Result<()> {
        match self {
            TransferContent::Snapshot(mut export) => io::copy(&mut export, out).map(drop),
            TransferContent::Difference(handed, _) => handed.write(out),
        }
    }
}

pub async fn send(poster: &Poster, packet: &Packet, content: TransferContent) -> Result<(), Fault> {
    let most = PATIENCE + Duration::from_secs(content.length() / BYTES_PER_SECOND_LEAST);
    let (headers, mac) = poster.prove_stream(packet)?;
    let (chunks, ready) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(content, mac, chunks));
    let body = stream::unfold(ready, |mut ready| async move { Some((ready.recv().await?, ready)) });
    let sent = poster.stream(packet.route, headers, Body::wrap_stream(body), most).await;
    // The reader ends by itself: its channel is closed, or it has read everything.
    let _ = reading.await;
    sent
}

fn read(content: TransferContent, mac: Option<blake3::Hasher>, chunks: mpsc::Sender<io::Result<Bytes>>) {
    let mut out = Chunks { chunks, gathered: Vec::with_capacity(CHUNK), mac };
    let written = content.write(&mut out).and_then(|()| out.end());
    if let Err(error) = written {
        // Either no receiver waits any more, or a file cannot be read and the stream must not look complete.
        let _ = out.chunks.blocking_send(Err(error));
    }
}

/// The writer's end of a stream.
struct Chunks {
    chunks: mpsc::Sender<io::Result<Bytes>>,
    gathered: Vec<u8>,
    mac: Option<blake3::Hasher>,
}

impl Chunks {
    fn give(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.gathered, Vec::with_capacity(CHUNK));
        if let Some(mac) = &mut self.mac {
            mac.update(&chunk);
        }
        self.send(chunk.into())
    }

    /// The proof is made of what was sent, and comes last. A stream that was cut off has none, so the receiver never takes a part
    /// for the whole.
    fn end(&mut self) -> io::Result<()> {
        self.give()?;
        match self.mac.take() {
            Some(mac) => self.send(Bytes::copy_from_slice(mac.finalize().as_bytes())),
            None => Ok(()),
        }
    }

    fn send(&self, chunk: Bytes) -> io::Result<()> {
        self.chunks.blocking_send(Ok(chunk)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK - self.gathered.len();
        let taken = room.min(bytes.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if self.gathered.len() == CHUNK {
            self.give()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
