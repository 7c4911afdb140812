//! `eldest doctor` against clusters with something wrong.

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Network, Plan, eldest, watch_for};

const WRONG: i32 = 12;

const WARNED: i32 = 11;

/// Its exit code, its stdout and its stderr.
fn doctor(urls: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let output = eldest(&[&["doctor", "--url", urls], more].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The findings, except for those that only a slow machine causes.
fn findings(cluster: &Cluster, more: &[&str]) -> Vec<Value> {
    let (code, out, err) = doctor(&cluster.urls().join(","), &[&["--json"], more].concat());
    let said: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let all = said["findings"].as_array().expect("findings").clone();
    // The worst comes first.
    let expected = match all.first().map_or("note", |finding| finding["severity"].as_str().expect("a word")) {
        "error" => WRONG,
        "warning" => WARNED,
        _ => 0,
    };
    assert_eq!((code, &said["well"]), (Some(expected), &json!(expected == 0)), "{out}{err}");
    let of_the_machine = ["disk_slow", "disk_low", "files"];
    all.into_iter().filter(|finding| !of_the_machine.iter().any(|about| finding["about"] == *about)).collect()
}

/// Waits until these are the only findings: a cluster reports a change a moment late.
async fn settles(what: &str, cluster: &Cluster, more: &[&str], wanted: Value) {
    watch_for(what, async || {
        let found = findings(cluster, more);
        let short = |finding: &Value| json!([finding["about"], finding["nodes"]]);
        let seen: Value = found.iter().map(short).collect();
        if seen == wanted { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_well_cluster_then_a_frozen_node_then_a_dead_one() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 1).await;
    settles("nothing is wrong", &cluster, &[], json!([])).await;
    let follower = cluster.others(cluster.leader().await)[0];
    cluster.stop(follower);
    settles("a node is frozen", &cluster, &["--within", "1s"], json!([["frozen", [follower]]])).await;
    cluster.cont(follower);
    settles("nothing is wrong any more", &cluster, &[], json!([])).await;
    cluster.kill9(follower);
    settles("a node is dead", &cluster, &[], json!([["down", [follower]]])).await;
    watch_for("it says so to people", async || {
        let (code, out, err) = doctor(&cluster.urls().join(","), &[]);
        assert_eq!(code, Some(WRONG), "{out}{err}");
        assert!(err.contains("problem"), "{err}");
        let down = format!("node-{follower}: does not answer");
        // For a moment another node may answer late, or no node may lead.
        let is_all = out.starts_with("2 of 3 nodes answered; node-") && out.contains(&down);
        if is_all && out.contains("next: ") { Ok(()) } else { Err(out) }
    })
    .await;
}

/// The findings of `/v1/explain/health` at that node, except for those that only a slow machine causes.
async fn health(cluster: &Cluster, node: u32) -> Vec<Value> {
    let said = cluster.answer(node, Call::get("/v1/explain/health")).await.expect(200).json();
    let all = said["findings"].as_array().expect("findings").clone();
    let of_the_machine = ["disk_slow", "disk_low", "files"];
    all.into_iter().filter(|finding| !of_the_machine.iter().any(|about| finding["about"] == *about)).collect()
}

#[tokio::test]
async fn a_node_finds_what_the_doctor_finds() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 1).await;
    let leader = cluster.leader().await;
    let [asked, follower] = cluster.others(leader)[..] else { panic!("three nodes") };
    let settles = async |what: &str, wanted: Value| {
        watch_for(what, async || {
            let found = health(&cluster, asked).await;
            let seen: Value =
                found.iter().map(|finding| json!([finding["about"], finding["nodes"]])).collect();
            if seen == wanted { Ok(found) } else { Err(format!("{found:?}")) }
        })
        .await
    };
    settles("nothing is wrong", json!([])).await;
    let said = cluster.answer(asked, Call::get("/v1/explain/health")).await.expect(200).json();
    let nodes: Vec<_> = said["nodes"].as_array().into_iter().flatten().map(|node| &node["answers"]).collect();
    assert_eq!(nodes, [&json!(true); 3], "{said}");
    assert!(said["nodes"][0]["disk"]["slowest_sync_ms"].is_u64(), "{said}");
    cluster.stop(follower);
    settles("a node is frozen", json!([["frozen", [follower]]])).await;
    cluster.cont(follower);
    settles("nothing is wrong any more", json!([])).await;
    cluster.kill9(follower);
    let found = settles("a node is dead", json!([["down", [follower]]])).await;
    let text = found[0]["text"].as_str().expect("text");
    assert!(text.starts_with("does not answer: cannot connect to it: "), "{text}");
    assert!(text.ends_with("; if one more fails, the cluster stops"), "{text}");
    // It answers without a leader as well.
    cluster.kill9(leader);
    watch_for("nobody leads", async || {
        let found = health(&cluster, asked).await;
        let is_there = |about: &str| found.iter().any(|finding| finding["about"] == about);
        if is_there("no_leader") && is_there("down") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Waits for this finding of the node. It never takes a node for frozen: none takes connections and is silent. The first examination
/// leaves connections open, on which calls get no answer after a cut.
async fn finds(cluster: &Cluster, node: u32, finding: Value) {
    watch_for("the finding is there", async || {
        let found = health(cluster, node).await;
        assert!(found.iter().all(|one| one["about"] != "frozen"), "{found:?}");
        let is_there = found.iter().any(|one| json!([one["about"], one["nodes"]]) == finding);
        if is_there { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn cut_off(network: &Network) -> Cluster {
    let config = "cluster_secret = \"the secret of these tests, long enough to pass\"\n";
    let plan = Plan::at(network.addresses()).launchers(network.launchers()).config(config);
    let cluster = plan.start().await;
    watch_for("nothing is wrong", async || {
        let found = health(&cluster, 2).await;
        if found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    cluster
}

#[tokio::test]
async fn a_node_that_does_not_reach_another_blames_the_link() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cut_off(&network).await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    health(&cluster, follower).await;
    network.cut_calls(follower, leader);
    finds(&cluster, follower, json!(["link", [follower]])).await;
}

#[tokio::test]
async fn a_machine_that_is_gone_is_not_a_broken_link() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cut_off(&network).await;
    let leader = cluster.leader().await;
    let [asked, gone] = cluster.others(leader)[..] else { panic!("three nodes") };
    health(&cluster, asked).await;
    health(&cluster, leader).await;
    network.split(&[gone], &[asked, leader]);
    finds(&cluster, asked, json!(["down", [gone]])).await;
    finds(&cluster, leader, json!(["down", [gone]])).await;
}

#[tokio::test]
async fn nobody_leads_and_it_says_for_whom_the_cluster_waits() {
    let cluster = Plan::new(3).prepare();
    cluster.start(2);
    let found = watch_for("the node knows whom it waits for", async || {
        if cluster.status(2).await.is_none() {
            return Err("it is not there yet".to_string());
        }
        let found = findings(&cluster, &[]);
        let why =
            found.iter().find(|finding| finding["about"] == "no_leader" && finding["nodes"] == json!([2]));
        why.cloned().ok_or_else(|| format!("{found:?}"))
    })
    .await;
    let text = found["text"].as_str().expect("text");
    assert!(text.contains("is waiting for node-1") && text.contains("node-3"), "{text}");
}

#[tokio::test]
async fn an_even_size_is_a_note_and_a_full_quota_a_warning() {
    let cluster = Plan::new(2).config("limits.state_bytes = 4096").start().await;
    settles("the size is even", &cluster, &[], json!([["even_size", []]])).await;
    let long = json!("x".repeat(3_900)).to_string();
    let answer = cluster.eventually(Call::put("/v1/docs/k").raw_json(&long)).await;
    assert!(answer.ok(), "{}", answer.show());
    let wanted = json!([["quota", [1, 2]], ["even_size", []]]);
    settles("the quota is nearly full", &cluster, &[], wanted).await;
}

#[tokio::test]
async fn a_node_with_another_setting_is_found() {
    let cluster = Plan::new(3).prepare();
    cluster.configure(3, "timing.heartbeat_ms = 77");
    (1..=3).for_each(|id| cluster.start(id));
    watch_for("the settings differ", async || {
        if cluster.status(3).await.is_none() {
            return Err("node 3 is not there yet".to_string());
        }
        let found = findings(&cluster, &[]);
        let finding = found.iter().find(|finding| finding["about"] == "settings_differ");
        let text = finding.map_or("", |finding| finding["text"].as_str().expect("text"));
        let is_it = text.contains("(node-1, node-2)") && text.contains("(node-3)");
        if is_it { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_link_that_is_cut_in_one_direction() {
    let Some(network) = Network::new(3) else { return };
    let config = "cluster_secret = \"the secret of these tests, long enough to pass\"\n";
    let plan = Plan::at(network.addresses()).launchers(network.launchers()).config(config);
    let cluster = plan.start().await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    network.cut_calls(leader, follower);
    watch_for("the link is told of", async || {
        let found = findings(&cluster, &[]);
        let is_it = |finding: &Value| finding["about"] == "link" && finding["nodes"] == json!([leader]);
        if found.iter().any(is_it) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so_and_nobody_there_is_another_code() {
    const ADMIN: &str = "the-admin-token-of-these-tests";
    let config = format!("admin_token = \"{ADMIN}\"\nanonymous = \"none\"");
    let cluster = Plan::new(1).config(&config).prepare();
    let url = cluster.node(1).url();
    let (code, out, err) = doctor(&url, &[]);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(err.contains("no node could be reached"), "{err}");
    cluster.start(1);
    cluster.is_ready(1).await;
    let (code, out, err) = doctor(&url, &["--token", "eldest_0123456789abcdef_wrong"]);
    assert_eq!((code, out.as_str()), (Some(4), ""), "{err}");
    assert!(err.contains("unauthorized"), "{err}");
    let (code, out, _) = doctor(&url, &["--token", ADMIN, "--json", "--within", "60s"]);
    let said: Value = serde_json::from_str(&out).expect("JSON");
    assert!([Some(0), Some(WARNED), Some(WRONG)].contains(&code), "{out}");
    assert_eq!((&said["nodes"][0]["answers"], &said["nodes"][0]["role"]), (&json!(true), &json!("leader")));
}

#[tokio::test]
async fn what_a_node_says_to_a_doctor() {
    let cluster = Plan::new(1).prepare();
    let copies = cluster.folder().join("copies");
    std::fs::create_dir(&copies).expect("a folder for copies");
    let copies = copies.display().to_string();
    cluster.configure(1, &format!("backup.dir = {copies:?}\nbackup.every_ms = 60000"));
    cluster.start(1);
    cluster.ready().await;
    let said = cluster.answer(1, Call::get("/v1/diagnostics")).await.expect(200).json();
    assert_eq!(said["settings"], json!(cluster.node(1).settings_digest()));
    assert_eq!((&said["status"]["role"], &said["backup"]["every_ms"]), (&json!("leader"), &json!(60000)));
    assert_eq!((&said["certificate"], &said["disk"]["full"]), (&Value::Null, &json!(false)));
    assert!(said["files"]["open"].as_u64() > Some(0), "{said}");
    let again = cluster.answer(1, Call::get("/v1/diagnostics")).await.expect(200).json();
    assert!(again["clock"]["mono_us"].as_u64() >= said["clock"]["mono_us"].as_u64(), "{said}{again}");
}
