//! `eldest role` and `eldest proc` as a shell runs them.

use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::{Asks, grant, line_is, role, role_events, until};
use crate::harness::{Call, Cluster};

/// It only makes a test fail: longer than any wait that a command line here asks for.
const PATIENCE: Duration = Duration::from_secs(120);

async fn in_time<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

fn eldest(cluster: &Cluster, words: &str) -> Command {
    asking(cluster.urls(), words)
}

/// It calls the first of these nodes for as long as that node answers.
fn asking(urls: Vec<String>, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
    command.args(words.split(' ')).env("ELDEST_URL", urls.join(",")).kill_on_drop(true);
    command
}

async fn run(cluster: &Cluster, words: &str) -> (Output, String) {
    let output = in_time(words, eldest(cluster, words).output()).await.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
    (output, said)
}

struct Holder {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    token: u64,
}

impl Holder {
    /// Returns once the command says that it has the role.
    async fn start(mut command: Command) -> Holder {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let line = in_time("it has the role", lines.next_line()).await.expect("text").expect("it holds");
        let (_, token) = line.rsplit_once(' ').expect("a token at the end");
        let token = token.parse().expect("a number");
        Holder { child, lines, token }
    }

    fn interrupt(&self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid as i32)).expect("it runs");
        kill_process(pid, Signal::INT).expect("our own process takes signals");
    }

    async fn ends_with(mut self, code: i32) -> Option<String> {
        let last = in_time("it says why it ends", self.lines.next_line()).await.expect("text");
        let ended = in_time("it ends", self.child.wait()).await;
        assert_eq!(ended.expect("an end").code(), Some(code), "{last:?}");
        last
    }
}

#[tokio::test]
async fn a_shell_holds_a_role_over_the_death_of_its_node() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let nodes = [leader].into_iter().chain(cluster.others(leader));
    let urls = nodes.map(|id| cluster.node(id).url()).collect();
    let holder = Holder::start(asking(urls, "role hold r shell --ttl 20s")).await;
    // The node that it has called until now, which leads as well.
    cluster.kill9(leader);
    let witness = cluster.leader().await;
    let mut events = role_events(&cluster, witness, "").await;
    let asks = Asks { cluster: &cluster, node: witness };
    // Longer than the shell's ttl, which the new leader counts from the moment when it began to lead.
    grant(asks.acquire("s", "silent", json!({"ttl_ms": 25_000})).await);
    let told = until(&mut events, "role_lost", "silent").await;
    assert!(told.iter().all(|event| event["role"] != "r"), "{told:?}");
    assert_eq!(role(&cluster, witness, "r").await["token"], json!(holder.token));
    holder.interrupt();
    let lost = until(&mut events, "role_lost", "shell").await;
    assert_eq!(lost.last().expect("the loss")["reason"], "released");
    assert_eq!(holder.ends_with(0).await.as_deref(), Some("r is free"));
}

#[tokio::test]
async fn a_shell_that_loses_its_role_ends() {
    let cluster = Cluster::of(3).await;
    let first = Holder::start(eldest(&cluster, "role hold r one --ttl 30s")).await;
    let second = tokio::spawn({
        let mut command = eldest(&cluster, "role acquire r two --ttl 1h --wait 60s --json");
        async move { command.output().await }
    });
    line_is(&cluster, 1).await;
    first.interrupt();
    let second = in_time("the second has it", second).await.expect("no panic").expect("the binary runs");
    let second: Value = serde_json::from_slice(&second.stdout).expect("JSON");
    assert_eq!((&second["outcome"], &second["leader"]["instance_id"]), (&json!("elected"), &json!("two")));
    first.ends_with(0).await;
    let token = second["token"].as_u64().expect("a token");
    let (valid, said) = run(&cluster, &format!("role check r {token}")).await;
    assert_eq!((valid.status.code(), said.as_str()), (Some(0), "valid"));
    let (released, said) = run(&cluster, &format!("role release r two {token}")).await;
    assert_eq!(released.status.code(), Some(0), "{said}");

    let holder = Holder::start(eldest(&cluster, "role hold r three --ttl 30s")).await;
    assert_eq!(run(&cluster, &format!("role check r {token}")).await.0.status.code(), Some(7));
    assert_eq!(run(&cluster, "role acquire r four").await.0.status.code(), Some(7));
    let (_, said) = run(&cluster, "role elect r four --ttl 1h").await;
    assert!(said.starts_with("elected: four holds r with token "), "{said}");
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
        ("role acquire r one --ttl 1h --secret s", 0, ""),
        ("doc put k 2 --with role/r --lease-token TOKEN", 4, ""),
        ("doc put k 2 --with role/r --lease-token TOKEN --secret other", 4, ""),
        ("doc put k 2 --with role/r --lease-token TOKEN --secret s", 0, "\"created\":false"),
        ("doc put k 2 --if-role r --role-token TOKEN", 0, "\"created\":false"),
        ("doc put k 3 --if-role r --role-token 7", 8, ""),
        ("doc delete k --if-role r --role-token 7", 8, ""),
        ("doc get k", 0, "2"),
        ("doc delete k --if-role r --role-token TOKEN", 0, "\"key\":\"k\""),
        ("doc delete k", 6, ""),
        ("proc register w/7 renderer --ttl 1h --role slave --capabilities [\"a\"]", 0, "worker:slave:w/7"),
        ("proc register w8 renderer --metadata {", 2, ""),
        ("proc heartbeat w/7", 0, "w/7 is registered"),
        ("proc heartbeat w8", 6, ""),
        ("proc list --capability a --json", 0, "\"id\":\"w/7\""),
        ("proc list --capability b", 0, "no processes"),
        ("proc show w/7", 0, "renderer"),
        ("proc remove w/7", 0, "w/7 is removed"),
        ("proc show w/7", 6, ""),
    ];
    let mut token = String::new();
    for (line, code, part) in words {
        let (output, said) = run(&cluster, &line.replace("TOKEN", &token)).await;
        let shown = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(code), "{line}: {said}{shown}");
        assert!(said.contains(part), "{line}: {said}");
        if line.starts_with("role acquire") {
            let held = cluster.answer(1, Call::get("/v1/roles/r")).await.expect(200);
            token = held.json()["token"].to_string();
        }
    }
}

#[tokio::test]
async fn what_a_script_reads() {
    let cluster = Cluster::of(3).await;
    let (_, said) = run(&cluster, "role acquire a one --ttl 1h -o json").await;
    let token = serde_json::from_str::<Value>(&said).expect("JSON")["token"].clone();
    run(&cluster, "role acquire b two --ttl 1h").await;
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
