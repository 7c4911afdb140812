//! Cuts the body of a command stream into lines, and gathers lines into chunks.
//!
//! A line ends with a newline, or with the body. A chunk consists of the lines that have arrived: it may be a single line, so that no
//! client waits for more to come, and it is no more than the leader's loop takes at once.
//!
//! ```text
//!   body ─► piece ─► rest of bytes ── newline found ──► ends of lines ── take ──► Chunk: whole lines, numbered
//!                       │ 1,024 lines or 1 MiB: full, the next line stays in the rest
//!                       │ a line above the bound: overlong, nothing after it is read
//! ```
//!
//! This module parses nothing. An invalid line is detected when its chunk is judged, and only that line is refused.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::{Duration, Instant, timeout_at};

use crate::http::answer::{Code, Problem};

/// The maximum number of lines in a chunk: the leader's loop needs some milliseconds for them, in which it handles nothing else.
pub const CHUNK_LINES: usize = 1024;

/// The maximum number of bytes in a chunk of more than one line: the maximum size of a round.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Whole lines, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    text: Bytes,
    /// The end of each line, after its newline.
    ends: Vec<usize>,
    /// The number of the first line in its stream, counted from one.
    first: u64,
}

impl Chunk {
    /// Makes a chunk of a whole body. Returns None if the body has more lines than a chunk may have.
    pub fn whole(text: Bytes, first: u64) -> Option<Chunk> {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut ends: Vec<usize> = newlines.map(|(at, _)| at + 1).take(CHUNK_LINES + 1).collect();
        if ends.last().copied().unwrap_or_default() < text.len() {
            ends.push(text.len());
        }
        (ends.len() <= CHUNK_LINES).then_some(Chunk { text, ends, first })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the lines as they arrived.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns each line with its number in the stream, and without its newline.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let lines = begins.zip(&self.ends).map(|(begin, end)| &self.text[begin..*end]);
        (self.first..).zip(lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
    }

    /// Returns the part of the chunk after this number of lines.
    pub fn after(&self, count: usize) -> Chunk {
        let Some(before) = count.checked_sub(1) else { return self.clone() };
        let from = self.ends.get(before).copied().unwrap_or(self.text.len());
        let ends = self.ends.iter().skip(count).map(|end| end - from).collect();
        Chunk { text: self.text.slice(from..), ends, first: self.first + count as u64 }
    }
}

/// Cuts the arriving body. It holds a chunk, or the beginning of one line, plus one piece of the body.
#[derive(Debug)]
pub struct Splitter {
    rest: BytesMut,
    /// The ends of the lines of the next chunk.
    ends: Vec<usize>,
    /// No newline is before this offset, apart from the ends that were found. A long line is searched once,
    /// and not again with each piece that arrives.
    searched: usize,
    state: State,
    /// The body has ended: a rest without a newline is a line, too.
    closed: bool,
    /// The number of the next chunk's first line.
    number: u64,
    line_most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// More lines may belong to the next chunk.
    Open,
    Full,
    /// The line after the chunk exceeds the bound of a line.
    /// This is final: where the next line begins is not known without reading on, and the bound is there to
    /// end the reading.
    Overlong,
}

impl Splitter {
    pub fn new(line_most: usize) -> Splitter {
        let (rest, ends) = (BytesMut::new(), Vec::new());
        Splitter { rest, ends, searched: 0, state: State::Open, closed: false, number: 1, line_most }
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        self.search();
    }

    pub fn finish(&mut self) {
        self.closed = true;
        self.search();
    }

    /// Returns whether no further line belongs to the next chunk.
    pub fn is_full(&self) -> bool {
        self.closed || self.state != State::Open
    }

    pub fn is_overlong(&self) -> bool {
        self.state == State::Overlong
    }

