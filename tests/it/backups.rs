//! The whole state as one file: taken while writes continue, restored here and in another cluster,
//! completely or not at all.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Plan, Raw, Rng, bounded, eldest, problem, wait_for, watch_for};
use crate::wall_clock::{Clocks, HOUR_S};

/// No answer takes this long, not even from a debug build on a busy machine: it only makes a test
/// fail, and is no measure.
const LONG: Duration = Duration::from_secs(600);

async fn run(words: Vec<String>) -> Output {
    let running = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        eldest(&words)
    });
    running.await.expect("the binary runs")
}

/// `eldest` with these words, against a node.
async fn command(cluster: &Cluster, id: u32, words: &[&str]) -> Output {
    let url = cluster.node(id).url();
    run(words.iter().chain(&["--url", &url]).map(ToString::to_string).collect()).await
}

async fn done(cluster: &Cluster, id: u32, words: &[&str]) -> String {
    let output = command(cluster, id, words).await;
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Takes a backup of the leader's state, and returns the path of its file.
async fn backup(cluster: &Cluster, name: &str) -> String {
    let file = cluster.folder().join(name).display().to_string();
    done(cluster, 1, &["backup", "--level", "linear", "--out", &file]).await;
    file
}

/// The rows of a backup's text, without the position of each write, and without the last token.
fn rows(text: &str) -> Vec<String> {
    let inner = text.lines().skip(1).filter(|line| !line.starts_with("end ") && !line.starts_with("token "));
    inner
        .map(|row| {
            let at = row.find("\"at\":\"").expect("each row says where it was written") + 6;
            let end = at + row[at..].find('"').expect("a position ends");
            format!("{}{}", &row[..at], &row[end..])
        })
        .collect()
}

fn rows_of(file: &str) -> Vec<String> {
    rows(&fs::read_to_string(file).expect("a backup"))
}

/// A node gives one backup at a time; the previous one holds its place until the node has noticed
/// that all of it was read.
async fn given(cluster: &Cluster, id: u32, path: &str) -> Answer {
    let answer = watch_for("the node gives a backup", async || {
        let answer = cluster.answer(id, Call::get(path).timeout(LONG)).await;
        if answer.status == 429 { Err(answer.show()) } else { Ok(answer) }
    });
    answer.await.expect(200)
}

async fn rows_at(cluster: &Cluster, id: u32) -> Vec<String> {
    rows(&given(cluster, id, "/v1/backup?level=linear").await.text())
}

async fn furnish(cluster: &Cluster) {
    for name in ["ann", "bob"] {
        cluster.answer(1, Call::command("CreateUser", json!({"name": name, "group": "a"}))).await.expect(200);
    }
    let election = json!({"name": "e", "choices": ["x", "y"]});
    cluster.answer(1, Call::command("CreateElection", election)).await.expect(200);
    let vote = json!({"election_name": "e", "voter_name": "ann", "choice": "y"});
    cluster.answer(1, Call::command("VoteElection", vote)).await.expect(200);
    for number in 0..50 {
        cluster.write_doc(&format!("d/{number:03}"), number).await;
    }
    let acquire = json!({"instance_id": "me", "ttl_ms": 600_000});
    cluster.answer(1, Call::post("/v1/roles/r/acquire").json(&acquire)).await.expect(200);
}

/// Writes one document after the other until `ends` is set; counts the acknowledged ones as it goes.
fn write_on(
    cluster: &Arc<Cluster>,
    ends: &Arc<AtomicBool>,
    written: &Arc<AtomicU64>,
) -> tokio::task::JoinHandle<()> {
    let (cluster, ends, written) = (cluster.clone(), ends.clone(), written.clone());
    tokio::spawn(async move {
        while !ends.load(Ordering::Relaxed) {
            let number = written.load(Ordering::Relaxed);
            let put = Call::put(format!("/v1/docs/w/{number:06}")).raw_json("1");
            let answer = cluster.answer(1, put.timeout(LONG)).await;
            assert!(answer.ok(), "{}", answer.show());
            written.store(number + 1, Ordering::Relaxed);
        }
    })
}

#[tokio::test]
async fn what_was_there_is_there_again_though_writes_go_on() {
    let cluster = Arc::new(Cluster::of(3).await);
    furnish(&cluster).await;
    let (ends, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writing = write_on(&cluster, &ends, &written);
    let acknowledged = async || Some(written.load(Ordering::Relaxed)).filter(|count| *count > 0);
    let before = wait_for("there are writes", acknowledged).await;
    let file = backup(&cluster, "one.backup").await;
    wait_for("writes go on", async || (written.load(Ordering::Relaxed) > before + 20).then_some(())).await;
    ends.store(true, Ordering::Relaxed);
    writing.await.expect("every write is taken");
    let head: Value =
        serde_json::from_str(&done_offline(&["backup", "check", &file, "--json"])).expect("JSON");
    let kept = rows_of(&file);
    // The token has its own row.
    assert_eq!(head["rows"], kept.len() as u64 + 1);
    let ours: Vec<&String> = kept.iter().filter(|row| row.starts_with("doc \"w/")).collect();
    let consistent =
        (0..ours.len()).all(|number| ours[number].starts_with(&format!("doc \"w/{number:06}\"")));
    assert!(consistent && ours.len() as u64 >= before, "one state, and all that was acknowledged before");
    assert!(!fs::read_to_string(&file).expect("a backup").contains("\nrole "), "leases are nobody's data");

    let restored: Value =
        serde_json::from_str(&done(&cluster, 2, &["restore", &file, "--yes", "--json"]).await).expect("JSON");
    assert_eq!((&restored["other_cluster"], &restored["rows"]), (&json!(false), &head["rows"]));
    assert_eq!(rows_at(&cluster, cluster.leader().await).await, kept);
    cluster.equal_states(&[1, 2, 3]).await;
    let leader = cluster.leader().await;
    assert_eq!(restored["digest"], cluster.status_of(leader, "digest").await);
    let role = cluster.answer(1, Call::get("/v1/roles/r")).await.expect(200).json();
    assert_eq!(role["leader"]["instance_id"], "me", "{role}");
}

fn done_offline(words: &[&str]) -> String {
    let output = eldest(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn another_cluster_takes_it_if_it_is_empty_or_told_to() {
    let (one, other) = (Cluster::of(3).await, Cluster::of(1).await);
    furnish(&one).await;
    let file = backup(&one, "one.backup").await;
    let token = one.answer(1, Call::get("/v1/roles/r")).await.expect(200).json()["token"].as_u64();
    let said: Value =
        serde_json::from_str(&done(&other, 1, &["restore", &file, "--yes", "--json"]).await).expect("JSON");
    assert_eq!(said["other_cluster"], true);
    assert_eq!(rows_at(&other, 1).await, rows_of(&file));
    let role = other.answer(1, Call::get("/v1/roles/r")).await.expect(200).json();
    assert_eq!(role["leader"], Value::Null, "nobody there has been granted it");
    let acquire = Call::post("/v1/roles/r/acquire").json(&json!({"instance_id": "you"}));
    let granted = other.answer(1, acquire).await.expect(200).json();
    assert!(granted["token"].as_u64() > token, "{granted}");

    other.write_doc("own", 1).await;
    for flags in [&["--yes"][..], &["--other-cluster"]] {
        let refused = command(&other, 1, &[&["restore", &file], flags].concat()).await;
        let said = String::from_utf8_lossy(&refused.stderr).to_string();
        let (code, remedy) = if flags == ["--yes"] { (7, "--other-cluster") } else { (2, "--yes") };
        assert!(refused.status.code() == Some(code) && said.contains(remedy), "{refused:?}");
    }
    assert_eq!(other.read_doc(1, "own", "linear").await, Some(1));
    done(&other, 1, &["restore", &file, "--yes", "--other-cluster"]).await;
    assert_eq!(other.read_doc(1, "own", "linear").await, None);
}

/// P60: a client continues with a cluster that was restored from a lost one, and remembers revisions
/// and places of the lost one.
#[tokio::test]
async fn what_is_remembered_of_a_lost_cluster_names_nothing() {
    let lost = Cluster::of(1).await;
    for value in 0..40 {
        lost.write_doc("k", value).await;
    }
    let known = lost.answer(1, Call::get("/v1/docs/k")).await.expect(200);
    let (rev, place) = (known.header("etag").expect("a revision").to_string(), known.header("eldest-index"));
    let place = place.expect("an index").to_string();
    let file = backup(&lost, "lost.backup").await;
    let cluster = Cluster::of(3).await;
    done(&cluster, 1, &["restore", &file, "--yes"]).await;

    // The numbers that the lost cluster used may be used here again.
    let if_match = |rev: &str| Call::put("/v1/docs/k").header("if-match", rev).raw_json("99");
    for value in 100..140 {
        cluster.write_doc("k", value).await;
        let index = cluster.status_of(1, "last_index").await;
        let answer = cluster.answer(2, if_match(&format!("\"{index}\""))).await;
        problem(&answer, 412, "precondition_failed");
    }
    problem(&cluster.answer(1, if_match(&rev)).await, 412, "precondition_failed");
    for since in ["1", &place, "1000000"] {
        for id in 1..=3 {
            let answer = cluster.answer(id, Call::get(format!("/v1/feed?since={since}"))).await;
            problem(&answer, 410, "feed_compacted");
        }
    }
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(139));

    // The new revisions and places stay valid over restarts and snapshots, and in the cluster's own backup.
    let now = cluster.answer(1, Call::get("/v1/docs/k")).await.expect(200);
    let rev = now.header("etag").expect("a revision").to_string();
    assert!(rev.trim_matches('"').split_once('-').is_some_and(|(_, history)| history.len() == 8), "{rev}");
    for id in 1..=3 {
        cluster.kill9(id);
        cluster.start(id);
    }
    cluster.ready().await;
    let own = backup(&cluster, "own.backup").await;
    cluster.eventually(if_match(&rev)).await.expect(200);
    done(&cluster, cluster.leader().await, &["restore", &own, "--yes"]).await;
    let again = cluster.answer(1, Call::get("/v1/docs/k?level=linear")).await.expect(200);
    let history = |rev: &str| rev.trim_matches('"').split_once('-').map(|(_, history)| history.to_string());
    assert_eq!(history(again.header("etag").expect("a revision")), history(&rev));
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Another instance takes the role. Returns its token.
async fn elected(cluster: &Cluster, instance: &str) -> u64 {
    let elect = Call::post("/v1/roles/r/elect").json(&json!({"instance_id": instance}));
    let granted = cluster.eventually(elect).await.expect(200).json();
    granted["token"].as_u64().unwrap_or_else(|| panic!("a token: {granted}"))
}

/// P57, I6: only the operator knows which tokens were granted between the backup and the loss.
#[tokio::test]
async fn a_clock_behind_the_backup_is_refused_and_a_floor_is_kept() {
    let Some(clocks) = Clocks::new() else { return };
    let lost = Cluster::of(1).await;
    furnish(&lost).await;
    let before = elected(&lost, "before").await;
    let file = backup(&lost, "lost.backup").await;
    let greatest = elected(&lost, "after").await;
    (1..=3).for_each(|id| clocks.set(id, -HOUR_S));
    let cluster = Plan::new(3).launchers(clocks.launchers(3)).start().await;
    let leader = cluster.leader().await;
    let text = fs::read(&file).expect("a backup");
    let post = |query: &str| Call::post(format!("/v1/restore{query}")).body(&text);

    let index = cluster.status_of(leader, "last_index").await;
    let refused = problem(&cluster.answer(leader, post("")).await, 409, "rule_violated");
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert_eq!(refused["rule"], "token_ahead");
    assert!(detail.contains("is behind the backup's clock") && detail.contains("token_floor"), "{detail}");
    let refused = command(&cluster, leader, &["restore", &file, "--yes"]).await;
    let said = String::from_utf8_lossy(&refused.stderr).to_string();
    assert!(refused.status.code() == Some(7) && said.contains("--token-floor"), "{refused:?}");
    let too_small = (before - 1).to_string();
    for floor in ["0", "-1", "1.5", "7258118400000001", "9007199254740993", "", "x", &too_small] {
        let answer = cluster.answer(leader, post(&format!("?token_floor={floor}"))).await;
        assert_eq!(problem(&answer, 400, "bad_field")["field"], "token_floor", "{floor}");
    }
    let keyed = cluster.answer(leader, post("").header("idempotency-key", "k")).await;
    assert_eq!(problem(&keyed, 400, "bad_field")["field"], "Idempotency-Key");
    assert_eq!(cluster.status_of(leader, "last_index").await, index, "no record was written");

    // The floor is far from the token that the clock would give in this test.
    let floor = greatest + 10_000_000;
    done(&cluster, leader, &["restore", &file, "--yes", "--token-floor", &floor.to_string()]).await;
    assert_eq!(rows_at(&cluster, leader).await, rows_of(&file));
    let first = elected(&cluster, "first").await;
    assert!(first > floor, "{first} is given, and no more than {floor} was known");
    // The cluster knows its own grants, even where its clock is behind them.
    let own = backup(&cluster, "own.backup").await;
    done(&cluster, leader, &["restore", &own, "--yes"]).await;
    cluster.kill9(leader);
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    let second = elected(&cluster, "second").await;
    assert!(second > first, "{second} is given after {first}");
    cluster.start(leader);
    cluster.is_ready(leader).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn what_is_no_file_is_written_to_and_stays_what_it_is() {
    let cluster = Cluster::of(1).await;
    furnish(&cluster).await;
    let file = backup(&cluster, "one.backup").await;
    let path = |name: &str| cluster.folder().join(name);
    let (link, linked, pipe) = (path("link"), path("linked"), path("pipe"));
    fs::write(&linked, "old, and longer than nothing").expect("a file");
    std::os::unix::fs::symlink(&linked, &link).expect("a link");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());

    done(&cluster, 1, &["backup", "--out", &link.display().to_string()]).await;
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(rows_of(&linked.display().to_string()), rows_of(&file));

    // It ends by itself if nothing is ever written.
    let mut reader = std::process::Command::new("timeout");
    let reader = reader.args(["600", "cat"]).arg(&pipe).stdout(std::process::Stdio::piped());
    let reader = reader.spawn().expect("timeout and cat");
    done(&cluster, 1, &["backup", "--out", &pipe.display().to_string()]).await;
    let read = reader.wait_with_output().expect("it ends").stdout;
    assert_eq!(rows(&String::from_utf8(read).expect("text")), rows_of(&file));
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(
        &fs::symlink_metadata(&pipe).expect("it is there").file_type()
    ));

    let said = done(&cluster, 1, &["backup", "--out", "/proc/self/fd/1"]).await;
    assert_eq!(rows(&said), rows_of(&file));
    let log = path("log");
    fs::write(&log, "before\n").expect("a file");
    let append = fs::OpenOptions::new().append(true).open(&log).expect("a file");
    let url = cluster.node(1).url();
    let appended = bounded().args(["backup", "--out", "/dev/stdout", "--url", &url]).stdout(append).status();
    assert!(appended.expect("the binary runs").success());
    assert!(fs::read_to_string(&log).expect("text").starts_with("before\neldest-backup "), "it was emptied");

    // The old content stays if there is no backup to put in its place.
    let words = ["backup", "--out", &link.display().to_string(), "--url", "http://127.0.0.1:1"];
    assert!(!eldest(&words).status.success());
    assert_eq!(rows_of(&linked.display().to_string()), rows_of(&file));
    let full = path("full");
    std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
    let refused = command(&cluster, 1, &["backup", "--out", &full.display().to_string()]).await;
    assert!(!refused.status.success(), "a device that is full takes nothing");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("No space left"), "{refused:?}");
    assert!(fs::symlink_metadata(&full).expect("it is there").is_symlink());
}

/// A document of a few hundred parts.
async fn large(cluster: &Cluster) -> String {
    let value = "v".repeat(64 << 10);
    let docs = (0..1_000).map(|number| json!({"key": format!("new/{number:04}"), "value": value}));
    let document = json!({"docs": docs.collect::<Vec<_>>()});
    let leader = cluster.leader().await;
    cluster.answer(leader, Call::post("/override_all_data").json(&document).timeout(LONG)).await.expect(200);
    backup(cluster, "large.backup").await
}

#[tokio::test]
async fn the_leader_dies_in_the_middle() {
    let cluster = Arc::new(Cluster::of(3).await);
    let file = large(&cluster).await;
    let new = rows_of(&file);
    let leader = cluster.leader().await;
    cluster.answer(leader, Call::post("/override_all_data").json(&json!({"docs": []}))).await.expect(200);
    cluster.write_doc("old", 1).await;
    let before = cluster.status_of(leader, "last_index").await.as_u64().expect("an index");
    let words =
        ["restore", &file, "--yes", "--url", &cluster.node(leader).url()].map(str::to_string).to_vec();
    let restoring = tokio::spawn(run(words));
    wait_for("parts of it are in the log", async || {
        (cluster.status_of(leader, "last_index").await.as_u64()? >= before + 3).then_some(())
    })
    .await;
    cluster.kill9(leader);
    let told = restoring.await.expect("it ends");
    let next = cluster.leader().await;
    let there = rows_at(&cluster, next).await;
    let old = there.len() == 1 && there[0].starts_with("doc \"old\"");
    assert!(there == new || old, "all of it or nothing: {} rows", there.len());
    assert!(there == new || !told.status.success(), "acknowledged, and not in place");
    cluster.start(leader);
    cluster.is_ready(leader).await;
    done(&cluster, leader, &["restore", &file, "--yes"]).await;
    assert_eq!(rows_at(&cluster, cluster.leader().await).await, new);
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn what_is_damaged_is_refused_and_nothing_changes() {
    let cluster = Cluster::of(1).await;
    furnish(&cluster).await;
    let file = backup(&cluster, "whole.backup").await;
    let whole = fs::read(&file).expect("a backup");
    let index = cluster.status_of(1, "last_index").await;
    let mut rng = Rng::new(7);
    let cuts = (0..60).map(|_| rng.below(whole.len() as u64) as usize).chain([0, 1, whole.len() - 1]);
    let mut damaged: Vec<Vec<u8>> = cuts.map(|length| whole[..length].to_vec()).collect();
    for _ in 0..100 {
        let mut changed = whole.clone();
        changed[rng.below(whole.len() as u64) as usize] ^= 1 << rng.below(8);
        damaged.push(changed);
    }
    damaged.push([&whole[..], b"x"].concat());
    damaged.push([&whole[..], &whole[..]].concat());
    for body in damaged {
        let answer = cluster.answer(1, Call::post("/v1/restore").body(&body)).await;
        let said = problem(&answer, 400, "bad_field");
        assert_eq!(said["field"], "body", "{said}");
    }
    fs::write(&file, &whole[..whole.len() / 2]).expect("a file");
    for words in [&["backup", "check", &file][..], &["restore", &file, "--yes"], &["restore", &file]] {
        assert_eq!(eldest(words).status.code(), Some(5), "{words:?}");
    }
    problem(
        &cluster.answer(1, Call::post("/v1/restore").raw_json("{}")).await,
        415,
        "unsupported_media_type",
    );
    let odd = Call::post("/v1/restore?other_cluster=maybe").body(&whole);
    problem(&cluster.answer(1, odd).await, 400, "bad_field");
    assert_eq!(cluster.status_of(1, "last_index").await, index, "no record was written");
    cluster.answer(1, Call::post("/v1/restore").body(&whole)).await.expect(200);
}

/// A follower that is asked for the leader's state names the leader; a file gets its name only
/// when all of it is there.
#[tokio::test]
async fn levels_and_names() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    problem(&cluster.answer(follower, Call::get("/v1/backup?level=linear")).await, 421, "not_leader");
    problem(
        &cluster.answer(follower, Call::post("/v1/restore").body("eldest-backup 1 {}\n")).await,
        421,
        "not_leader",
    );
    cluster.equal_states(&[1, 2, 3]).await;
    let one = given(&cluster, leader, "/v1/backup").await;
    assert_eq!(one.header("content-type"), Some("text/plain; charset=utf-8"));
    let without_head = |text: String| text.split_once('\n').map(|(_, rest)| rest.to_string()).expect("lines");
    let other = given(&cluster, follower, "/v1/backup").await;
    // The checksum covers the head, and the head names the node that wrote it.
    let rows = |text: String| {
        without_head(text)
            .lines()
            .filter(|line| !line.starts_with("end "))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(one.text()), rows(other.text()), "the same state is the same text");
    let nowhere = cluster.folder().join("nowhere.backup").display().to_string();
    let failed = eldest(&["backup", "--out", &nowhere, "--url", "http://127.0.0.1:1"]);
    assert_eq!(failed.status.code(), Some(3));
    assert!(!Path::new(&nowhere).exists());
    let left = fs::read_dir(cluster.folder()).expect("a folder").flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().contains("draft")));
}

