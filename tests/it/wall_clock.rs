//! Wall clocks that jump: nothing depends on them but the times that people read. And a machine that sleeps:
//! no lease outlasts the sleep.
//!
//! Each node runs with a preloaded library, `shift.c`, that adds shifts, read from files, to its wall clock
//! and to the clock that continues in a sleep. It is compiled here, by the C compiler that Rust links with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use crate::harness::{Call, Cluster, Network, Plan, Told, left_out, problem, system, wait_for};
use crate::load::Load;
use crate::partitions::SECRET;

pub const HOUR_S: i64 = 3_600;

const DAY_US: u64 = 24 * 3_600 * 1_000_000;

/// Counted from the years in which this runs.
const TO_YEAR_9999: i64 = 7_970 * 365 * 24 * HOUR_S;
const TO_YEAR_2160: i64 = 135 * 365 * 24 * HOUR_S;
const TO_1970: i64 = 56 * 365 * 24 * HOUR_S;

const SKIP: &str = "ELDEST_SKIP_CLOCKS";
const NEEDED: &str =
    "a test of clocks compiles a library for x86-64; set ELDEST_SKIP_CLOCKS=1 to leave it out";

#[derive(Debug)]
pub struct Clocks(PathBuf);

impl Clocks {
    /// Returns None if such tests are left out here.
    pub fn new() -> Option<Clocks> {
        if left_out(SKIP, "shifted clocks") {
            return None;
        }
        let name = format!("clocks-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let clocks = Clocks(folder);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/shift.c");
        system(&["cc", "-shared", "-fPIC", "-O1", "-o", &clocks.path("shift.so"), source], NEEDED);
        Some(clocks)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().expect("our own path is text").to_string()
    }

    pub fn launchers(&self, nodes: u32) -> Vec<Vec<String>> {
        let launcher = |id| {
            let preload = format!("LD_PRELOAD={}", self.path("shift.so"));
            let file = |name: &str, prefix: &str| format!("{name}={}", self.path(&format!("{prefix}{id}")));
            let files = [file("SHIFT_FILE", "n"), file("SLEEP_FILE", "s"), file("PAUSE_FILE", "p")];
            ["env".to_string(), preload].into_iter().chain(files).collect()
        };
        (1..=nodes).map(launcher).collect()
    }

    pub fn set(&self, id: u32, seconds: i64) {
        self.put(&format!("n{id}"), seconds * 1_000);
    }

    /// Simulates a sleep of this length: timers have stood still, and only one clock shows the time.
    fn sleep(&self, id: u32, seconds: i64) {
        self.put(&format!("s{id}"), seconds * 1_000);
    }

    /// Simulates a guest whose host has stopped it for this long: all its clocks but the
    /// wall clock have stood still.
    fn lose(&self, id: u32, ms: i64) {
        self.put(&format!("p{id}"), -ms);
    }

