//! `eldest role` and `eldest proc` as a shell runs them.

use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{Asks, grant, role, role_events, until};
use crate::harness::Cluster;

fn eldest(cluster: &Cluster, words: &str) -> Command {
    let urls: Vec<String> = cluster.ids().map(|id| cluster.node(id).url()).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
    command.args(words.split(' ')).env("ELDEST_URL", urls.join(",")).kill_on_drop(true);
    command
}

async fn run(cluster: &Cluster, words: &str) -> (Output, String) {
    let output = eldest(cluster, words).output().await.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
    (output, said)
}

struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    token: u64,
}

impl Holder {
    /// Returns once it says that it has the role.
    async fn start(cluster: &Cluster, words: &str) -> Holder {
        let mut child = eldest(cluster, words).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = lines.next_line().await.expect("text").expect("it holds");
        let (_, token) = line.rsplit_once(' ').expect("a token at the end");
        let token = token.parse().expect("a number");
        Holder { child, lines, token }
    }

    fn interrupt(&self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32)).expect("it runs");
        kill_process(pid, Signal::INT).expect("our own process takes signals");
    }

    async fn ends_with(mut self, code: i32) -> Option<String> {
        let last = self.lines.next_line().await.expect("text");
        assert_eq!(self.child.wait().await.expect("an end").code(), Some(code), "{last:?}");
        last
    }
}

#[tokio::test]
async fn a_shell_holds_a_role_over_the_death_of_its_node() {
    let cluster = Cluster::of(3).await;
    let holder = Holder::start(&cluster, "role hold r shell --ttl 10s").await;
    // The node that it has asked until now, which leads as well.
    cluster.kill9(1);
    let witness = cluster.leader().await;
    let mut events = role_events(&cluster, witness, "").await;
    let asks = Asks { cluster: &cluster, node: witness };
    // As long as the shell's ttl, and as long again: a new leader counts anew.
    for round in 0..2 {
        let other = format!("s{round}");
        grant(asks.acquire(&other, "silent", json!({"ttl_ms": 10_000})).await);
        let told = until(&mut events, "role_lost", "silent").await;
        assert!(told.iter().all(|event| event["role"] != "r"), "{told:?}");
    }
    assert_eq!(role(&cluster, witness, "r").await["token"], json!(holder.token));
    holder.interrupt();
    let lost = until(&mut events, "role_lost", "shell").await;
    assert_eq!(lost.last().expect("the loss")["reason"], "released");
    assert_eq!(holder.ends_with(0).await.as_deref(), Some("r is free"));
}

#[tokio::test]
async fn a_shell_that_loses_its_role_ends() {
    let cluster = Cluster::of(3).await;
    let first = Holder::start(&cluster, "role hold r one --ttl 2s").await;
    let second = tokio::spawn({
        let mut command = eldest(&cluster, "role acquire r two --wait 20s --json");
        async move { command.output().await }
    });
    crate::harness::wait_for("the second waits", async || {
        (role(&cluster, 1, "r").await["waiting"] == 1).then_some(())
    })
    .await;
    first.interrupt();
    let second: Value =
        serde_json::from_slice(&second.await.expect("no panic").expect("the binary runs").stdout)
            .expect("JSON");
    assert_eq!((&second["outcome"], &second["leader"]["instance_id"]), (&json!("elected"), &json!("two")));
    first.ends_with(0).await;
    let token = second["token"].as_u64().expect("a token");
    let (valid, said) = run(&cluster, &format!("role check r {token}")).await;
    assert_eq!((valid.status.code(), said.as_str()), (Some(0), "valid"));
    run(&cluster, &format!("role release r two {token}")).await;

    let holder = Holder::start(&cluster, "role hold r three --ttl 2s").await;
    assert_eq!(run(&cluster, &format!("role check r {token}")).await.0.status.code(), Some(7));
    assert_eq!(run(&cluster, "role acquire r four").await.0.status.code(), Some(7));
    let (_, said) = run(&cluster, "role elect r four").await;
    assert!(said.starts_with("elected: four has r with the token "), "{said}");
    holder.ends_with(7).await;
    let (_, shown) = run(&cluster, "role list").await;
    assert!(shown.lines().nth(1).is_some_and(|row| row.starts_with("r     four")), "{shown}");
}

#[tokio::test]
async fn documents_and_processes_from_a_shell() {
    let cluster = Cluster::of(1).await;
    let words = [
        ("doc put k 1.50 --if-absent", 0, "\"created\":true"),
        ("doc put k 2 --if-absent", 8, ""),
        ("doc put k 2 --if-rev 999", 8, ""),
        ("doc put k {", 2, ""),
        ("doc get k", 0, "1.50"),
        ("doc get k --rev", 0, "\"key\":\"k\""),
        ("doc get kk --rev", 6, ""),
        ("doc list --prefix k", 0, "KEY  REV"),
        ("doc delete k --if-rev 999", 8, ""),
        ("doc delete k", 0, "\"key\":\"k\""),
        ("doc delete k", 6, ""),
        ("proc register w/7 renderer --role slave --capabilities [\"a\"]", 0, "worker:slave:w/7"),
        ("proc register w8 renderer --metadata {", 2, ""),
        ("proc heartbeat w/7", 0, "w/7 is there"),
        ("proc heartbeat w8", 6, ""),
        ("proc list --capability a --json", 0, "\"id\":\"w/7\""),
        ("proc list --capability b", 0, "no processes"),
        ("proc show w/7", 0, "renderer"),
        ("proc remove w/7", 0, "w/7 is removed"),
        ("proc show w/7", 6, ""),
    ];
    for (line, code, part) in words {
        let (output, said) = run(&cluster, line).await;
        let shown = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(code), "{line}: {said}{shown}");
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[tokio::test]
async fn what_a_script_reads() {
    let cluster = Cluster::of(3).await;
    let (_, said) = run(&cluster, "role acquire a one -o json").await;
    let token = serde_json::from_str::<Value>(&said).expect("JSON")["token"].clone();
    run(&cluster, "role acquire b two").await;
    let (_, said) = run(&cluster, "role list --output jsonl").await;
    let roles: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(roles.iter().map(|role| &role["role"]).collect::<Vec<_>>(), ["a", "b"]);
    let (_, said) = run(&cluster, "role list -o yaml").await;
    assert!(said.starts_with("items:\n  - acquired_at: \""), "{said}");
    let leader = "    leader:\n      address: null\n      instance_id: one\n";
    assert!(said.contains(leader) && said.contains(&format!("    token: {token}\n")), "{said}");
    let (output, said) = run(&cluster, "role acquire a other -o yaml").await;
    assert_eq!((output.status.code(), said.as_str()), (Some(7), ""));
    let refused = String::from_utf8_lossy(&output.stderr);
    let problem: Value = serde_json::from_str(refused.lines().last().expect("a line")).expect("JSON");
    assert_eq!(problem["code"], "role_held");
    let (_, said) = run(&cluster, "service down --reason why --output json").await;
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON")["service"], "down", "{said}");
}
