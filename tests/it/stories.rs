//! The answers of `eldest why` after real faults: `stories.txt` holds the first lines for each situation. With `ELDEST_UPDATE=1` each test
//! writes its own stories into that file again; read them before you keep them.
//!
//! Each situation is made so that one text is right. A text may take a moment to come about, so a test waits until it stands. What
//! differs from run to run is replaced: times, epochs, durations, tokens and addresses.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Call, Cluster, Folder, Network, Plan, eldest, left_out, problem, system, wait_for, watch_for,
};
use crate::partitions::SECRET;
use crate::roles::{Asks, LONG, acquire, got, grant};
use crate::sides::{cluster_on, one_again, split_in_two};
use crate::wall_clock::{Clocks, HOUR_S};
use crate::why::has_written;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stories.txt");

/// A head start that a busy machine cannot use up: the elder leads, and after it the next one.
const IN_ORDER: &str = "timing.stagger_ms = 10000\n";

/// For tests in which a leader is given up because it is silent.
const PATIENT: &str = "timing.dead_after_ms = 4000\n";

const ADMIN: &str = "admin-token-of-the-tests-0123456789";

/// All stories, in the order of the file.
const STORIES: &[&str] = &[
    "the leader was killed",
    "the leader was stopped, and went on",
    "the leader can hear the others, and they cannot hear it",
    "the same, after the link was repaired",
    "the leader's disk acknowledges nothing (available mode)",
    "an operator named the next leader",
    "the leader was asked to end, and is down",
    "the same, after it was started again",
    "the elder returned (takeover = when_stable)",
    "the leader was killed for the second time",
    "two of three nodes are down",
    "a node has another secret",
    "the leader was killed after clocks had been set",
    "the leader was removed from the cluster",
    "two sides have merged (available mode)",
    "all were restarted, and two have lost their journals",
    "a role ended by its ttl",
    "a role ended with its connection",
    "a role was released",
    "an operator named another holder",
    "a role was held on both of two sides",
    "a call was refused: 409",
    "a call was refused: 503",
    "a call was refused: 504",
];

// The file of stories.

/// Tests of one process write the file one after the other.
static WRITING: Mutex<()> = Mutex::new(());

fn stories() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let parts = text.split("# ").skip(1);
    parts
        .filter_map(|part| part.split_once('\n'))
        .map(|(title, said)| (title.into(), said.trim().into()))
        .collect()
}

fn keep(title: &str, said: &str) {
    let _writing = WRITING.lock();
    let mut all = stories();
    all.insert(title.to_string(), said.to_string());
    let mut text = String::new();
    for title in STORIES {
        if let Some(said) = all.get(*title) {
            let _ = writeln!(text, "# {title}\n{said}\n");
        }
    }
    std::fs::write(GOLDEN, text.trim_end().to_string() + "\n").expect("it is written");
}

#[test]
fn the_file_has_each_story_once_and_in_order() {
    let text = std::fs::read_to_string(GOLDEN).expect("the stories");
    let titles: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(titles, STORIES);
}

// The answers of `eldest why`.

/// Replaces everything that differs from run to run by a name.
fn settled(text: &str, cluster: &Cluster) -> String {
    let mut text = text.to_string();
    for url in cluster.urls() {
        text = text.replace(url.trim_start_matches("http://"), "ADDRESS");
    }
    text.lines().map(settled_line).collect::<Vec<_>>().join("\n")
}

fn settled_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let before = place.checked_sub(1).map_or("", |before| words[before]);
        let after = words.get(place + 1).copied().unwrap_or_default();
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        let is_clock = bare.len() == 12 && bare.bytes().filter(|byte| *byte == b':').count() == 2;
        let name = match () {
            () if is_clock => "TIME",
            () if before == "epoch" => "EPOCH",
            () if is_number && after.starts_with("ms") => "N",
            () if is_number && bare.len() >= 15 => "TOKEN",
            () => bare,
        };
        if is_clock {
            // The date is the word before.
            out.pop();
        }
        if out.last().is_some_and(|last| last == "TIME") && word.starts_with(['+', '-']) {
            // The offset of the time zone belongs to the time.
            out.pop();
            out.push(format!("TIME{}", word.get("+00:00".len()..).unwrap_or_default()));
            continue;
        }
        out.push(if bare.is_empty() { word.to_string() } else { word.replace(bare, name) });
    }
    out.join(" ")
}

