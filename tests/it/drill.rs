//! `eldest drill` on real nodes: by commands, by hand, broken off.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Plan};

const SHORT: &str = "300ms";

/// One that runs.
struct Drill(Child);

impl Drill {
    fn start(cluster: &Cluster, words: &[&str]) -> Drill {
        Drill::start_slowly(cluster, words, SHORT)
    }

    fn start_slowly(cluster: &Cluster, words: &[&str], settle: &str) -> Drill {
        // Whoever runs this test may have been told by `nohup` to ignore SIGHUP, and what is ignored is inherited.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_eldest"), "drill"])
            .args(words)
            .args(["--yes", "--json", "--settle", settle]);
        command.args(["--url", &cluster.urls().join(",")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Drill(command.spawn().expect("the binary runs"))
    }

    /// Until it says so on stderr, whose rest is for later.
    fn says(&mut self, wanted: &str) {
        let stderr = self.0.stderr.as_mut().expect("piped");
        let mut line = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&line).contains(wanted) {
            assert_eq!(
                stderr.read(&mut byte).expect("readable"),
                1,
                "{wanted}: {}",
                String::from_utf8_lossy(&line)
            );
            line.push(byte[0]);
        }
    }

    /// Its code and its report.
    fn ends(mut self) -> (Option<i32>, Value, String) {
        let (mut out, mut err) = (String::new(), String::new());
        // The report is one short line: it fits into the pipe.
        let mut stderr = BufReader::new(self.0.stderr.take().expect("piped"));
        while stderr.read_line(&mut err).expect("text") > 0 {}
        self.0.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        let code = self.0.wait().expect("it ends").code();
        (code, serde_json::from_str(&out).unwrap_or_default(), err)
    }
}

fn is_well((code, report, err): &(Option<i32>, Value, String), kind: &str, node: u32) {
    assert_eq!((*code, &report["wrong"]), (Some(0), &json!([])), "{report}{err}");
    assert_eq!((&report["drill"], &report["node"]["id"]), (&json!(kind), &json!(node)), "{report}");
    let writes = &report["writes"];
    assert!(writes["acknowledged"].as_u64() > Some(0) && writes["lost"] == 0, "{report}");
    assert_eq!(report["writes_at_the_node"]["lost"], 0, "{report}");
    assert!(report["changes"][0]["leaderless_ms"].is_u64(), "{report}");
    assert_ne!(report["changes"][0]["leader"], report["node"]["name"], "{report}");
}

/// What it wrote is gone.
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
    let ended = Drill::start(&cluster, &["handover"]).ends();
    is_well(&ended, "handover", leader);
    assert_ne!(cluster.leader().await, leader);
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_leader_that_is_frozen_by_a_command() {
    let cluster = Cluster::brisk(3).await;
    let leader = cluster.leader().await;
    let pid = cluster.node(leader).pid().expect("it runs");
    let (stop, go_on) = (format!("echo $ELDEST_NODE_NAME; kill -STOP {pid}"), format!("kill -CONT {pid}"));
    let ended = Drill::start(&cluster, &["freeze", "--break", &stop, "--mend", &go_on]).ends();
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
    drill.says("end it now");
    cluster.kill9(leader);
    drill.says("start it again");
    cluster.start(leader);
    is_well(&drill.ends(), "failover", leader);
    is_clean(&cluster).await;
}

#[tokio::test]
async fn nobody_takes_it_away() {
    let cluster = Cluster::of(3).await;
    let (code, report, err) = Drill::start(&cluster, &["failover", "--within", "1s"]).ends();
    assert_eq!(code, Some(12), "{report}{err}");
    assert_eq!(report["wrong"], json!(["no other node led and took writes in time"]), "{report}");
    is_clean(&cluster).await;
}

#[tokio::test]
async fn what_it_broke_is_mended_when_it_is_broken_off() {
    let cluster = Cluster::brisk(3).await;
    for (signal, expected) in [(Signal::INT, 130), (Signal::HUP, 129)] {
        let leader = cluster.leader().await;
        let pid = cluster.node(leader).pid().expect("it runs");
        let (stop, go_on) = (format!("kill -STOP {pid}"), format!("kill -CONT {pid}"));
        let mut drill = Drill::start_slowly(&cluster, &["freeze", "--break", &stop, "--mend", &go_on], "2s");
        drill.says("kill -STOP");
        kill_process(Pid::from_child(&drill.0), signal).expect("it runs");
        let (code, _, err) = drill.ends();
        assert_eq!(code, Some(expected), "{err}");
        assert!(err.contains("broken off"), "{err}");
        cluster.is_ready(leader).await;
        is_clean(&cluster).await;
    }
}

#[tokio::test]
async fn another_has_come_to_lead_before_anything_is_broken() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let mut drill = Drill::start_slowly(&cluster, &["failover", "--break", "false"], "3s");
    drill.says("are under way");
    let next = cluster.others(leader)[0];
    cluster.answer(leader, Call::post("/elect").json(&json!({ "node_idx": next }))).await.expect(200);
    let (code, _, err) = drill.ends();
    assert_eq!(code, Some(9), "{err}");
    assert!(err.contains(&format!("node-{next} has come to lead meanwhile")), "{err}");
    is_clean(&cluster).await;
}

#[tokio::test]
async fn a_cluster_that_needs_its_leader() {
    let cluster = Plan::new(3).start().await;
    let leader = cluster.leader().await;
    cluster.kill9(cluster.others(leader)[0]);
    let (code, _, err) = Drill::start(&cluster, &["failover"]).ends();
    assert_eq!(code, Some(9), "{err}");
    assert!(err.contains("1 of 3 nodes would be left"), "{err}");
    let (code, _, err) = Drill::start(&cluster, &["handover", "--break", "true"]).ends();
    assert_eq!(code, Some(2), "{err}");
}
