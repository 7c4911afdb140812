//! Runs several chunks of a stream at once if this node leads: while one waits for disks and followers, the next is judged.
//!
//! ```text
//!   chunk ─► proposed, proposed, proposed ─► verdicts, from the first on ─► answers
//!               │ one was refused for a change of leadership
//!               ▼
//!            wait for all open chunks ─► the lines after the last decided one: chunk after chunk, at the leader
//! ```
//!
//! So lines keep their order. If another node leads, chunks are sent to it one after the other.
//!
//! The order is kept although several chunks are open, because `Proposed::new` puts a chunk into the loop's
//! queue before it returns, and the next one is proposed after that. After a change of leadership all open
//! chunks are awaited first: a line that is judged again must not come before a line that is still open.

use std::collections::VecDeque;

use tokio::time::{Instant, timeout_at};

use super::chunk::{Decided, LineVerdict, Proposed, decide, decided, is_open};
use crate::driver::handle::Denied;
use crate::http::answer::CallFailure;
use crate::http::request::{Chunk, ClientHead, Context};

/// The maximum number of open chunks of one stream: one is judged, one is sent to disks and followers, one returns from there, and one has
/// just arrived.
/// More would only wait: the loop decides eight chunks of all streams at a time.
const UNDER_WAY_MOST: usize = 4;

/// A chunk with fewer lines waits until no other chunk is open: a round of a few lines costs as much as one of many.
const LINES_LEAST: usize = 256;

pub struct Pipeline<'a> {
    context: &'a Context,
    head: &'a ClientHead,
    no_forward: bool,
    under_way: VecDeque<UnderWay>,
}

struct UnderWay {
    chunk: Chunk,
    proposed: Proposed,
    /// After this deadline the outcome is unknown.
    until: Instant,
    verdicts: Option<Vec<LineVerdict>>,
}

impl Pipeline<'_> {
    pub fn new<'a>(context: &'a Context, head: &'a ClientHead, no_forward: bool) -> Pipeline<'a> {
        Pipeline { context, head, no_forward, under_way: VecDeque::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns whether this number of lines should be decided now. More lines may be added if they are not `full`.
    /// A first chunk goes at once, so a client that sends one line and waits for its answer is not delayed.
    pub fn wants(&self, lines: usize, full: bool) -> bool {
        let enough = full || lines >= LINES_LEAST;
        lines > 0 && (self.is_empty() || enough && self.under_way.len() < UNDER_WAY_MOST)
    }

    /// Takes a chunk, and returns the results that are decided by then.
    /// At another leader there is one call for each chunk. Two at once could arrive in either order.
    pub async fn add(&mut self, chunk: Chunk) -> String {
        if self.context.other_leader().is_some() {
            let mut text = self.finish().await;
            text.push_str(&self.decide(chunk).await);
            return text;
        }
        let until = Instant::now() + self.context.limits.request_timeout;
        match timeout_at(until, Proposed::new(self.context, self.head, &chunk)).await {
            Ok(proposed) => {
                self.under_way.push_back(UnderWay { chunk, proposed, until, verdicts: None });
                String::new()
            }
            // The answers of earlier chunks come first: the client counts lines.
            Err(_) => {
                let mut text = self.finish().await;
                text.push_str(&self.refuse(&chunk).await);
                text
            }
        }
    }

    /// No permit became free for the chunk in all that time: it is surely not applied.
    async fn refuse(&self, chunk: &Chunk) -> String {
        let denied = || Denied::TooMany { bound: "lines of streams that are not decided" };
        let verdicts = (0..chunk.len()).map(|_| Err(CallFailure::Denied(denied()))).collect();
        let mut said = Decided::default();
        said.say_all(self.context, self.head, chunk, verdicts).await;
        said.text
    }

    /// Waits until the first chunk has its verdicts. A cancelled wait loses nothing.
    pub async fn ready(&mut self) {
        if let Some(first) = self.under_way.front_mut() {
            first.ready().await;
        }
    }

    /// Returns the results of the first chunk; if leadership has changed, those of all chunks.
    pub async fn next(&mut self) -> String {
        let Some(mut first) = self.under_way.pop_front() else { return String::new() };
        let verdicts = first.verdicts().await;
        if verdicts.iter().any(is_open) {
            self.under_way.push_front(UnderWay { verdicts: Some(verdicts), ..first });
            return self.judge_again().await;
        }
        let mut said = Decided::default();
        said.say_all(self.context, self.head, &first.chunk, verdicts).await;
        said.text
    }

    async fn finish(&mut self) -> String {
        let mut text = String::new();
        while !self.is_empty() {
            text.push_str(&self.next().await);
        }
        text
    }

    async fn judge_again(&mut self) -> String {
        let (mut chunks, mut all) = (Vec::new(), Vec::new());
        for mut under_way in std::mem::take(&mut self.under_way) {
            all.extend(under_way.verdicts().await);
            chunks.push(under_way.chunk);
        }
        // Over all open chunks together: a line that is decided in a later chunk shows that no earlier line
        // may be judged again.
        let mut left = decided(&all);
        let (mut said, mut all) = (Decided::default(), all.into_iter());
        for chunk in chunks {
            let done = left.min(chunk.len());
            left -= done;
            let verdicts: Vec<LineVerdict> = all.by_ref().take(done).collect();
            said.say_all(self.context, self.head, &chunk, verdicts).await;
            if done < chunk.len() {
                said.text.push_str(&self.decide(chunk.after(done)).await);
            }
        }
        said.text
    }

    async fn decide(&self, chunk: Chunk) -> String {
        decide(self.context, self.head, self.no_forward, chunk).await.text
    }
}

impl UnderWay {
    async fn ready(&mut self) {
        if self.verdicts.is_none() {
            let waited = timeout_at(self.until, self.proposed.verdicts()).await;
            let unknown =
                |_| (0..self.chunk.len()).map(|_| Err(CallFailure::Denied(Denied::Unknown))).collect();
            self.verdicts = Some(waited.unwrap_or_else(unknown));
        }
    }

    async fn verdicts(&mut self) -> Vec<LineVerdict> {
        self.ready().await;
        self.verdicts.take().unwrap_or_default()
    }
}
