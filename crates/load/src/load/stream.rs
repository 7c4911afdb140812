//! A stream of commands. Lines are sent while not too many are unanswered. Answers belong to lines by their order.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::super::http::{Chunks, Failure, Stream as Connected, find_end, parse};
use super::super::rng::Rng;
use super::super::session::{RETRY_PAUSE, Trouble};
use super::super::tally::lock;
use super::super::tally::{Kind, Tally};
use super::super::target::Target;
use super::super::workload::{push_json_text, stamp};

/// The number of lines that are made and sent at once.
const LINES_AT_ONCE: usize = 256;

/// The room for one read: the answers to a chunk of lines.
const ROOM_BYTES: usize = 256 << 10;

/// The bound of answers that have arrived and are not counted yet. An answer is as long as a key.
const ANSWERS_MAX: usize = 16 << 20;

/// The settings of all streams.
#[derive(Clone, Debug)]
pub struct Plan {
    pub keys: u64,
    pub value_bytes: usize,
    /// The number of lines of one stream that may be unanswered.
    pub window: usize,
    pub headers: Vec<u8>,
    /// The longest time between two answers.
    pub patience: Duration,
}

#[derive(Debug)]
pub struct LoadStream {
    plan: Plan,
    targets: Arc<[Target]>,
    at: usize,
    rng: Rng,
    value: Vec<u8>,
    tally: Arc<Mutex<Tally>>,
}

/// The state of one connection.
#[derive(Debug, Default)]
struct Traffic {
    /// Lines that were made and are not sent yet.
    out: Vec<u8>,
    sent: usize,
    coded: Vec<u8>,
    chunks: Chunks,
    answers: Vec<u8>,
    /// When the lines were made, with their number.
    waiting: VecDeque<(Instant, usize)>,
    unanswered: usize,
}

/// Why a stream has ended.
#[derive(Debug)]
struct Broken(Trouble);

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken(Trouble::of_failure(failure))
    }
}

impl LoadStream {
    pub fn new(
        plan: Plan,
        targets: Arc<[Target]>,
        first: usize,
        seed: u64,
        tally: Arc<Mutex<Tally>>,
    ) -> LoadStream {
        let (mut rng, mut value) = (Rng::new(seed), Vec::new());
        push_json_text(&mut value, plan.value_bytes, &mut rng);
        let at = first % targets.len();
        LoadStream { plan, targets, at, rng, value, tally }
    }

    /// Works until the task is ended. If a stream breaks, a new one begins at the next node.
    pub async fn work(mut self) {
        loop {
            let Err(Broken(trouble)) = self.run().await;
            lock(&self.tally).trouble.count(Kind::Write, &trouble, false);
            self.at = (self.at + 1) % self.targets.len();
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn run(&mut self) -> Result<Infallible, Broken> {
        let lost = |error: io::Error| Failure::Lost(error.kind());
        let (mut reading, mut writing) = tokio::io::split(self.open().await?);
        let mut traffic = Traffic::default();
        let (mut has_head, mut has_left) = (false, true);
        loop {
            if traffic.out.is_empty() && traffic.unanswered < self.plan.window {
                self.make_lines(&mut traffic);
                has_left = false;
            }
            traffic.coded.reserve(ROOM_BYTES);
            let moved = async {
                tokio::select! {
                    wrote = push(&mut writing, &traffic.out[traffic.sent..]), if !has_left => {
                        traffic.sent += wrote.map_err(lost)?;
                        has_left = traffic.out.is_empty();
                        Ok(true)
                    }
                    read = reading.read_buf(&mut traffic.coded) => match read.map_err(lost)? {
                        0 => Err(Failure::Lost(io::ErrorKind::UnexpectedEof)),
                        _ => Ok(false),
                    },
                }
            };
            if timeout(self.plan.patience, moved).await.map_err(|_| Failure::Timeout)?? {
                if traffic.sent == traffic.out.len() && !traffic.out.is_empty() {
                    traffic.out.clear();
                    traffic.sent = 0;
                }
                continue;
            }
            if !has_head {
                let Some(end) = find_end(&traffic.coded, 0).map_err(Failure::from)? else { continue };
                let head = parse(&traffic.coded[..end]).map_err(Failure::from)?;
                if head.status != 200 {
                    return Err(Broken(Trouble::told(head.status, &traffic.coded[end..])));
                }
                traffic.coded.drain(..end);
                has_head = true;
            }
            self.count(&mut traffic)?;
        }
    }

    async fn open(&self) -> Result<Connected, Failure> {
        let target = &self.targets[self.at];
        let mut stream = Connected::connect(target, self.plan.patience).await?;
        let line = format!("POST /v1/commands HTTP/1.1\r\nHost: {}\r\n", target.host);
        let rest = b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
        let head = [line.as_bytes(), &self.plan.headers, rest].concat();
        stream.write_all(&head).await.map_err(|error| Failure::Lost(error.kind()))?;
        Ok(stream)
    }

    fn make_lines(&mut self, traffic: &mut Traffic) {
        let count = LINES_AT_ONCE.min(self.plan.window - traffic.unanswered);
        let mut lines = Vec::with_capacity(count * (self.value.len() + 96));
        for _ in 0..count {
            let key = self.rng.below(self.plan.keys);
            stamp(&mut self.value, self.rng.next());
            lines.extend_from_slice(b"{\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"bench/");
            lines.extend_from_slice(key.to_string().as_bytes());
            lines.extend_from_slice(b"\",\"value\":");
            lines.extend_from_slice(&self.value);
            lines.extend_from_slice(b"}}\n");
        }
        traffic.out = [format!("{:x}\r\n", lines.len()).as_bytes(), &lines, b"\r\n"].concat();
        traffic.waiting.push_back((Instant::now(), count));
        traffic.unanswered += count;
    }

    /// Counts the answers that have arrived as a whole.
    fn count(&self, traffic: &mut Traffic) -> Result<(), Failure> {
        let ended = traffic.chunks.advance(&traffic.coded, &mut traffic.answers, ANSWERS_MAX)?;
        traffic.coded.drain(..traffic.chunks.taken);
        traffic.chunks.taken = 0;
        let mut tally = lock(&self.tally);
        let mut begins = 0;
        while let Some(length) = traffic.answers[begins..].iter().position(|byte| *byte == b'\n') {
            let line = &traffic.answers[begins..begins + length];
            begins += length + 1;
            let Some((made, left)) = traffic.waiting.front_mut() else { break };
            if line.starts_with(b"{\"index\":") {
                tally.succeeded(Kind::Write, made.elapsed());
            } else {
                tally.trouble.count(Kind::Write, &Trouble::of_line(line), false);
            }
            *left -= 1;
            if *left == 0 {
                traffic.waiting.pop_front();
            }
            traffic.unanswered -= 1;
        }
        traffic.answers.drain(..begins);
        if ended { Err(Failure::Lost(io::ErrorKind::UnexpectedEof)) } else { Ok(()) }
    }
}

/// Writes a part of the bytes. Without bytes, it flushes what TLS still holds.
async fn push(writing: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() { writing.flush().await.map(|()| 0) } else { writing.write(bytes).await }
}
