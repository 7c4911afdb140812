//! Every command that has `--output`, in every form, when it succeeds, when the cluster refuses it, and when no node can be reached. The
//! commands are read from the help, so a new one is tested, or must be listed here.

use std::process::Output;

use serde_json::Value;

use crate::harness::{Cluster, Plan, eldest, wait_for};

const FORMS: [&str; 4] = ["table", "json", "jsonl", "yaml"];

const ADMIN: &str = "admin-token-of-the-tests-0123456789";

/// No service has used that port for decades.
const NOBODY: &str = "http://127.0.0.1:1";

const NOT_REACHED: i32 = 3;
const NOT_NOW: i32 = 9;

/// For each command, the words with which it succeeds, and the command before it that makes this possible. That command's `token` or `id`
/// stands in for `GOT`. Commands that stop writes come last.
const GOOD: [(&str, &str, &str); 31] = [
    ("status", "", ""),
    ("why", "leader", ""),
    ("doctor", "", ""),
    ("elect", "node-1", ""),
    ("conflicts list", "", ""),
    ("conflicts drop", "--all", ""),
    ("doc put", "a 1", ""),
    ("doc get", "a", ""),
    ("doc list", "--prefix a", ""),
    ("doc renew", "s", "doc put s 1 --ttl 1h"),
    ("doc delete", "gone", "doc put gone 1"),
    ("role acquire", "r i", ""),
    ("role renew", "r i GOT", "role acquire r i"),
    ("role check", "r GOT", "role acquire r i"),
    ("role list", "", ""),
    ("role show", "r", "role acquire r i"),
    ("role elect", "r j", ""),
    ("role release", "s i GOT", "role acquire s i"),
    ("proc register", "p x", ""),
    ("proc heartbeat", "p", "proc register p x"),
    ("proc list", "", ""),
    ("proc show", "p", "proc register p x"),
    ("proc remove", "p", "proc register p x"),
    ("msg publish", "c 1", ""),
    ("members list", "", ""),
    ("token create", "t --grant order", ""),
    ("token list", "", ""),
    ("token revoke", "GOT", "token create t --grant order"),
    ("handoff", "", ""),
    ("service down", "--ttl 1h", ""),
    ("service up", "", ""),
];

/// Commands that are tested only where they fail, each with its words. To succeed they would need a conflict, another node, a cluster that
/// is not formed yet, or a leader to take away.
const BAD: [(&str, &str); 7] = [
    ("conflicts show", "doc:a:1.1@1"),
    ("conflicts apply", "doc:a:1.1@1"),
    ("members add", "9 127.0.0.1:1"),
    ("members remove", "9"),
    ("members move", "9 127.0.0.1:1"),
    ("form", "--without 9 --yes"),
    ("drill", "handover --yes"),
];

fn run(url: &str, token: &str, words: &str) -> Output {
    let words: Vec<&str> = words.split_whitespace().collect();
    eldest(&[&words, &["--url", url, "--token", token][..]].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The commands under these words that have `--output`, as the help lists them.
fn with_output(words: &str) -> Vec<String> {
    let help = [words.split_whitespace().collect::<Vec<_>>(), vec!["--help"]].concat();
    let help = text(&eldest(&help).stdout);
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let below: Vec<String> = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .flat_map(|name| with_output(format!("{words} {name}").trim()))
        .collect();
    if below.is_empty() && help.contains("--output") { vec![words.to_string()] } else { below }
}

/// Asserts that the text has the form. YAML is only told from JSON objects here: a unit test of its writer reads it.
fn has_form(form: &str, said: &str, what: &str) {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    match form {
        "json" => assert!(is_json(said), "{what}: {said}"),
        "jsonl" => assert!(said.lines().all(is_json), "{what}: {said}"),
        "yaml" => assert!(!said.trim().is_empty() && !said.starts_with(['{', '[']), "{what}: {said}"),
        _ => assert!(!said.trim().is_empty(), "{what}"),
    }
}

/// Asserts that the failure is one object on stderr, with its code, for scripts, and one message for people.
fn is_told(form: &str, output: &Output, what: &str) -> String {
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(said, "", "{what}: nothing is printed beside a failure: {told}");
    if form == "table" {
        assert!(told.starts_with("eldest: ") && told.ends_with('\n'), "{what}: {told}");
        return String::new();
    }
    let problem: Value =
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{what}: {error}: {told}"));
    assert_eq!(problem["exit_code"].as_i64(), output.status.code().map(i64::from), "{what}: {told}");
    problem["code"].as_str().unwrap_or_else(|| panic!("{what}: {told}")).to_string()
}

async fn cluster() -> Cluster {
    let cluster = Plan::new(3).config(&format!("admin_token = \"{ADMIN}\"")).start().await;
    cluster.leader().await;
    cluster
}

fn words_of(command: &str) -> String {
    let all = GOOD.iter().map(|(name, words, _)| (*name, *words)).chain(BAD);
    let words = all.into_iter().find(|(name, _)| *name == command).map(|(_, words)| words);
    words
        .unwrap_or_else(|| panic!("{command} has --output: give it words in this test"))
        .replace("GOT", "0000000000000017")
}

#[tokio::test]
async fn every_command_succeeds_in_every_form() {
    let cluster = cluster().await;
    let urls = cluster.urls().join(",");
    for (command, words, before) in GOOD {
        for form in FORMS {
            let mut got = String::new();
            if !before.is_empty() {
                let output = run(&urls, ADMIN, &format!("{before} --json"));
                let said: Value = serde_json::from_slice(&output.stdout)
                    .unwrap_or_else(|error| panic!("{before}: {error}: {}", text(&output.stderr)));
                let found = if before.starts_with("token") { &said["id"] } else { &said["token"] };
                got = found.as_str().map_or_else(|| found.to_string(), str::to_string);
            }
            let line = format!("{command} {} --output {form}", words.replace("GOT", &got));
            // A node may not be ready to lead yet.
            let output = wait_for("it is carried out", async || {
                Some(run(&urls, ADMIN, &line)).filter(|output| output.status.code() != Some(NOT_NOW))
            })
            .await;
            // The doctor's code says what it has found on this machine.
            let is_done = output.status.success() || command == "doctor" && output.status.code() > Some(10);
            assert!(is_done, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
            has_form(form, &text(&output.stdout), &line);
        }
    }
}

#[tokio::test]
async fn every_refusal_and_every_lack_of_a_node_is_told_in_every_form() {
    let cluster = cluster().await;
    let urls = cluster.urls().join(",");
    for command in with_output("") {
        for form in FORMS {
            let line = format!("{command} {} --output {form}", words_of(&command));
            let output = run(&urls, "no-token-of-this-cluster", &line);
            let code = is_told(form, &output, &line);
            // A node answers only some wrong tokens of one address a minute.
            assert!(["", "unauthorized", "too_many_requests"].contains(&code.as_str()), "{line}: {code}");
            let output = run(NOBODY, ADMIN, &line);
            let code = is_told(form, &output, &line);
            assert_eq!(output.status.code(), Some(NOT_REACHED), "{line}: {}", text(&output.stderr));
            assert!(["", "not_reached"].contains(&code.as_str()), "{line}: {code}");
        }
    }
}