    pub fn has_lines(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Takes the complete lines, if there are any.
    /// What follows the lines stays, and is searched at once: it may have further lines, which came with the
    /// same piece.
    pub fn take(&mut self) -> Option<Chunk> {
        let upto = *self.ends.last()?;
        let text = self.rest.split_to(upto).freeze();
        let chunk = Chunk { text, ends: std::mem::take(&mut self.ends), first: self.number };
        self.number += chunk.len() as u64;
        self.searched -= upto;
        if self.state == State::Full {
            self.state = State::Open;
        }
        self.search();
        Some(chunk)
    }

    fn search(&mut self) {
        while self.state == State::Open {
            let begins = self.ends.last().copied().unwrap_or_default();
            let newline = self.rest[self.searched..].iter().position(|byte| *byte == b'\n');
            let length = newline.map_or(self.rest.len(), |at| self.searched + at) - begins;
            match newline {
                _ if length > self.line_most => self.state = State::Overlong,
                Some(_) => self.end_line(begins + length + 1),
                None if self.closed && length > 0 => self.end_line(begins + length),
                None => {
                    self.searched = self.rest.len();
                    return;
                }
            }
        }
    }

    /// A line that would make the chunk too large stays for the next one. A first line is taken however large
    /// it is: no bound of a chunk refuses what the bound of a line allows.
    fn end_line(&mut self, end: usize) {
        if self.has_lines() && end > CHUNK_BYTES {
            self.state = State::Full;
            return;
        }
        self.ends.push(end);
        self.searched = end;
        if self.ends.len() == CHUNK_LINES || end >= CHUNK_BYTES {
            self.state = State::Full;
        }
    }
}

/// The commands of a stream, as they arrive.
#[derive(Debug)]
pub struct Commands {
    body: Body,
    lines: Splitter,
    /// The maximum time without a complete line, and the time from which it counts.
    silence_most: Duration,
    heard: Instant,
}

impl Commands {
    pub fn new(body: Body, line_most: usize, silence_most: Duration) -> Commands {
        Commands { body, lines: Splitter::new(line_most), silence_most, heard: Instant::now() }
    }

    /// Reads the next piece of the body. A cancelled read loses nothing. The first read sends `100 Continue`.
    pub async fn read(&mut self) -> Result<(), Problem> {
        // Complete lines wait to be taken, so the client has done its part, and its silence does not count.
        if self.lines.has_lines() {
            return self.piece().await;
        }
        let until = self.heard + self.silence_most;
        timeout_at(until, self.piece()).await.unwrap_or_else(|_| Err(silent()))
    }

    /// Returns whether the present lines must be taken before more is read.
    pub fn is_full(&self) -> bool {
        self.lines.is_full()
    }

    /// Returns the number of lines that can be taken.
    pub fn count(&self) -> usize {
        self.lines.ends.len()
    }

    /// Takes the complete lines, if there are any. Silence counts from here.
    pub fn take(&mut self) -> Option<Chunk> {
        self.heard = Instant::now();
        self.lines.take()
    }

    /// Silence counts from here: until now this node did not read from the client.
    /// Otherwise a stream whose chunks wait long for a verdict would end as silent, although the client had
    /// lines to send.
    pub fn restart_silence(&mut self) {
        self.heard = Instant::now();
    }

    /// Returns why reading stopped before the end of the body, if a line is too long and all lines before it were taken.
    pub fn overlong(&self) -> Option<Problem> {
        let most = self.lines.line_most;
        let detail = format!("the line has more than {most} bytes; nothing after it is read");
        let is_next = self.lines.is_overlong() && !self.lines.has_lines();
        is_next.then(|| Problem::new(Code::BodyTooLarge, detail).with("most", most))
    }

    /// Returns the number of the first line that has not been taken.
    pub fn number(&self) -> u64 {
        self.lines.number
    }

    async fn piece(&mut self) -> Result<(), Problem> {
        match self.body.frame().await {
            None => {
                self.lines.finish();
                Ok(())
            }
            Some(Err(_)) => Err(Problem::new(Code::RequestTimeout, "the body broke off")),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(data) = frame.into_data() {
                    self.lines.push(&data);
                }
                Ok(())
            }
        }
    }
}

fn silent() -> Problem {
    Problem::new(Code::RequestTimeout, "no complete line arrived in time; the stream ends here")
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