    /// The file is replaced in one step: a reader sees the old shift or the new one.
    fn put(&self, file: &str, ms: i64) {
        fs::write(self.0.join("new"), ms.to_string()).expect("a shift");
        fs::rename(self.0.join("new"), self.0.join(file)).expect("a shift in place");
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_token_that_expires_soon_is_told_to_those_who_may_list_tokens() {
    const ADMIN: &str = "the-admin-token-of-these-tests";
    const WEEK_S: i64 = 7 * 24 * HOUR_S;
    let Some(clocks) = Clocks::new() else { return };
    let config = format!("admin_token = \"{ADMIN}\"\nanonymous = \"read status\"");
    let cluster = Plan::new(1).config(&config).launchers(clocks.launchers(1)).start().await;
    let admin = |call: Call| call.header("authorization", format!("Bearer {ADMIN}"));
    let token = json!({"name": "web", "grants": ["read *"], "ttl_ms": WEEK_S * 1_000});
    cluster.answer(1, admin(Call::post("/v1/tokens").json(&token))).await.expect(201);
    let found = async |call: Call| {
        let said = cluster.answer(1, call).await.expect(200).json();
        said["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|finding| finding["about"] == "token_ends")
            .count()
    };
    let health = || Call::get("/v1/explain/health");
    assert_eq!(found(admin(health())).await, 0);
    clocks.set(1, WEEK_S - HOUR_S);
    wait_for("it expires soon", async || (found(admin(health())).await == 1).then_some(())).await;
    assert_eq!(found(health()).await, 0);
}

#[tokio::test]
async fn wall_clocks_jump_and_nothing_happens() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = Arc::new(Plan::new(3).launchers(clocks.launchers(3)).start().await);
    let leader = cluster.leader().await;
    let epoch = cluster.status_of(leader, "epoch").await;
    let load = Load::start(&cluster, "load");
    let keyed = || Call::command("CreateUser", json!({"name": "a"})).header("idempotency-key", "k");
    let first = cluster.answer(1, keyed()).await.expect(200).json();
    for (id, hours) in [(leader, 1), (leader, -48), (1, 24 * 365), (2, -24 * 365), (3, 5), (leader, 0)] {
        clocks.set(id, hours * HOUR_S);
        for number in 0..5 {
            cluster.write_doc(&format!("after/{id}/{hours}/{number}"), number).await;
        }
    }
    let voting = |ends: &str| json!({"name": format!("until {ends}"), "end_date": ends, "choices": ["x"]});
    let open = || Call::command("CreateElection", voting("2150-01-01T00:00:00Z"));
    cluster.answer(1, open()).await.expect(200);
    let right = stamped(&cluster, leader);
    for (id, seconds) in
        [(leader, TO_YEAR_9999), (leader, TO_YEAR_2160), (1, TO_YEAR_9999), (leader, -TO_1970), (2, -TO_1970)]
    {
        clocks.set(id, seconds);
        cluster.write_doc(&format!("far/{id}/{seconds}"), 1).await;
    }
    let vote = json!({"election_name": "until 2150-01-01T00:00:00Z", "voter_name": "a", "choice": "x"});
    cluster.answer(1, Call::command("VoteElection", vote)).await.expect(200);
    let acquired =
        cluster.answer(1, Call::post("/v1/roles/r/acquire").json(&json!({"instance_id": "i"}))).await;
    let token = acquired.expect(200).json()["token"].as_u64().expect("a token");
    assert!(token < 1 << 53, "{token}");
    assert!(stamped(&cluster, leader) < right + DAY_US, "a stamp has leapt");
    assert_eq!(cluster.status_of(leader, "epoch").await, epoch, "a clock jumped and the leader changed");
    // An entry that is kept for ten minutes of cluster time is still there after a year of wall time.
    let again = cluster.answer(2, keyed()).await.expect(200).json();
    assert_eq!(again["index"], first["index"]);
    let tally = load.end().await;
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    written(&cluster, leader).await;
    stamps_never_go_back(&cluster, leader);
    // All restart while their clocks show the year 9999, and still work.
    for id in cluster.ids() {
        cluster.term(id).await;
        clocks.set(id, TO_YEAR_9999);
    }
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    cluster.write_doc("after all", 1).await;
    written(&cluster, leader).await;
    assert!(stamped(&cluster, leader) < right + DAY_US, "a stamp has leapt");
    cluster.ids().for_each(|id| clocks.set(id, 0));
    cluster.write_doc("after all", 2).await;
    written(&cluster, leader).await;
    stamps_never_go_back(&cluster, leader);
}

/// Waits until this node's own disk has all that is committed now: any majority of disks commits a record,
/// and its own may get it later.
async fn written(cluster: &Cluster, id: u32) {
    let committed = cluster.status_of(cluster.leader().await, "commit_index").await;
    let committed = committed.as_u64().expect("an index");
    wait_for("a disk holds what is committed", async || {
        cluster.log_lines(id).contains_key(&committed).then_some(())
    })
    .await;
}

/// The newest wall time in a node's log.
fn stamped(cluster: &Cluster, id: u32) -> u64 {
    cluster.log_lines(id).values().map(|line| wall_us(&line.wall)).max().expect("records")
}

fn stamps_never_go_back(cluster: &Cluster, id: u32) {
    let mut last = 0;
    let mut jumps = 0;
    for line in cluster.log_lines(id).values() {
        let wall = wall_us(&line.wall);
        assert!(wall >= last, "the wall time goes back at {}: {} after {last}", line.index, line.wall);
        jumps += u32::from(last > 0 && wall - last > HOUR_S as u64 / 2 * 1_000_000);
        last = wall;
    }
    assert!(jumps > 0, "no stamp jumped: the clocks were not shifted, and the test proves nothing");
}

fn wall_us(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("a wall time in microseconds: {text}"))
}

/// A ttl is counted in cluster time: an hour's jump of the wall clock neither ends nor extends it.
#[tokio::test]
async fn a_hold_of_the_service_lapses_by_the_clusters_own_time() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = Plan::new(3).launchers(clocks.launchers(3)).start().await;
    let leader = cluster.leader().await;
    let put = || Call::put("/v1/docs/k").raw_json("1");
    let down = Call::post("/service_down").json(&json!({"ttl_ms": 120_000}));
    cluster.answer(leader, down).await.expect(200);
    cluster.ids().for_each(|id| clocks.set(id, HOUR_S));
    problem(&cluster.answer(leader, put()).await, 503, "service_down");
    cluster.kill9(leader);
    let next = cluster.leader().await;
    problem(&cluster.answer(next, put()).await, 503, "service_down");
    let short = Call::post("/service_down").json(&json!({"ttl_ms": 500}));
    cluster.answer(next, short).await.expect(200);
    cluster.ids().for_each(|id| clocks.set(id, -HOUR_S));
    wait_for("the hold lapses", async || {
        let answer = cluster.answer(next, put()).await;
        answer.ok().then_some(())
    })
    .await;
}