#[tokio::test]
async fn a_slow_reader_holds_nobody_up() {
    // The node waits for the slow reader for longer than the calls below take.
    let cluster = Plan::new(1).config("limits.answer_timeout_ms = 15000\n").start().await;
    let value = "v".repeat(256 << 10);
    for number in 0..120 {
        let put = Call::put(format!("/v1/docs/d/{number}")).raw_json(&format!("\"{value}\""));
        cluster.answer(1, put).await.expect(201);
    }
    let mut slow = Raw::connect(cluster.node(1)).await;
    slow.send(b"GET /v1/backup HTTP/1.1\r\nhost: node-1\r\n\r\n").await;
    assert_eq!(slow.read_line().await, "HTTP/1.1 200 OK", "it is being written");
    let busy = cluster.answer(1, Call::get("/v1/backup").timeout(LONG)).await;
    assert_eq!(problem(&busy, 429, "too_many_requests")["bound"], "calls of /v1/backup at a time");
    cluster.write_doc("meanwhile", 1).await;
    wait_for("the slow reader is given up", async || {
        let answer = cluster.answer(1, Call::get("/v1/backup").timeout(LONG)).await;
        (answer.status == 200).then_some(())
    })
    .await;
    drop(slow);
}

/// As many documents as a debug build takes within a minute; `scripts/bench-restore` writes a million.
#[tokio::test]
async fn very_many_documents() {
    const DOCS: usize = 200_000;
    let (one, other) = (Arc::new(Cluster::of(1).await), Cluster::of(1).await);
    for from in (0..DOCS).step_by(50_000) {
        let line = |number: usize| {
            let payload = json!({"key": format!("many/{number:07}"), "value": {"n": number}});
            format!("{}\n", json!({"storage_cmd": "PutDoc", "payload": payload}))
        };
        let body: String = (from..from + 50_000).map(line).collect();
        let call = Call::post("/v1/commands").header("content-type", "application/x-ndjson").body(body);
        one.answer(1, call.timeout(LONG)).await.expect(200);
    }
    let (ends, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writing = write_on(&one, &ends, &written);
    let file = backup(&one, "many.backup").await;
    wait_for("a write is taken beside it", async || (written.load(Ordering::Relaxed) > 0).then_some(()))
        .await;
    ends.store(true, Ordering::Relaxed);
    writing.await.expect("every write is taken");
    done(&other, 1, &["restore", &file, "--yes"]).await;
    let kept = rows_of(&file);
    assert!(kept.len() >= DOCS && kept == rows_at(&other, 1).await, "{} rows", kept.len());
}
