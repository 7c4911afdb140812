//! Clusters that commands know by name: which one is called, and what is shown to which.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::harness::{Cluster, Plan, bounded, wait_for};

const ADMIN: &str = "admin-token-of-the-tests-0123456789";
const OTHER_ADMIN: &str = "another-token-of-the-tests-0123456789";

/// Two clusters, and a user who has a token of the first one.
struct User {
    prod: Cluster,
    other: Cluster,
    contexts: PathBuf,
    token: PathBuf,
}

impl User {
    async fn new() -> User {
        let closed = |token: &str| format!("admin_token = \"{token}\"");
        let prod = Plan::new(3).config(&closed(ADMIN)).start().await;
        let other = Plan::new(1).config(&closed(OTHER_ADMIN)).start().await;
        prod.leader().await;
        other.leader().await;
        let (contexts, token) =
            (prod.folder().join("settings").join("contexts.json"), prod.folder().join("token"));
        fs::write(&token, ADMIN).expect("written");
        let user = User { prod, other, contexts, token };
        let token = user.token.display().to_string();
        // The identity of a cluster is not known before it is formed.
        wait_for("the cluster is stored with its identity", async || {
            let set = user.run(&[
                "context",
                "set",
                "prod",
                "--url",
                &user.prod.urls()[1],
                "--token-file",
                &token,
                "--json",
            ]);
            let said: Value = serde_json::from_slice(&set.stdout).ok()?;
            said["cluster_id"].is_string().then_some(())
        })
        .await;
        user
    }

    fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, &[])
    }

    fn run_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = bounded();
        command.args(words).env("ELDEST_CONTEXTS", &self.contexts).envs(variables.iter().copied());
        command.output().expect("the binary runs")
    }

    fn ends_with(&self, words: &[&str], variables: &[(&str, &str)], code: i32) -> String {
        let output = self.run_with(words, variables);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?} {variables:?}: {told}");
        format!("{}{told}", String::from_utf8_lossy(&output.stdout))
    }

    /// Changes what is stored of `prod`, as its user may do with an editor.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let text = fs::read_to_string(&self.contexts).expect("there");
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        change(&mut value["contexts"]["prod"]);
        fs::write(&self.contexts, value.to_string()).expect("written");
    }
}