/// The node that renews for an open stream has slept for longer than the lease: it reports the loss before it
/// calls any other node. By a clock that stops in a sleep, the lease would seem certain for most of an hour.
#[tokio::test]
async fn a_stream_does_not_hold_a_role_through_a_sleep() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = Plan::new(3).launchers(clocks.launchers(3)).start().await;
    let serving = cluster.others(cluster.leader().await)[0];
    let path = format!("/v1/roles/r/hold?instance_id=held&ttl_ms={}", HOUR_S * 1_000);
    let mut stream = cluster.posted(serving, &path).await.expect("a stream");
    let held = stream.event().await;
    assert_eq!(held["kind"], "held");
    clocks.sleep(serving, 2 * HOUR_S);
    assert_eq!(stream.event().await, json!({"kind": "lost", "role": "r", "token": held["token"]}));
    assert_eq!(stream.next().await, Told::End);
}

/// The leader's machine is stopped by its host, and when it continues, none of its clocks but the wall clock
/// shows that. Its statements about itself rest on a clock alone: it may answer `/is_leader` with true, and
/// serve `level=leader` reads, until its lease ends by that clock. Nothing else rests on a clock alone. It
/// acknowledges no write, answers no linear read from the past, and steps down by itself. It is cut off, so
/// that no message tells it.
#[tokio::test]
async fn a_leader_whose_clocks_lost_the_time_keeps_every_promise_that_rests_on_a_majority() {
    let Some(clocks) = Clocks::new() else { return };
    let Some(network) = Network::new(3) else { return };
    let both = network.launchers().into_iter().zip(clocks.launchers(3));
    let launchers = both.map(|(inside, shifted)| [inside, shifted].concat()).collect();
    let plan = Plan::at(network.addresses()).brisk().launchers(launchers).config(SECRET);
    let cluster = Arc::new(plan.start().await);
    cluster.write_doc("k", 1).await;
    let old = cluster.leader().await;
    let others = cluster.others(old);
    cluster.stop(old);
    let stopped = Instant::now();
    network.split(&[old], &others);
    cluster.leader_among(&others).await;
    let by = others[0];
    for value in 2..20 {
        let put = Call::put("/v1/docs/k")
            .raw_json(&value.to_string())
            .header("idempotency-key", format!("k{value}"));
        wait_for("the others take a write", async || {
            cluster.answer(by, put.clone()).await.ok().then_some(())
        })
        .await;
    }
    let calls = || {
        let write = |n: u32| Call::put(format!("/v1/docs/by-old/{n}")).raw_json("1");
        let reads = (0..4).map(|_| Call::get("/v1/docs/k?level=linear&forward=no"));
        (0..4).map(write).chain(reads)
    };
    let asked: Vec<_> = calls()
        .map(|call| {
            let cluster = cluster.clone();
            tokio::spawn(async move { cluster.ask(old, &call).await })
        })
        .collect();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // These clocks now show that it was stopped for an instant.
    clocks.lose(old, stopped.elapsed().as_millis() as i64);
    cluster.cont(old);
    for answer in asked {
        if let Ok(answer) = answer.await.expect("a call") {
            assert!(!answer.ok(), "n{old} answers from the past: {}", answer.show());
        }
    }
    wait_for("it steps down by itself", async || {
        let status = cluster.status(old).await?;
        (!cluster.says_it_leads(old).await && status["role"] != "leader").then_some(())
    })
    .await;
    network.heal();
    cluster.is_ready(old).await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "k", "linear").await, Some(19));
    }
}
