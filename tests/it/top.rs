//! `eldest top` where its output is no terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::{Call, Cluster};
use crate::roles::{acquire, grant};

/// One that looks five times a second until it is dropped.
struct Top(Child);

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn nodes_rates_roles_and_events_are_shown_again_and_again() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    grant(cluster.answer(leader, acquire("billing", "worker-1", json!({}))).await);
    let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
    command.args(["top", "--every", "200ms", "--url", &cluster.urls().join(",")]);
    let mut top = Top(command.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    let mut lines =
        BufReader::new(top.0.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let mut shows =
        |wanted: &str| assert!(lines.any(|line| line.contains(wanted)), "it ends before it shows {wanted}");
    shows(&format!("node-{leader} leads"));
    shows("billing  worker-1");
    // It shows rates from the second look on, and by then it reads the feed, too.
    shows("records 0/s");
    let next = cluster.others(leader)[0];
    let order = Call::post("/elect").json(&json!({"node_idx": next}));
    cluster.answer(leader, order).await.expect(200);
    shows(&format!("node-{next} leads"));
    cluster.kill9(leader);
    shows("2 of 3 answer");
}
