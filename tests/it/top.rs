//! `eldest top` where its output is no terminal.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::harness::{Call, Cluster, eldest, watch_for};
use crate::roles::{acquire, grant};

/// It only makes a test fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that looks five times a second until it is dropped.
struct Top {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Top {
    fn start(cluster: &Cluster) -> Top {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
        command.args(["top", "--every", "200ms", "--url", &cluster.urls().join(",")]).kill_on_drop(true);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Top { _process: process, lines }
    }

    /// Reads until a line contains this.
    async fn shows(&mut self, wanted: &str) {
        let mut last = String::new();
        let reading = async {
            while let Some(line) = self.lines.next_line().await.expect("text") {
                if line.contains(wanted) {
                    return true;
                }
                last = line;
            }
            false
        };
        let shown = tokio::time::timeout(PATIENCE, reading).await;
        assert_eq!(shown, Ok(true), "it does not show {wanted}, but {last:?}");
    }
}

#[tokio::test]
async fn nodes_rates_roles_and_events_are_shown_again_and_again() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    grant(cluster.answer(leader, acquire("billing", "worker-1", json!({}))).await);
    let mut top = Top::start(&cluster);
    top.shows(&format!("node-{leader} leads")).await;
    top.shows("billing  worker-1").await;
    // It shows rates from the second look on, and reads the feed by then.
    top.shows("records 0/s").await;
    let next = cluster.others(leader)[0];
    let order = Call::post("/elect").json(&json!({"node_idx": next}));
    cluster.answer(leader, order).await.expect(200);
    top.shows(&format!("node-{next} leads")).await;
    cluster.kill9(leader);
    top.shows("2 of 3 nodes answered").await;
}

#[tokio::test]
async fn one_block_has_the_rates_although_a_node_is_frozen() {
    let cluster = Cluster::of(3).await;
    let frozen = cluster.others(cluster.leader().await)[0];
    cluster.stop(frozen);
    watch_for("one block with the rates", async || {
        let output = eldest(&["top", "--once", "--every", "200ms", "--url", &cluster.urls().join(",")]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(text);
        }
        // A block without a headline says that no node has answered in time.
        assert!(text.matches("cluster ").count() <= 1, "{text}");
        assert!(!text.contains('\u{1b}'), "a block that stays: {text}");
        // On a slow machine another node may answer late, or the leader may change between the two looks.
        let has_rates = text.contains("2 of 3 nodes answered") && text.contains("records 0/s");
        if has_rates { Ok(()) } else { Err(text) }
    })
    .await;
}
