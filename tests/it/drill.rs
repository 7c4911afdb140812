//! `eldest drill` on real nodes: by commands, by hand, and interrupted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{Call, Cluster, Plan, SmallDisk, watch_for};
use crate::roles::{acquire, grant};
use crate::wall_clock::{Clocks, HOUR_S};

const SHORT: &str = "300ms";

/// A drill may take a minute for each step before it gives up by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(300);

/// A running drill. Its output goes to files, so that no read can block.
struct Drill {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    /// Its folder for temporary files.
    temp: PathBuf,
    /// The number of bytes of stderr that were read.
    heard: usize,
}

impl Drop for Drill {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drill {
    fn start(cluster: &Cluster, words: &[&str]) -> Drill {
        Drill::start_slowly(cluster, words, SHORT)
    }

    fn start_slowly(cluster: &Cluster, words: &[&str], settle: &str) -> Drill {
        let temp = cluster.folder().join("temp");
        fs::create_dir_all(&temp).expect("a folder");
        Drill::start_in(cluster, words, settle, temp)
    }

    fn start_in(cluster: &Cluster, words: &[&str], settle: &str, temp: PathBuf) -> Drill {
        // This test may run under `nohup`, which ignores SIGHUP, and an ignored signal is inherited.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_eldest"), "drill"])
            .args(words)
            .args(["--yes", "--json", "--settle", settle]);
        command.args(["--url", &cluster.urls().join(",")]);
        let path = |name: &str| cluster.folder().join(format!("drill.{name}"));
        let (out, err) = (path("out"), path("err"));
        let file = |path: &PathBuf| File::create(path).expect("a file");
        command.env("TMPDIR", &temp);
        command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err));
        Drill { child: command.spawn().expect("the binary runs"), out, err, temp, heard: 0 }
    }

    /// Waits until the drill prints this to stderr, after the part that was already read.
    async fn says(&mut self, wanted: &str) {
        let Drill { child, err, heard, .. } = self;
        *heard = watch_for(wanted, async || {
            let has_ended = child.try_wait().expect("our own child").is_some();
            let said = fs::read_to_string(&*err).expect("text");
            match said[*heard..].find(wanted) {
                Some(at) => Ok(*heard + at + wanted.len()),
                None => {
                    assert!(!has_ended, "{wanted}: {said}");
                    Err(said)
                }
            }
        })
        .await;
    }

    /// Its exit code, its report and its stderr.
    async fn ends(mut self) -> (Option<i32>, Value, String) {
        let ending = async {
            loop {
                if let Some(status) = self.child.try_wait().expect("our own child") {
                    return status;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let status = timeout(ENDS_WITHIN, ending).await.expect("it ends");
        let read = |path: &PathBuf| fs::read_to_string(path).expect("text");
        let (out, err) = (read(&self.out), read(&self.err));
        leaves_nothing(&self.temp, &err);
        (status.code(), serde_json::from_str(&out).unwrap_or_default(), err)
    }
}

/// Neither a scratch folder nor a process that runs in one is left.
fn leaves_nothing(temp: &Path, err: &str) {
    let entries = fs::read_dir(temp).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_scratch = |path: &PathBuf| path.to_string_lossy().contains("/eldest-drill-");
    let left: Vec<PathBuf> = entries.filter(is_scratch).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "{err}");
    let temp = fs::canonicalize(temp).expect("a folder");
    // The link of a process in a removed folder still begins with the path of that folder.
    let processes = fs::read_dir("/proc").expect("/proc");
    let folders = processes.filter_map(|entry| fs::read_link(entry.ok()?.path().join("cwd")).ok());
    let inside: Vec<PathBuf> = folders.filter(|folder| folder.starts_with(&temp)).collect();
    assert_eq!(inside, Vec::<PathBuf>::new(), "{err}");
}

fn is_well((code, report, err): &(Option<i32>, Value, String), kind: &str, node: u32) {
    assert_eq!((*code, &report["wrong"]), (Some(0), &json!([])), "{report}{err}");
    assert_eq!((&report["drill"], &report["node"]["id"]), (&json!(kind), &json!(node)), "{report}");
    let writes = &report["writes"];
    assert!(writes["acknowledged"].as_u64() > Some(0) && writes["lost"] == 0, "{report}");
    assert_eq!(
        (&report["writes_at_the_node"]["lost"], &report["led_at_once"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
    assert!(report["changes"][0]["leaderless_ms"].is_u64(), "{report}");
    assert_ne!(report["changes"][0]["leader"], report["node"]["name"], "{report}");
}

/// Everything that the drill wrote is gone.
async fn is_clean(cluster: &Cluster) {
    let leader = cluster.leader().await;
    let docs = cluster.answer(leader, Call::get("/v1/docs?prefix=drill/")).await.expect(200);
    assert_eq!(docs.json()["items"], json!([]));
    let roles = cluster.answer(leader, Call::get("/v1/roles")).await.expect(200);
    assert_eq!(roles.json()["items"], json!([]));
}

#[tokio::test]
async fn a_handover() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let ended = Drill::start(&cluster, &["handover"]).ends().await;
    is_well(&ended, "handover", leader);
    assert_ne!(cluster.leader().await, leader);
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_leader_that_is_frozen_by_a_command() {
    // In a calm cluster the frozen node is certain to be the leader. Its silence is
    // noticed after ten seconds.
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let pid = cluster.node(leader).pid().expect("it runs");
    let (stop, go_on) = (format!("echo $ELDEST_NODE_NAME; kill -STOP {pid}"), format!("kill -CONT {pid}"));
    let ended = Drill::start(&cluster, &["freeze", "--break", &stop, "--mend", &go_on]).ends().await;
    is_well(&ended, "freeze", leader);
    assert!(
        ended.2.contains(&format!("\nnode-{leader}\n")),
        "the command knows whom it is about: {}",
        ended.2
    );
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_leader_that_somebody_kills() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let mut drill = Drill::start(&cluster, &["failover"]);
    drill.says("end it now").await;
    cluster.kill9(leader);
    drill.says("start it again").await;
    cluster.start(leader);
    is_well(&drill.ends().await, "failover", leader);
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_backup_that_is_restored_elsewhere() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("ours", 7).await;
    let leader = cluster.leader().await;
    let file = cluster.folder().join("restore.json");
    let file = file.to_str().expect("text");
    let (code, report, err) = Drill::start(&cluster, &["restore", "--report", file]).ends().await;
    assert_eq!((code, &report["wrong"]), (Some(0), &json!([])), "{report}{err}");
    let compared = &report["compared"];
    assert_eq!((&compared["same"], &compared["differ"]), (&json!(2), &json!(0)), "{report}");
    let kept: Value = serde_json::from_str(&fs::read_to_string(file).expect("the report")).expect("JSON");
    assert_eq!(kept, report);
    assert_eq!(cluster.leader().await, leader, "nothing was taken away");
    let ours = cluster.answer(leader, Call::get("/v1/docs/ours")).await.expect(200);
    assert_eq!(ours.json(), json!(7));
    is_clean(&cluster).await;
    // A report never replaces a file, and nothing is done if it cannot be written.
    let (code, _, err) = Drill::start(&cluster, &["restore", "--report", file]).ends().await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("exists") && !err.contains("the backup has"), "{err}");
}

#[tokio::test]
async fn a_restore_that_is_broken_off_leaves_nothing() {
    let cluster = Cluster::of(1).await;
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut drill = Drill::start(&cluster, &["restore"]);
        drill.says("starting a node in ").await;
        // It is signalled while the node starts, or a moment later.
        let _ = kill_process(Pid::from_child(&drill.child), signal);
        let (code, _, err) = drill.ends().await;
        assert!(code == Some(expected) || code == Some(0), "{code:?} {err}");
        let folder = err.split("starting a node in ").nth(1).and_then(|rest| rest.lines().next());
        let folder = folder.expect("the folder is named");
        assert!(!Path::new(folder).exists(), "{folder}");
        is_clean(&cluster).await;
    }
}

#[tokio::test]
async fn a_restore_in_available_mode() {
    let config =
        "mode = \"available\"\ncluster_secret = \"the secret of these tests, long enough to pass\"\n";
    let cluster = Plan::new(1).config(config).start().await;
    cluster.write_doc("ours", 7).await;
    let (code, report, err) = Drill::start(&cluster, &["restore"]).ends().await;
    assert_eq!(
        (code, &report["wrong"], &report["mode"]),
        (Some(0), &json!([]), &json!("available")),
        "{err}"
    );
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_cluster_whose_clock_is_ahead() {
    let Some(clocks) = Clocks::new() else { return };
    clocks.set(1, HOUR_S);
    let cluster = Plan::new(1).launchers(clocks.launchers(1)).start().await;
    // The token of this grant is later than every clock of the scratch node.
    grant(cluster.answer(1, acquire("ahead", "me", json!({}))).await);
    let (code, report, err) = Drill::start(&cluster, &["restore"]).ends().await;
    assert_eq!((code, &report["wrong"]), (Some(0), &json!([])), "{report}{err}");
}

#[tokio::test]
async fn a_caller_that_may_not_write() {
    let config = "admin_token = \"admin-token-of-the-tests-0123456789\"\nanonymous = \"read *\"\n";
    let cluster = Plan::new(1).config(config).start().await;
    let (code, _, err) = Drill::start(&cluster, &["restore"]).ends().await;
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("\"unauthorized\"") && !err.contains("could not be removed"), "{err}");
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_disk_without_room() {
    let cluster = Cluster::of(1).await;
    let Some(disk) = SmallDisk::mount(&cluster.folder().join("small"), 1) else { return };
    // The first backup fits, and three more of its size do not.
    let large = Call::put("/v1/docs/large").json(&json!("x".repeat(400 << 10)));
    cluster.answer(cluster.leader().await, large).await.expect(201);
    let (code, _, err) = Drill::start_in(&cluster, &["restore"], SHORT, disk.path()).ends().await;
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("set TMPDIR to a folder with more room") && !err.contains("starting a node"),
        "{err}"
    );
    is_clean(&cluster).await;
    // A report that cannot be kept is shown all the same.
    disk.fill();
    let file = disk.path().join("restore.json");
    let words = ["restore", "--report", file.to_str().expect("text")];
    let (code, report, err) = Drill::start(&cluster, &words).ends().await;
    assert_eq!((code, &report["wrong"]), (Some(1), &json!([])), "{err}");
    assert!(err.contains("restore.json: ") && !file.exists(), "{err}");
}

#[tokio::test]
async fn nobody_takes_it_away() {
    let cluster = Cluster::of(3).await;
    let (code, report, err) = Drill::start(&cluster, &["failover", "--within", "5s"]).ends().await;
    assert_eq!(code, Some(12), "{report}{err}");
    assert_eq!(report["wrong"], json!(["no other node led and accepted writes in time"]), "{report}");
    is_clean(&cluster).await;
}

#[tokio::test]
async fn what_it_broke_is_mended_when_it_is_broken_off() {
    let cluster = Cluster::of(3).await;
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let leader = cluster.leader().await;
        let pid = cluster.node(leader).pid().expect("it runs");
        let (stop, go_on) = (format!("kill -STOP {pid}"), format!("kill -CONT {pid}"));
        let mut drill = Drill::start_slowly(&cluster, &["freeze", "--break", &stop, "--mend", &go_on], "2s");
        drill.says("kill -STOP").await;
        kill_process(Pid::from_child(&drill.child), signal).expect("it runs");
        let (code, _, err) = drill.ends().await;
        assert_eq!(code, Some(expected), "{err}");
        assert!(err.contains("interrupted"), "{err}");
        cluster.is_ready(leader).await;
        is_clean(&cluster).await;
    }
}

#[tokio::test]
async fn another_has_come_to_lead_before_anything_is_broken() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    // The drill waits this long: by then the other node leads, and the drill has noticed.
    let mut drill = Drill::start_slowly(&cluster, &["failover", "--break", "false"], "10s");
    drill.says("are running").await;
    let next = cluster.others(leader)[0];
    cluster.answer(leader, Call::post("/elect").json(&json!({ "node_idx": next }))).await.expect(200);
    let (code, _, err) = drill.ends().await;
    assert_eq!(code, Some(9), "{err}");
    assert!(err.contains(&format!("node-{next} has become leader in the meantime")), "{err}");
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_cluster_that_needs_its_leader() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let dead = cluster.others(leader)[0];
    cluster.kill9(dead);
    cluster.sees(leader, dead, false).await;
    let (code, _, err) = Drill::start(&cluster, &["failover"]).ends().await;
    assert_eq!(code, Some(9), "{err}");
    assert!(err.contains("only 1 of 3 nodes would answer"), "{err}");
    let (code, _, err) = Drill::start(&cluster, &["handover", "--break", "true"]).ends().await;
    assert_eq!(code, Some(2), "{err}");
}