/// The output, or the failure of a node that cannot answer now.
fn why(cluster: &Cluster, node: u32, words: &[&str]) -> Result<String, String> {
    let url = cluster.node(node).url();
    let output = eldest(&[&["why"], words, &["--url", &url]].concat());
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// The first lines, as the file has them. The first three lines tell who leads and why; a role has its newest events below them.
fn head(text: &str, words: &[&str]) -> String {
    let lines = match words.first() {
        Some(word) if word.starts_with("role/") => 6,
        Some(word) if word.starts_with("call/") => 2,
        _ => 3,
    };
    text.lines().filter(|line| !line.is_empty()).take(lines).collect::<Vec<_>>().join("\n")
}

/// Waits until this node tells the story of that title, and returns all that it says. `part` is in the first lines: a new story is
/// kept once it is there.
async fn stands(cluster: &Cluster, node: u32, words: &[&str], title: &str, part: &str) -> String {
    assert!(STORIES.contains(&title), "{title} has no place in the file");
    let update = std::env::var_os("ELDEST_UPDATE").is_some();
    let wanted = stories().remove(title).unwrap_or_default();
    watch_for(title, async || {
        let text = why(cluster, node, words)?;
        let said = settled(&head(&text, words), cluster);
        if update && said.contains(part) {
            keep(title, &said);
            return Ok(text);
        }
        assert!(update || wanted.contains(part), "the story {title} does not say {part}");
        if said == wanted { Ok(text) } else { Err(format!("\n{said}\nand wanted is\n{wanted}\n")) }
    })
    .await
}

/// Waits until the output has all these parts, each after the one before.
async fn tells(cluster: &Cluster, node: u32, parts: &[&str]) {
    watch_for("why tells all parts in order", async || {
        let text = why(cluster, node, &[])?;
        let mut rest = text.as_str();
        for part in parts {
            rest = rest.split_once(part).ok_or_else(|| format!("no {part} there in {text}"))?.1;
        }
        Ok(())
    })
    .await;
}

async fn leads(cluster: &Cluster, id: u32) {
    wait_for("that node leads", async || cluster.says_it_leads(id).await.then_some(())).await;
}

/// Three nodes, and node 1 leads.
async fn in_order(config: &str) -> Cluster {
    let cluster = Plan::new(3).config(&[IN_ORDER, config].concat()).start().await;
    leads(&cluster, 1).await;
    cluster.write_doc("k", 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
    cluster
}

// Leaders that fail.

#[tokio::test]
async fn a_killed_leader() {
    let cluster = in_order("").await;
    cluster.kill9(1);
    stands(&cluster, 3, &[], "the leader was killed", "If node-2 died, no node could").await;
}

#[tokio::test]
async fn a_leader_that_stood_still_says_so_itself() {
    let plan = Plan::new(3).brisk().config(&[IN_ORDER, PATIENT].concat());
    let cluster = plan.start().await;
    leads(&cluster, 1).await;
    cluster.stop(1);
    leads(&cluster, 2).await;
    cluster.cont(1);
    stands(&cluster, 3, &[], "the leader was stopped, and went on", "node-1 stood still for").await;
}

#[tokio::test]
async fn a_leader_that_is_not_heard() {
    let Some(network) = Network::new(3) else { return };
    let config = format!("{SECRET}\n{IN_ORDER}{PATIENT}");
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers()).config(&config);
    let cluster = plan.start().await;
    leads(&cluster, 1).await;
    [2, 3].into_iter().for_each(|id| network.cut(1, id));
    let title = "the leader can hear the others, and they cannot hear it";
    stands(&cluster, 3, &[], title, "gave up node-1: it stopped answering").await;
    network.heal();
    cluster.ready().await;
    stands(&cluster, 3, &[], "the same, after the link was repaired", "node-1").await;
}

/// In safe mode the disks of the two others are a majority, and a leader whose own disk stands still goes on.
#[tokio::test]
async fn a_leader_whose_disk_stands_still() {
    if left_out("ELDEST_SKIP_CLOCKS", "libraries that are loaded before a node") {
        return;
    }
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).to_str().expect("our own path is text").to_string();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stall.c");
    system(
        &["cc", "-shared", "-fPIC", "-O1", "-o", &path("stall.so"), source],
        "this test compiles a library",
    );
    let launcher = |id: u32| {
        let preload = format!("LD_PRELOAD={}", path("stall.so"));
        vec!["env".to_string(), preload, format!("STALL_FILE={}", path(&format!("n{id}")))]
    };
    let config = format!("mode = \"available\"\n{IN_ORDER}{PATIENT}");
    // In available mode two nodes may claim at once and then merge, so that the newest change is the merge. With two nodes only
    // one of them can claim.
    let plan = Plan::new(2).brisk().launchers((1..=2).map(launcher).collect()).config(&config);
    let cluster = plan.start().await;
    leads(&cluster, 1).await;
    std::fs::write(path("n1"), "").expect("the disk stands still");
    let put = Call::put("/v1/docs/k").raw_json("1").timeout(Duration::from_secs(1));
    let answer = cluster.ask(1, &put).await;
    assert!(!answer.is_ok_and(|answer| answer.ok()), "a disk that stands still has acknowledged a write");
    let title = "the leader's disk acknowledges nothing (available mode)";
    stands(&cluster, 2, &[], title, "node-1 has been waiting for its disk for").await;
    std::fs::remove_file(path("n1")).expect("the disk works again");
    tells(&cluster, 2, &["node-1 waited for its disk for "]).await;
}

