//! Typing mistakes, and the answers to them: `mistakes.txt` holds every answer in full. `ELDEST_UPDATE=1`
//! writes the file again; read it before you keep it.

use std::fmt::Write;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::harness::{Call, Cluster, wait_for};
use crate::roles::{acquire, grant};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mistakes.txt");

/// It only makes a test fail: the bound for one run of the command line.
const COMMAND_MOST: Duration = Duration::from_secs(120);

/// Words as a shell would split them, with single quotes.
const MISTAKES: &[&str] = &[
    "",
    "statsu",
    "leader",
    "status --url ftp://127.0.0.1:9000",
    "status --url http://NOBODY",
    "status --url http://NOBODY --json",
    "status --jsno",
    "status --jsno --json",
    "status --output xml",
    "status --json -o yaml",
    "drill",
    "drill handover",
    "drill handover --yes --break true",
    "doc",
    "doc get",
    "doc get nothing",
    "doc get nothing --rev",
    "doc get taken --level near",
    "doc list --limit 0",
    "doc put a",
    "doc put a hello",
    "doc put a {n:1}",
    "doc put a '{\"n\": 1'",
    "doc put a @no-such-file",
    "doc put a -",
    "doc put taken 2 --if-absent",
    "doc put taken 2 --if-rev 1.1@1",
    "doc put taken 2 --if-absent --if-rev 1.1@1",
    "doc put '' 1",
    "doc put ' ' 1",
    "doc put a 1 --ttl 30x",
    "doc put a 1 --ttl 30",
    "doc put a 1 --ttl 1ms",
    "doc put a 1 --with nobody",
    "doc put a 1 --with role/free --lease-token 1",
    "doc put a 1 --with role/held --lease-token 17",
    "doc put a 1 --if-role held",
    "doc put a 1 --role-token 17",
    "doc put a 1 --if-role held --role-token 17",
    "doc delete taken --if-role held --role-token soon",
    "doc delete taken --if-role held --role-token 17",
    "doc delete nothing",
    "doc renew taken",
    "role show free",
    "role acquire",
    "role acquire held other",
    "role acquire held other --json",
    "role acquire r i --ttl 1ms",
    "role acquire r i --ttl soon",
    "role acquire ' ' i",
    "role renew held me 17",
    "role release free me 17",
    "role check held 17",
    "proc show nobody",
    "proc register p x --capabilities render",
    "elect 9",
    "elect node-9",
    "elect",
    "members remove 9",
    "members remove nobody",
    "members move nobody 127.0.0.1:1",
    "form --without nobody --yes",
    "conflicts show doc:a:1.1@1",
    "conflicts apply doc:a:1.1@1",
    "token revoke 1",
    "token create x",
    "token create x --grant 'reed docs'",
    "token create ' ' --grant 'read docs'",
    "why role",
    "why node/node-9",
    "feed --kinds changes",
    "call FETCH /v1/status",
    "call GET v1/status",
    "call GET /v1/nothing",
    "call GET /v1/roles/r/acquire",
    "call DELETE /v1/status",
    "call POST /v1/commands '{\"storage_cmd\":\"PutDok\",\"payload\":{}}'",
    "restore no-such-file",
    "serve",
    "serve --topology no-such-file",
    "exec --role r",
    "exec --role r --tll 5s -- true",
    "exec --tll 5s -- true",
    "exec --role held -- true",
    "exec --role r -- no-such-command",
    "log cat no-such-folder",
    "completions tcsh",
    "context use nope",
    "context set",
    "context set prod --url ftp://n1",
    "context set prod --url http://n1:9000/v1",
    "context set 'a b' --url http://n1",
    "context set prod --url http://NOBODY",
    "status --context nope",
    "status --context nope --url http://NOBODY",
    "status --token ''",
    "doc put a '{\"n\": 1,}'",
    "doc list --limit many",
    "msg publish c hello",
    "healthcheck --url http://NOBODY,http://NOBODY",
    "backup check no-such-file",
    "cert show no-such-file",
    "check --topology no-such-file",
];

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_string)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

