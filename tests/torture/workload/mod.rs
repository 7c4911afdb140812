//! The clients of a cluster under torture. Each workload records its calls and their answers, and
//! judges them when the faults of a round are over. Its names begin with the number of the round, so
//! no history grows forever.

mod bank;
mod channels;
mod feed;
mod leaders;
mod pairs;
mod registers;
mod roles;
mod sets;
mod ttl;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::arena::{Arena, Mode};
use crate::check::{Outcome, Verdict};
use crate::harness::{Answer, Call, Rng, Silence};

/// The bound for one answer. Some nodes are frozen, and a client must not wait for them long.
const PATIENCE: Duration = Duration::from_secs(4);

/// The pause between two calls of a client that was refused.
const PAUSE: Duration = Duration::from_millis(20);

/// The workloads that count only writes, so that they show whether writes go on.
const WRITES_ALONE: [&str; 4] = ["sets", "bank", "pairs", "ttl"];

/// The numbers of calls done, refused and of unknown outcome.
pub type Counts = BTreeMap<&'static str, [u64; 3]>;

/// One round: the cluster, and the data that its clients share.
#[derive(Debug)]
pub struct Round {
    pub arena: Arc<Arena>,
    pub number: u64,
    began: Instant,
    stopped: AtomicBool,
    next_value: AtomicU64,
    counts: Mutex<Counts>,
    /// The time of the newest acknowledged write, and the longest time without one, in milliseconds.
    written: AtomicU64,
    silence: AtomicU64,
}

/// A workload whose clients run.
#[derive(Debug)]
pub enum Running {
    Registers(JoinHandle<registers::History>),
    Sets(JoinHandle<sets::History>),
    Bank(JoinHandle<bank::History>),
    Pairs(JoinHandle<pairs::History>),
    Roles(JoinHandle<roles::History>),
    Leaders(JoinHandle<leaders::History>),
    Feed(JoinHandle<feed::History>),
    Ttl(JoinHandle<ttl::History>),
    Channels(JoinHandle<channels::History>),
}

/// Starts the workloads whose promises hold in this mode. In available mode both sides of a split write, and
/// a later merge keeps every acknowledged element, but no order and no sum.
pub fn begin(round: &Arc<Round>, rng: &mut Rng) -> Vec<Running> {
    let mut fork = || Rng::new(rng.next());
    let sets = Running::Sets(tokio::spawn(sets::run(round.clone(), fork())));
    let channels = Running::Channels(tokio::spawn(channels::run(round.clone(), fork())));
    if round.arena.mode == Mode::Available {
        return vec![sets, channels];
    }
    vec![
        sets,
        channels,
        Running::Registers(tokio::spawn(registers::run(round.clone(), fork()))),
        Running::Bank(tokio::spawn(bank::run(round.clone(), fork()))),
        Running::Pairs(tokio::spawn(pairs::run(round.clone(), fork()))),
        Running::Roles(tokio::spawn(roles::run(round.clone(), fork()))),
        Running::Leaders(tokio::spawn(leaders::run(round.clone()))),
        Running::Feed(tokio::spawn(feed::run(round.clone(), fork()))),
        Running::Ttl(tokio::spawn(ttl::run(round.clone(), fork()))),
    ]
}

impl Running {
    /// Waits for its clients, which have been told to stop, reads the present state, and judges.
    pub async fn verdict(self, round: &Arc<Round>) -> Verdict {
        const PANICS: &str = "a client does not panic";
        match self {
            Running::Registers(history) => history.await.expect(PANICS).judge(round).await,
            Running::Sets(history) => history.await.expect(PANICS).judge(round).await,
            Running::Bank(history) => history.await.expect(PANICS).judge(round).await,
            Running::Pairs(history) => history.await.expect(PANICS).judge(round).await,
            Running::Roles(history) => history.await.expect(PANICS).judge(),
            Running::Leaders(history) => history.await.expect(PANICS).judge(),
            Running::Feed(history) => history.await.expect(PANICS).judge(round).await,
            Running::Ttl(history) => history.await.expect(PANICS).judge(round).await,
            Running::Channels(history) => history.await.expect(PANICS).judge(),
        }
    }
}

