//! Who belongs to the cluster is in its log: nodes are added and removed while it runs, a topology file that says something else
//! changes nothing, and the disk of an earlier cluster of the same name stays out.

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Plan, wait_for};

async fn change(cluster: &Cluster, at: u32, body: &Value) -> Answer {
    cluster.answer(at, Call::post("/v1/members").json(body)).await
}

/// Until the change is taken: the one before may be under way still.
async fn changed(cluster: &Cluster, at: u32, body: &Value) {
    wait_for("the members change", async || {
        let answer = change(cluster, at, body).await;
        let waits = answer.status == 503;
        assert!(answer.ok() || waits, "{}", answer.show());
        answer.ok().then_some(())
    })
    .await;
}

async fn votes(cluster: &Cluster, at: u32, id: u32) {
    wait_for("it votes", async || {
        let listed = cluster.answer(at, Call::get("/v1/members")).await.json();
        let members = listed["members"].as_array().cloned().unwrap_or_default();
        members.iter().any(|member| member["id"] == id && member["votes"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_node_comes_and_another_goes() {
    let cluster = Plan::new(4).prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    let leader = cluster.leader_among(&[1, 2, 3]).await;
    for number in 0..30 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    let address = cluster.node(4).url().replace("http://", "");
    let add = json!({"add": {"id": 4, "name": "node-4", "address": address}});
    // Any node takes the call, and one that is repeated changes nothing.
    changed(&cluster, 2, &add).await;
    assert!(change(&cluster, 1, &add).await.ok());
    cluster.start(4);
    votes(&cluster, leader, 4).await;
    cluster.counts(4).await;

    // The leader goes: it hands over first. It ends by itself, and says why.
    changed(&cluster, 3, &json!({"remove": leader})).await;
    let ended = wait_for("the one that was removed ends", async || cluster.node(leader).ended()).await;
    assert_eq!(ended.code(), Some(70));
    assert!(cluster.node(leader).log_tail().contains("has been removed from the cluster"));

    // Of the three that are left one dies, and the one that came is needed.
    cluster.kill9(3);
    wait_for("a write", async || {
        cluster.answer(2, Call::put("/v1/docs/after").raw_json("1")).await.ok().then_some(())
    })
    .await;
    for number in 0..30 {
        assert_eq!(cluster.read_doc(4, &format!("d/{number}"), "linear").await, Some(number));
    }
}

/// As an operator types it; what it prints is what a script reads.
#[tokio::test]
async fn the_command_line_adds_moves_and_removes() {
    let cluster = Plan::new(4).prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    cluster.leader_among(&[1, 2, 3]).await;
    let members = async |words: &str| {
        let url = cluster.node(1).url();
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_eldest"));
        command.arg("members").args(words.split(' ')).env("ELDEST_URL", url).kill_on_drop(true);
        let output = command.output().await.expect("the binary runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).expect("text"))
    };
    let address = cluster.node(4).url().replace("http://", "");
    cluster.start(4);
    let (done, said) = members(&format!("add 4 {address} --wait")).await;
    assert!(done && said.contains("node 4 votes"), "{said}");
    let (done, said) = members("list").await;
    assert!(done && said.starts_with("cluster ") && said.lines().count() == 6, "{said}");
    let (done, said) = members("list --json").await;
    let listed: Value = serde_json::from_str(&said).expect("JSON");
    assert!(done && listed["members"][3]["votes"] == true, "{said}");
    let (done, said) = members("move 4 127.0.0.1:9").await;
    assert!(done && said.contains("node 4 is called at 127.0.0.1:9 from now on"), "{said}");
    let (done, said) = members("remove 4").await;
    assert!(done && said.contains("node 4 is removed"), "{said}");
    let (done, said) = members("remove 9").await;
    assert!(!done && said.contains("not_found"), "{said}");
    let (done, said) = members("add 5 a/b:9000").await;
    assert!(!done && said.contains("is no address of a node"), "{said}");
}

/// Five nodes; two come back with a file that names three, themselves among them.
#[tokio::test]
async fn a_smaller_topology_is_no_smaller_cluster() {
    let cluster = Cluster::brisk(5).await;
    cluster.write_doc("a", 1).await;
    for id in [1, 2] {
        cluster.kill9(id);
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    cluster.ready().await;
    for id in [1, 2] {
        let remark = cluster.status_of(id, "remark").await;
        let told = remark.as_str().is_some_and(|text| text.contains("names the nodes 1, 2, 3"));
        assert!(told, "{remark}");
    }
    for id in [3, 4, 5] {
        cluster.kill9(id);
    }
    wait_for("two of five are no majority", async || {
        let answer = cluster.answer(1, Call::put("/v1/docs/a").raw_json("2")).await;
        assert!(!answer.ok(), "two of five acknowledge: {}", answer.show());
        (answer.status == 503).then_some(())
    })
    .await;
    assert_eq!(cluster.read_doc(1, "a", "local").await, Some(1));
}

#[tokio::test]
async fn the_disk_of_an_earlier_cluster_stays_out() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("old", 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in 1..=3 {
        cluster.kill9(id);
    }
    for id in [1, 2] {
        cluster.wipe(id);
        cluster.start(id);
    }
    for id in [1, 2] {
        let form = Call::post("/form").json(&json!({"without": [3]}));
        wait_for("it is formed", async || {
            let answer = cluster.ask(id, &form).await.ok()?;
            (answer.ok() || answer.status == 409).then_some(())
        })
        .await;
    }
    let leader = cluster.leader_among(&[1, 2]).await;
    cluster.write_doc("new", 2).await;
    cluster.start(3);
    wait_for("it is refused by name", async || {
        let status = cluster.status(leader).await?;
        let trouble = status["members"][2]["trouble"].as_str()?.to_string();
        trouble.contains("wrong_cluster").then_some(())
    })
    .await;
    assert_eq!(cluster.status_of(3, "leader").await, Value::Null);
    assert_eq!(cluster.read_doc(3, "new", "local").await, None);

    // As it was told: the directory is moved away.
    cluster.kill9(3);
    cluster.wipe(3);
    cluster.start(3);
    cluster.counts(3).await;
    cluster.is_ready(3).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Whoever starts two of three is told what the cluster waits for, wherever they look.
#[tokio::test]
async fn a_cluster_that_waits_says_for_whom() {
    let cluster = Plan::new(3).prepare();
    let told = async |expected: &'static str| {
        wait_for("the status tells", async || {
            let remark = cluster.status(2).await?["remark"].as_str()?.to_string();
            remark.contains(expected).then_some(())
        })
        .await;
        wait_for("the refusal tells", async || {
            let refused = cluster.answer(2, Call::put("/v1/docs/a").raw_json("1")).await;
            assert_eq!(refused.status, 503, "{}", refused.show());
            refused.json()["detail"].as_str()?.contains(expected).then_some(())
        })
        .await;
        wait_for("the log tells", async || cluster.node(2).log_tail().contains(expected).then_some(())).await;
    };
    cluster.start(2);
    cluster.start(3);
    told("the cluster has never been formed and waits for node-1").await;
    cluster.start(1);
    cluster.leader_among(&[1]).await;
    cluster.write_doc("a", 1).await;
    wait_for("nothing is the matter any more", async || {
        cluster.status(2).await?["remark"].is_null().then_some(())
    })
    .await;
    cluster.kill9(1);
    cluster.kill9(3);
    told("2 of 3 nodes are needed").await;
}
