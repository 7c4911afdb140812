//! Concurrent clients on every node, with faults all the time, and a checker that knows
//! the rules of a register.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Call, Cluster, Rng, wait_for};
use crate::linear::{self, Op, Outcome};
use crate::registers::Asker;

const CLIENTS: u32 = 6;

/// Few, so that clients meet.
const KEYS: u64 = 4;

/// Faults go on for at least this long.
const LENGTH: Duration = Duration::from_secs(20);

/// The number of operations of each kind that a verdict needs to mean anything. A busy
/// machine takes longer for them.
const ENOUGH: u64 = 200;

/// It only makes the test fail.
const LENGTH_MOST: Duration = Duration::from_secs(180);

/// A frozen node is missed after a second; some of the faults are shorter.
const FREEZE_MOST_MS: u64 = 2_500;

/// Another seed may be given: the history differs in each run, but not the calls and the faults.
fn seed() -> u64 {
    std::env::var("ELDEST_IT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    began: Instant,
    stop: AtomicBool,
    /// Every value is written once, so that a revision stands for a value.
    next_value: AtomicU64,
    done: AtomicU64,
    read: AtomicU64,
}

impl Shared {
    fn count(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Done => self.done.fetch_add(1, Ordering::Relaxed),
            Outcome::Value(_) => self.read.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// True if faults go on.
    fn goes_on(&self) -> bool {
        let few = [&self.done, &self.read].iter().any(|count| count.load(Ordering::Relaxed) < ENOUGH);
        let elapsed = self.began.elapsed();
        elapsed < LENGTH || few && elapsed < LENGTH_MOST
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn value(&self) -> u64 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Client {
    rng: Rng,
    asker: Asker,
}

impl Client {
    async fn run(mut self, shared: Arc<Shared>) -> Vec<Op> {
        while !shared.stop.load(Ordering::Relaxed) {
            let node = self.rng.below(3) as u32 + 1;
            let now = || shared.now();
            let outcome = self.asker.step(&shared.cluster, node, &mut self.rng, now, || shared.value()).await;
            shared.count(&outcome);
        }
        self.asker.history
    }
}

/// One fault after the other, one node at a time: the others are a majority.
async fn break_things(shared: &Shared, rng: &mut Rng) {
    let cluster = &shared.cluster;
    while shared.goes_on() {
        let calm = Duration::from_millis(rng.below(700));
        tokio::time::sleep(calm).await;
        // It is the leader at least half of the time.
        let node = match rng.below(2) {
            0 => rng.below(3) as u32 + 1,
            _ => cluster.leader().await,
        };
        match rng.below(4) {
            0 => {
                cluster.kill9(node);
                cluster.start(node);
            }
            1 => {
                cluster.kill9(node);
                tokio::time::sleep(Duration::from_millis(rng.below(1_500))).await;
                cluster.start(node);
            }
            2 => {
                cluster.stop(node);
                tokio::time::sleep(Duration::from_millis(rng.below(FREEZE_MOST_MS))).await;
                cluster.cont(node);
            }
            _ => {
                cluster.term(node).await;
                cluster.start(node);
            }
        }
        cluster.is_ready(node).await;
    }
}

async fn last_reads(shared: &Shared) -> Vec<Op> {
    let cluster = &shared.cluster;
    let mut reads = Vec::new();
    for key in 0..KEYS {
        let mut values: Vec<Option<u64>> = Vec::new();
        for node in cluster.ids() {
            let invoked = shared.now();
            let value = cluster.read_doc(node, &format!("r{key}"), "linear").await;
            let outcome = Outcome::Value(value);
            let (client, returned) = (CLIENTS, Some(shared.now()));
            reads.push(Op { client, key: key as u32, invoked, returned, call: linear::Call::Read, outcome });
            values.push(value);
        }
        assert!(values.iter().all(|value| *value == values[0]), "r{key} at the end: {values:?}");
    }
    reads
}

#[tokio::test]
async fn histories_under_faults_are_linearizable() {
    let seed = seed();
    println!("ELDEST_IT_SEED={seed}");
    let mut rng = Rng::new(seed);
    let cluster = Cluster::brisk(3).await;
    let (began, stop, next_value) = (Instant::now(), AtomicBool::new(false), AtomicU64::new(1));
    let (done, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let shared = Arc::new(Shared { cluster, began, stop, next_value, done, read });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|id| {
            let client = Client { rng: Rng::new(rng.next()), asker: Asker::new(id, "", KEYS) };
            tokio::spawn(client.run(shared.clone()))
        })
        .collect();
    break_things(&shared, &mut rng).await;
    shared.stop.store(true, Ordering::Relaxed);
    let mut history = Vec::new();
    for client in clients {
        history.extend(client.await.expect("a client does not panic"));
    }
    shared.cluster.ready().await;
    history.extend(last_reads(&shared).await);
    report(&history);
    if let Err(verdict) = linear::check(&history) {
        panic!("{verdict}");
    }
    shared.cluster.equal_states(&[1, 2, 3]).await;
    let commit = shared.cluster.status_of(1, "commit_index").await.as_u64().expect("an index");
    shared.cluster.equal_logs(&[1, 2, 3], commit);
}

fn report(history: &[Op]) {
    let count = |wanted: &dyn Fn(&Outcome) -> bool| history.iter().filter(|op| wanted(&op.outcome)).count();
    let done = count(&|outcome| *outcome == Outcome::Done);
    let read = count(&|outcome| matches!(outcome, Outcome::Value(_)));
    let unknown = count(&|outcome| *outcome == Outcome::Unknown);
    let refused = count(&|outcome| *outcome == Outcome::Refused);
    println!("{} operations: {done} done, {read} read, {unknown} unknown, {refused} refused", history.len());
    let enough = |count: usize| count as u64 >= ENOUGH;
    assert!(enough(done) && enough(read), "too few for a verdict that means anything");
}

/// A leader read is not linear, but it is never older than what its own client has seen through that leader;
/// the test asks for it only to show that every level works while the leader changes.
#[tokio::test]
async fn leader_reads_do_not_go_back_on_one_node() {
    /// The leader changes at every thirteenth value; some are written after the last change.
    const LAST: u64 = 45;
    let cluster = Cluster::brisk(3).await;
    let mut last: Value = Value::from(0);
    for value in 1..=LAST {
        cluster.write_doc("k", value).await;
        if value % 13 == 0 {
            let leader = cluster.leader().await;
            cluster.kill9(leader);
            cluster.start(leader);
        }
        let read = wait_for("a leader read", async || {
            let answer = cluster.ask(2, &Call::get("/v1/docs/k?level=leader")).await.ok()?;
            answer.ok().then(|| answer.json())
        })
        .await;
        assert!(read.as_u64() >= last.as_u64(), "{read} after {last}");
        last = read;
    }
    wait_for("the last value is read", async || {
        let answer = cluster.ask(2, &Call::get("/v1/docs/k?level=leader")).await.ok()?;
        (answer.ok() && answer.json() == LAST).then_some(())
    })
    .await;
}