#[tokio::test]
async fn a_command_finds_its_cluster_and_its_token_in_the_context() {
    let user = User::new().await;
    let stored: Value = serde_json::from_slice(&fs::read(&user.contexts).expect("there")).expect("JSON");
    let prod = &stored["contexts"]["prod"];
    let urls: Vec<&str> = prod["urls"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(urls[0], user.prod.urls()[1], "the given address comes first");
    assert_eq!(urls.len(), 3, "the others are asked for: {stored}");
    assert!(!stored.to_string().contains(ADMIN), "the token is not stored: {stored}");
    let mode = fs::metadata(&user.contexts).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    user.ends_with(&["doc", "put", "a", "1"], &[], 0);
    user.ends_with(&["exec", "--role", "r", "--", "true"], &[], 0);
    assert_eq!(user.ends_with(&["doc", "get", "a"], &[("ELDEST_URL", &user.prod.urls()[0])], 0), "1\n");
    let listed = user.ends_with(&["context", "list"], &[], 0);
    assert!(listed.contains("*  prod  "), "{listed}");
    user.ends_with(&["context", "remove", "prod"], &[], 0);
    let told = user.ends_with(&["context", "use", "prod"], &[], 2);
    assert!(told.contains("no context \"prod\": there are none"), "{told}");
}

#[tokio::test]
async fn a_token_goes_to_the_cluster_that_it_is_for() {
    let user = User::new().await;
    let other = user.other.urls()[0].clone();
    // A node refuses a token that it does not know, and a call without one may write.
    user.ends_with(&["doc", "put", "a", "1", "--url", &other], &[], 0);
    user.ends_with(&["doc", "put", "a", "1", "--url", &other, "--token", ADMIN], &[], 4);
    let token = user.prod.folder().join("other-token");
    fs::write(&token, OTHER_ADMIN).expect("written");
    let token = token.display().to_string();
    user.ends_with(
        &["context", "set", "other", "--url", &other, "--token-file", &token, "--as-given"],
        &[],
        0,
    );
    user.ends_with(&["doc", "put", "where", "\"prod\""], &[], 0);
    // A context that is typed counts before a token that was set long ago.
    user.ends_with(
        &["doc", "put", "where", "\"other\"", "--context", "other"],
        &[("ELDEST_ADMIN_TOKEN", ADMIN)],
        0,
    );
    assert_eq!(user.ends_with(&["doc", "get", "where"], &[("ELDEST_CONTEXT", "other")], 0), "\"other\"\n");
    assert_eq!(user.ends_with(&["doc", "get", "where"], &[], 0), "\"prod\"\n");
    for url in [&other, &user.prod.urls()[0]] {
        let code = if *url == other { 0 } else { 2 };
        let both = [("ELDEST_CONTEXT", "other"), ("ELDEST_URL", url)];
        let told = user.ends_with(&["doc", "get", "where"], &both, code);
        assert_eq!(told.contains("differ: unset one"), code == 2, "{told}");
    }
    let told = user.ends_with(&["doc", "get", "where", "--context", ""], &[], 2);
    assert!(told.contains("--context is empty"), "{told}");
    let told = user.ends_with(&["doc", "get", "where", "--context", "other", "--url", &other], &[], 2);
    assert!(told.contains("use --url or --context, not both"), "{told}");
}

/// An address may be another cluster's by now.
#[tokio::test]
async fn a_node_of_another_cluster_is_skipped() {
    let user = User::new().await;
    let other = user.other.urls()[0].clone();
    fs::write(&user.token, OTHER_ADMIN).expect("written");
    user.edit(|prod| prod["urls"] = vec![other.clone()].into());
    for words in [&["doc", "put", "a", "1"][..], &["status"], &["feed", "--count", "1"]] {
        let told = user.ends_with(words, &[], 3);
        assert!(told.contains("if it was formed again, set its context again"), "{words:?}: {told}");
    }
    // An address that is typed is called, even if the context says otherwise.
    user.ends_with(&["doc", "put", "a", "2", "--url", &other], &[], 0);
    let told = user.ends_with(&["exec", "--role", "r", "--", "true"], &[], 125);
    assert!(told.contains("wrong_cluster"), "{told}");
    fs::write(&user.token, ADMIN).expect("written");
    let first = [vec![other.clone()], user.prod.urls()].concat();
    user.edit(|prod| prod["urls"] = first.into());
    user.ends_with(&["doc", "put", "a", "1"], &[], 0);
    assert_eq!(user.ends_with(&["doc", "get", "a"], &[], 0), "1\n");
    let status = user.ends_with(&["status"], &[], 0);
    assert!(!status.contains(&other), "{status}");
}

#[tokio::test]
async fn a_context_that_is_wrong_breaks_only_what_needs_it() {
    let user = User::new().await;
    let url = user.prod.urls()[0].clone();
    let given = ["doc", "get", "a", "--url", &url, "--token", ADMIN];
    for wrong in ["{", "{\"contexts\":{\"prod\":{\"urls\":[]}},\"current\":\"gone\"}"] {
        fs::write(&user.contexts, wrong).expect("written");
        user.ends_with(&["doc", "get", "a"], &[], 2);
        user.ends_with(&["exec", "--role", "r", "--", "true"], &[], 2);
        let told = user.ends_with(&["status", "--json"], &[], 2);
        assert!(serde_json::from_str::<Value>(&told).is_ok_and(|told| told["code"] == "usage"), "{told}");
        user.ends_with(&given, &[], 6);
        user.ends_with(&given[..3], &[("ELDEST_NODES", &url), ("ELDEST_ADMIN_TOKEN", ADMIN)], 6);
    }
    // This command calls no node.
    user.ends_with(&["backup", "check", "no-such-file"], &[], 1);
    let told = user.ends_with(&["doc", "get", "a", "--context", "nope"], &[], 2);
    assert!(told.contains("no context \"nope\""), "{told}");
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let user = User::new().await;
    std::thread::scope(|threads| {
        for number in 0..8 {
            let user = &user;
            threads.spawn(move || {
                let name = format!("c{number}");
                user.ends_with(
                    &["context", "set", &name, "--url", "http://127.0.0.1:1", "--as-given"],
                    &[],
                    0,
                );
            });
        }
    });
    let listed = user.ends_with(&["context", "list", "--json"], &[], 0);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(9), "{listed}");
}