impl Round {
    pub fn new(arena: Arc<Arena>, number: u64) -> Arc<Round> {
        Arc::new(Round {
            arena,
            number,
            began: Instant::now(),
            stopped: AtomicBool::new(false),
            next_value: AtomicU64::new(1),
            counts: Mutex::default(),
            written: AtomicU64::new(0),
            silence: AtomicU64::new(0),
        })
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the round began.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// A value that was never used before.
    pub fn value(&self) -> u64 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// The beginning of the names of this round.
    pub fn prefix(&self, workload: &str) -> String {
        format!("{}-{workload}/", self.number)
    }

    /// A call to a random node.
    pub async fn ask(&self, rng: &mut Rng, call: Call) -> Result<Answer, Silence> {
        self.ask_at(self.node(rng), call).await
    }

    pub async fn ask_at(&self, node: u32, call: Call) -> Result<Answer, Silence> {
        self.arena.cluster.ask(node, &call.timeout(PATIENCE)).await
    }

    pub fn node(&self, rng: &mut Rng) -> u32 {
        rng.below(u64::from(self.arena.nodes())) as u32 + 1
    }

    /// A write to a random node. A client that was refused waits a moment.
    pub async fn write(&self, workload: &'static str, rng: &mut Rng, call: Call) -> Outcome {
        let outcome = outcome_of(&self.ask(rng, call).await);
        self.count(workload, outcome);
        if outcome != Outcome::Done {
            tokio::time::sleep(PAUSE).await;
        }
        outcome
    }

    pub fn count(&self, workload: &'static str, outcome: Outcome) {
        let mut counts = self.counts.lock().expect("nobody panics with it");
        counts.entry(workload).or_default()[outcome as usize] += 1;
        if outcome == Outcome::Done && WRITES_ALONE.contains(&workload) {
            let now = self.began.elapsed().as_millis() as u64;
            let before = self.written.fetch_max(now, Ordering::Relaxed);
            self.silence.fetch_max(now.saturating_sub(before), Ordering::Relaxed);
        }
    }

    /// A linear read that is repeated until it succeeds, when no fault is left.
    pub async fn read(&self, rng: &mut Rng, path: &str) -> Answer {
        loop {
            match self.ask(rng, Call::get(path)).await {
                Ok(answer) if answer.ok() => return answer,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    pub fn counts(&self) -> Counts {
        self.counts.lock().expect("nobody panics with it").clone()
    }

    /// The time of the newest acknowledged write, in milliseconds.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn longest_silence(&self) -> Duration {
        Duration::from_millis(self.silence.load(Ordering::Relaxed))
    }
}

/// The outcome of a write. A refusal means that nothing was done; a missing answer leaves it unknown.
fn outcome_of(answer: &Result<Answer, Silence>) -> Outcome {
    match answer {
        Err(Silence::NotSent) => Outcome::Refused,
        Err(Silence::Unknown) => Outcome::Unknown,
        Ok(answer) => match answer.status {
            200..=204 => Outcome::Done,
            409 | 410 | 412 | 421 | 429 | 503 => Outcome::Refused,
            504 => Outcome::Unknown,
            _ => panic!("{}", answer.show()),
        },
    }
}

/// The documents of a page, as key, value and revision.
fn items(answer: &Answer) -> Vec<(String, Value, String)> {
    let page = answer.json();
    let items = page["items"].as_array().expect("items");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    items.iter().map(|item| (text(&item["key"]), item["value"].clone(), text(&item["rev"]))).collect()
}

/// The index of the state that answered.
fn index(answer: &Answer) -> u64 {
    answer.header("eldest-index").and_then(|index| index.parse().ok()).expect("an index")
}
