//! Tests of advice: each makes the situation that a text is for, and a similar one in which the text must not appear.

use std::process::Output;

use serde_json::json;

use crate::harness::{Call, Cluster, Plan, bounded, wait_for};

/// Waits until the node's own remark contains the text, and returns the remark.
async fn remark(cluster: &Cluster, id: u32, expected: &str) -> String {
    wait_for("the node makes its remark", async || {
        let remark = cluster.status(id).await?["remark"].as_str()?.to_string();
        remark.contains(expected).then_some(remark)
    })
    .await
}

async fn no_remark(cluster: &Cluster, id: u32) {
    wait_for("nothing is the matter", async || cluster.status(id).await?["remark"].is_null().then_some(()))
        .await;
}

fn log(cluster: &Cluster, id: u32) -> String {
    std::fs::read_to_string(cluster.node(id).stderr_path()).expect("a log")
}

/// Runs the command line against these nodes, with these variables.
fn run(urls: &[String], words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = bounded();
    for name in ["ELDEST_ADMIN_TOKEN", "ELDEST_TOKEN_FILE", "ELDEST_ADMIN_TOKEN_FILE", "ELDEST_CA"] {
        command.env_remove(name);
    }
    let variables = variables.iter().copied();
    command.args(words).env("ELDEST_URL", urls.join(",")).envs(variables).output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[tokio::test]
async fn a_node_that_is_no_member_is_told_how_to_become_one() {
    let cluster = Plan::new(5).prepare();
    // No cluster runs yet, so these nodes wait for the others like any founders. They hear each other.
    cluster.start(4);
    cluster.start(5);
    let waits = remark(&cluster, 4, "has never been formed").await;
    assert!(!waits.contains("members add"), "{waits}");
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    let leader = cluster.leader_among(&[1, 2, 3]).await;
    let address = cluster.node(4).url().replace("http://", "");
    let told = remark(&cluster, 4, &format!("eldest members add 4 {address} --name node-4")).await;
    assert!(!told.contains("take longer than two heartbeats") && !told.contains("form"), "{told}");

    // With the name and the address that the remark has, it becomes a member.
    let words = ["members", "add", "4", &address, "--name", "node-4", "--wait"];
    wait_for("it is added", async || {
        let output = run(&[cluster.node(leader).url()], &words, &[]);
        output.status.success().then_some(())
    })
    .await;
    wait_for("it is a member", async || {
        let status = cluster.status(4).await?;
        (!status["remark"].as_str().is_some_and(|remark| remark.contains("not one of them"))).then_some(())
    })
    .await;
    // A member that comes back without its data asks like a new node, and must not be told to be added.
    cluster.kill9(4);
    cluster.wipe(4);
    cluster.start(4);
    wait_for("it is admitted again", async || {
        let status = cluster.status(4).await?;
        assert!(
            !status["remark"].as_str().is_some_and(|remark| remark.contains("not one of them")),
            "{status}"
        );
        (status["admitted"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_runs_with_other_settings_is_not_to_be_started_or_left_out() {
    const SECRET: &str = "cluster_secret = \"the secret of these tests, long enough to pass\"\n";
    const ANOTHER: &str = "cluster_secret = \"another secret of these tests, long enough as well\"\n";
    const LEASE: &str = "timing.lease_ms is 250 there and 300 here";
    for (all, odd, expected) in [
        ("", "timing.lease_ms = 250", LEASE),
        (SECRET, &format!("{SECRET}timing.lease_ms = 250"), LEASE),
        (SECRET, &format!("{SECRET}mode = \"available\""), "mode is available there and safe here"),
        (SECRET, ANOTHER, "all nodes need the same (cluster_secret or cluster_secret_file)"),
    ] {
        // A cluster that was never formed needs every node.
        let cluster = Plan::new(3).brisk().config(all).prepare();
        cluster.configure(3, odd);
        cluster.ids().for_each(|id| cluster.start(id));
        let told = wait_for("node 1 names node 3 alone", async || {
            let told = remark(&cluster, 1, expected).await;
            assert!(!told.contains("--without"), "{told}");
            (!told.contains("node-2 (")).then_some(told)
        })
        .await;
        assert!(told.contains("calls to node-3 (") && told.contains("fail, although"), "{told}");
        assert!(!told.contains("start it"), "{told}");
        // Once it has ended, it is to be started, or left out.
        cluster.kill9(3);
        let told = remark(&cluster, 1, "or form the cluster without it: eldest form --without 3 --yes").await;
        assert!(!told.contains("although a server answers"), "{told}");
        cluster.configure(3, all);
        cluster.start(3);
        cluster.ready().await;
        no_remark(&cluster, 1).await;

        // The two others lead, so node 3 must not say that no leader can be elected.
        cluster.kill9(3);
        cluster.configure(3, odd);
        cluster.start(3);
        // In available mode node 3 leads by itself.
        if !odd.contains("available") {
            wait_for("node 3 says that calls fail", async || {
                let told = remark(&cluster, 3, "this node finds no leader: calls to node-").await;
                (!told.contains("can be elected")).then_some(())
            })
            .await;
        }

        // The same in a cluster that was formed, where the others are no majority.
        cluster.kill9(3);
        cluster.kill9(2);
        cluster.configure(3, odd);
        cluster.start(3);
        wait_for("node 1 tells the two apart", async || {
            let told = remark(&cluster, 1, expected).await;
            let tells = told.contains("although a server answers") && told.contains("node-2 (");
            (tells && told.contains("cannot be reached")).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_restore_is_news_only_for_nodes_that_were_there() {
    const NEWS: &str = "all data has been replaced by a restore";
    let cluster = Plan::new(4).prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    let leader = cluster.leader_among(&[1, 2, 3]).await;
    let all = json!({"docs": [{"key": "restored", "value": 1}]});
    cluster.answer(leader, Call::post("/override_all_data").json(&all)).await.expect(200);
    for id in 1..=3 {
        wait_for("the node says that all is new", async || log(&cluster, id).contains(NEWS).then_some(()))
            .await;
    }
    let follower = [1, 2, 3].into_iter().find(|id| *id != leader).expect("a follower");
    cluster.kill9(follower);
    cluster.start(follower);
    cluster.start(4);
    let address = cluster.node(4).url().replace("http://", "");
    let words = ["members", "add", "4", &address, "--wait"];
    wait_for("the fourth is added", async || {
        let output = run(&[cluster.node(leader).url()], &words, &[]);
        output.status.success().then_some(())
    })
    .await;
    for id in [follower, 4] {
        cluster.is_ready(id).await;
        assert_eq!(cluster.read_doc(id, "restored", "local").await, Some(1));
    }
    assert_eq!(log(&cluster, follower).matches(NEWS).count(), 1, "it was there once");
    assert_eq!(log(&cluster, 4).matches(NEWS).count(), 0);
    // The fourth got the record itself, because no snapshot was due before.
    assert!(log(&cluster, 4).contains("read from the log: a restore"), "{}", log(&cluster, 4));
}

#[tokio::test]
async fn a_position_ahead_of_the_log_is_not_a_silent_cluster() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    let frozen = cluster.others(cluster.leader().await)[0];
    let urls: Vec<String> =
        [frozen].into_iter().chain(cluster.others(frozen)).map(|id| cluster.node(id).url()).collect();
    cluster.stop(frozen);
    let output = run(&urls, &["feed", "--since", "99999999"], &[]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(9), "{told}");
    assert!(told.contains("is ahead of this node") && !told.contains("no node"), "{told}");
    // If no node answers, that is what it says.
    cluster.others(frozen).into_iter().for_each(|id| cluster.kill9(id));
    let output = run(&urls, &["feed", "--since", "99999999"], &[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    cluster.cont(frozen);
}

#[tokio::test]
async fn without_a_leader_the_exit_code_says_so() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let left = cluster.others(leader)[0];
    let url = [cluster.node(left).url()];
    let code = |words: &[&str]| run(&url, words, &[]).status.code();
    for words in [&["status"][..], &["healthcheck"], &["healthcheck", "--alive"]] {
        wait_for("there is a leader", async || (code(words) == Some(0)).then_some(())).await;
    }
    cluster.others(left).into_iter().for_each(|id| cluster.kill9(id));
    for words in [&["status"][..], &["healthcheck"]] {
        wait_for("nobody leads", async || (code(words) == Some(10)).then_some(())).await;
    }
    assert!(said(&run(&url, &["status"], &[])).contains("eldest why leader"));
    assert_eq!(code(&["healthcheck", "--alive"]), Some(0));
    cluster.kill9(left);
    assert_eq!(code(&["healthcheck"]), Some(3));
}

#[tokio::test]
async fn a_refused_token_is_named_by_its_source_and_arguments_count_first() {
    const ADMIN: &str = "the-admin-token-of-these-tests";
    const WRONG: &str = "eldest_0123456789abcdef_wrong";
    let config = format!("admin_token = \"{ADMIN}\"\nanonymous = \"none\"");
    let cluster = Plan::new(1).config(&config).start().await;
    let url = [cluster.node(1).url()];
    let file = |name: &str, token: &str| {
        let path = cluster.folder().join(name);
        std::fs::write(&path, token).expect("the folder is there");
        path.display().to_string()
    };
    let (right, wrong) = (file("right", ADMIN), file("wrong", WRONG));
    let variable = [("ELDEST_ADMIN_TOKEN", WRONG)];
    for (words, variables, source) in [
        (&["status"][..], &variable[..], "; the token is from ELDEST_ADMIN_TOKEN"),
        (&["status", "--token", WRONG], &[("ELDEST_ADMIN_TOKEN", ADMIN)], "; the token is from --token"),
        (
            &["status", "--token-file", &wrong],
            &[("ELDEST_ADMIN_TOKEN", ADMIN)],
            &format!("--token-file ({wrong})"),
        ),
        (&["status"], &[("ELDEST_TOKEN_FILE", wrong.as_str())], &format!("ELDEST_TOKEN_FILE ({wrong})")),
        (&["feed"], &variable, "; the token is from ELDEST_ADMIN_TOKEN"),
    ] {
        let output = run(&url, words, variables);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(4), "{words:?}: {told}");
        assert!(told.contains("(unauthorized, 401)") && told.contains(source), "{words:?}: {told}");
    }
    for (words, variables) in [
        (&["status", "--token", ADMIN][..], &variable[..]),
        (&["status", "--token-file", &right], &variable),
        (&["status"], &[("ELDEST_TOKEN_FILE", right.as_str()), ("ELDEST_ADMIN_TOKEN", "")]),
    ] {
        let output = run(&url, words, variables);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output));
    }
    let told = said(&run(&url, &["status"], &[]));
    assert!(told.contains("(unauthorized, 401)") && !told.contains("the token is from"), "{told}");
}

#[tokio::test]
async fn a_node_that_refuses_writes_is_ready_and_says_why() {
    let cluster = Cluster::of(1).await;
    let ready = async || cluster.answer(1, Call::get("/readyz")).await.expect(200).json();
    assert_eq!(ready().await, json!({"ready": true}));
    cluster.answer(1, Call::post("/service_down").json(&json!({"ttl_ms": 600_000}))).await.expect(200);
    assert_eq!(ready().await, json!({"ready": true, "writes_refused": "service_down"}));
}

#[tokio::test]
async fn the_log_gives_causes_in_the_words_of_the_chronicle() {
    // With these timings a slow leader is not given up.
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    cluster.kill9(leader);
    let told =
        format!("this node gave up node-{leader}: its port refuses connections, so its process is dead");
    // The other follower may have heard of the next leader first.
    wait_for("a log names the cause", async || {
        let logs = cluster.others(leader).into_iter().map(|id| log(&cluster, id));
        logs.into_iter().any(|log| log.contains(&told) && log.contains("cause=\"refused\"")).then_some(())
    })
    .await;
}