#[tokio::test]
async fn a_leader_that_was_killed_twice() {
    let cluster = in_order("").await;
    cluster.kill9(1);
    leads(&cluster, 2).await;
    cluster.start(1);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    cluster.hand_to(1).await;
    cluster.equal_states(&[1, 2, 3]).await;
    cluster.kill9(1);
    stands(&cluster, 3, &[], "the leader was killed for the second time", "If node-2 died, no node could")
        .await;
    tells(&cluster, 3, &["The steps to ", "put node-1 on hold for ", "leads in epoch "]).await;
}

#[tokio::test]
async fn a_cluster_without_a_majority() {
    let cluster = in_order("").await;
    [2, 3].into_iter().for_each(|id| cluster.kill9(id));
    stands(&cluster, 1, &[], "two of three nodes are down", "node-1 says: ").await;
}

/// A step of a node whose clock was set stays where it belongs.
#[tokio::test]
async fn clocks_that_were_set() {
    let Some(clocks) = Clocks::new() else { return };
    let plan = Plan::new(3).launchers(clocks.launchers(3)).config(IN_ORDER);
    let cluster = plan.start().await;
    leads(&cluster, 1).await;
    for (id, seconds, way) in [(2, HOUR_S, "forward by "), (3, -HOUR_S, "back by ")] {
        clocks.set(id, seconds);
        tells(&cluster, id, &["Since then, from ", &format!("node-{id} had its wall clock set {way}")]).await;
    }
    cluster.kill9(1);
    let part = "If node-2 died, no node could";
    stands(&cluster, 3, &[], "the leader was killed after clocks had been set", part).await;
    let steps = ["had its wall clock set ", "gave up node-1", "claimed epoch ", "leads in epoch "];
    let node_2 = steps.map(|step| format!("node-2 {step}"));
    tells(&cluster, 3, &node_2.each_ref().map(String::as_str)).await;
    let node_3 = ["had its wall clock set ", "approved node-2", "follows node-2"];
    let node_3 = node_3.map(|step| format!("node-3 {step}"));
    tells(&cluster, 3, &node_3.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn a_journal_is_read_again_and_a_lost_one_is_named() {
    let cluster = in_order("").await;
    cluster.kill9(1);
    leads(&cluster, 2).await;
    let told = cluster.answer(2, Call::get("/v1/explain/leader?level=local")).await.expect(200).json();
    let entries = told["entries"].as_array().cloned().unwrap_or_default();
    let opened = entries.iter().rfind(|entry| entry["event"] == "opened").expect("it leads").clone();
    wait_for("it is written down", async || has_written(&cluster, 2, &opened["epoch"]).then_some(())).await;
    [2, 3].into_iter().for_each(|id| cluster.kill9(id));
    for id in [1, 3] {
        std::fs::remove_file(cluster.node(id).data.join("chronicle")).expect("a journal");
    }
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let title = "all were restarted, and two have lost their journals";
    stands(&cluster, 3, &[], title, "node-1 leads").await;
    let lost = ["node-1 has lost its journal", "node-3 has lost its journal"];
    let because = "Because node-2 gave up node-1: its port refuses connections";
    tells(&cluster, 3, &[lost[0], lost[1], "Before:", "node-2 led, in epoch ", because]).await;
}

// Leaders that hand over.

#[tokio::test]
async fn an_order_by_an_operator() {
    let cluster = in_order(&format!("admin_token = \"{ADMIN}\"\n")).await;
    let url = cluster.node(2).url();
    watch_for("node 3 is told to lead", async || {
        let output = eldest(&["elect", "node-3", "--url", &url, "--token", ADMIN]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    })
    .await;
    stands(&cluster, 2, &[], "an operator named the next leader", "handed over to node-3: admin ordered it")
        .await;
}

#[tokio::test]
async fn a_leader_that_was_asked_to_end() {
    let cluster = in_order("").await;
    cluster.term(1).await;
    stands(&cluster, 3, &[], "the leader was asked to end, and is down", "node-1 handed over to node-2")
        .await;
    cluster.start(1);
    cluster.ready().await;
    let part = "node-1 handed over to node-2: its process was to end";
    stands(&cluster, 3, &[], "the same, after it was started again", part).await;
}

#[tokio::test]
async fn an_elder_that_returns() {
    let cluster = in_order("takeover = \"when_stable\"\ntiming.stable_for_ms = 200\n").await;
    cluster.kill9(1);
    leads(&cluster, 2).await;
    cluster.start(1);
    let part = "If node-1 died, node-2 would lead";
    stands(&cluster, 3, &[], "the elder returned (takeover = when_stable)", part).await;
}

#[tokio::test]
async fn a_leader_that_is_removed() {
    let cluster = in_order("").await;
    let output = eldest(&["members", "remove", "1", "--url", &cluster.node(2).url()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    wait_for("the one that was removed ends", async || cluster.node(1).ended()).await;
    stands(&cluster, 3, &[], "the leader was removed from the cluster", "handed over to node-2").await;
}

// Nodes that do not work together.

#[tokio::test]
async fn a_node_with_another_secret() {
    const ANOTHER: &str = "cluster_secret = \"another secret of these tests, long enough as well\"";
    let cluster = in_order(SECRET).await;
    cluster.kill9(3);
    cluster.configure(3, &[IN_ORDER, ANOTHER].concat());
    cluster.start(3);
    stands(&cluster, 1, &[], "a node has another secret", "If node-1 died, no node could").await;
    for id in [1, 3] {
        tells(&cluster, id, &["Since then, from ", "node-3 could not talk to node-"]).await;
    }
}

// Roles.

/// Asks this node about the role, until its answer is the story of that title.
async fn role_stands(cluster: &Cluster, role: &str, title: &str, part: &str) {
    stands(cluster, 2, &[&format!("role/{role}")], title, part).await;
}

#[tokio::test]
async fn roles_that_ended() {
    let cluster = Cluster::of(3).await;
    let asks = Asks { cluster: &cluster, node: 1 };
    grant(asks.acquire("lapsed", "ann", json!({"ttl_ms": 1000})).await);
    role_stands(&cluster, "lapsed", "a role ended by its ttl", "lapsed has no holder").await;

    let path = format!("/v1/roles/kept/hold?instance_id=ann&ttl_ms={LONG}");
    let mut stream = cluster.posted(3, &path).await.expect("a stream");
    assert_eq!(stream.event().await["kind"], "held");
    drop(stream);
    role_stands(&cluster, "kept", "a role ended with its connection", "kept has no holder").await;

    let token = grant(asks.acquire("given", "ann", json!({})).await);
    asks.release("given", "ann", token).await.expect(200);
    role_stands(&cluster, "given", "a role was released", "ann released it").await;

    grant(asks.acquire("named", "ann", json!({})).await);
    asks.elect("named", "bob").await.expect(200);
    role_stands(&cluster, "named", "an operator named another holder", "ann was replaced by an operator")
        .await;
}

#[tokio::test]
async fn sides_that_merged() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    split_in_two(&network, &cluster).await;
    for (id, instance) in [(1, "elder"), (3, "younger")] {
        let call = acquire("r", instance, json!({})).header("idempotency-key", instance);
        got(cluster.eventually_at(id, &call).await);
    }
    network.heal();
    one_again(&cluster).await;
    role_stands(&cluster, "r", "a role was held on both of two sides", "elder holds r").await;
    stands(&cluster, 3, &[], "two sides have merged (available mode)", "merged with the side of node-2")
        .await;
}

// Calls.

async fn call_stands(cluster: &Cluster, id: &str, title: &str, part: &str) {
    stands(cluster, 1, &[&format!("call/{id}")], title, part).await;
}

#[tokio::test]
async fn refused_calls() {
    let cluster = in_order("limits.request_timeout_ms = 2000\n").await;
    grant(cluster.answer(1, acquire("r", "ann", json!({}))).await);
    let again = acquire("r", "bob", json!({})).header("x-request-id", "held");
    problem(&cluster.answer(1, again).await, 409, "role_held");
    call_stands(&cluster, "held", "a call was refused: 409", "with 409 (role_held)").await;

    // They may still take the record, so the outcome is unknown.
    [2, 3].into_iter().for_each(|id| cluster.stop(id));
    let put = |id: &str| Call::put("/v1/docs/k").raw_json("2").header("x-request-id", id);
    problem(&cluster.answer(1, put("unknown")).await, 504, "outcome_unknown");
    call_stands(&cluster, "unknown", "a call was refused: 504", "with 504 (outcome_unknown)").await;

    [2, 3].into_iter().for_each(|id| cluster.kill9(id));
    wait_for("the loss is noticed", async || cluster.status(1).await?["leader"].is_null().then_some(()))
        .await;
    let refused = cluster.answer(1, put("alone")).await.expect(503);
    let code: Value = refused.json()["code"].clone();
    call_stands(
        &cluster,
        "alone",
        "a call was refused: 503",
        &format!("with 503 ({})", code.as_str().expect("a code")),
    )
    .await;
}