/// Replaces everything that differs from run to run by a name.
fn settled(text: &str, cluster: &Cluster) -> String {
    let mut text = text.to_string();
    for (id, url) in (1..).zip(cluster.urls()) {
        text = text.replace(url.trim_start_matches("http://"), &format!("NODE{id}"));
    }
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        // Tokens are microseconds since 1970.
        out.push_str(if digits.len() >= 15 { "TOKEN" } else { &digits });
        digits.clear();
        out.extend((c != '\0').then_some(c));
    }
    let out = without("\"request_id\":\"", &out);
    let out = without("\"expires_in_ms\":", &without("has revision ", &out));
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The word after these words differs each time.
fn without(words: &str, text: &str) -> String {
    let mut parts = text.split(words);
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let rest = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').map_or("", |end| &part[end..]);
        let _ = write!(out, "{words}…{rest}");
    }
    out
}

/// One run of the binary in the cluster's folder. It calls the nodes of the cluster.
async fn output(cluster: &Cluster, words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
    command
        .args(words)
        .env("ELDEST_URL", cluster.urls().join(","))
        .env("COLUMNS", "100")
        .env("ELDEST_CONTEXTS", "/dev/null/contexts.json");
    let running = command.stdin(Stdio::null()).current_dir(cluster.folder()).kill_on_drop(true).output();
    let ended = tokio::time::timeout(COMMAND_MOST, running).await;
    ended.unwrap_or_else(|_| panic!("{words:?} does not end")).expect("the binary runs")
}

async fn run(cluster: &Cluster, nobody: &str, line: &str) -> String {
    let words: Vec<String> = words(line).iter().map(|word| word.replace("NOBODY", nobody)).collect();
    let output = output(cluster, &words).await;
    let said = [output.stdout, output.stderr].concat();
    let said = settled(&String::from_utf8_lossy(&said).replace(nobody, "NOBODY"), cluster);
    let code = output.status.code().map_or("a signal".to_string(), |code| code.to_string());
    let typed = format!("$ eldest {line}");
    format!("{}\n{}\n[{code}]\n", typed.trim_end(), said.trim_end())
}

#[tokio::test]
async fn every_mistake_has_a_helpful_answer() {
    let cluster = Cluster::of(3).await;
    cluster.leader().await;
    cluster.answer(1, Call::put("/v1/docs/taken").json(&json!(1))).await.expect(201);
    grant(cluster.answer(1, acquire("held", "me", json!({}))).await);
    // No service has used that port for decades.
    let nobody = "127.0.0.1:1";
    let mut told = Vec::new();
    for line in MISTAKES {
        told.push(run(&cluster, nobody, line).await);
    }
    let told = told.join("\n");
    if std::env::var_os("ELDEST_UPDATE").is_some() {
        std::fs::write(GOLDEN, &told).expect("it is written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("the answers");
    for (told, wanted) in told.split("\n$ ").zip(golden.split("\n$ ")) {
        assert_eq!(told, wanted, "if that is better, run this with ELDEST_UPDATE=1");
    }
    assert_eq!(told, golden);
}

#[tokio::test]
async fn a_frozen_node_does_not_keep_the_others_from_answering() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("a", 7).await;
    cluster.stop(1);
    let asked = async |line: &str| {
        let output = output(&cluster, &words(line)).await;
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, said) = asked("status").await;
    assert!(code == Some(0) && said.contains("node-2"), "{said}");
    wait_for("the others have a leader", async || {
        let (code, said) = asked("doc get a").await;
        (code == Some(0) && said.trim() == "7").then_some(())
    })
    .await;
    // A frozen node would take a write, and the command could not know whether it was carried out.
    for line in [
        "doc put b 1",
        "role acquire r i",
        "proc register p x",
        "doc list --limit 1",
        "why",
        "call GET /v1/docs/a",
    ] {
        let (code, said) = asked(line).await;
        assert_eq!(code, Some(0), "{line}: {said}");
    }
    cluster.cont(1);
}
