//! The log says which nodes belong to the cluster: nodes are added and removed while it runs, a topology file
//! that says something else changes nothing, and the disk of an earlier cluster of the same name stays out.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Plan, problem, wait_for};

async fn change(cluster: &Cluster, at: u32, body: &Value) -> Answer {
    cluster.answer(at, Call::post("/v1/members").json(body)).await
}

/// Waits until the change is accepted: the previous one may still be under way. A removal of unknown outcome
/// was made if the node is not found any more.
async fn changed(cluster: &Cluster, at: u32, body: &Value) {
    let mut unknown = false;
    wait_for("the members change", async || {
        let answer = change(cluster, at, body).await;
        let made = answer.ok() || unknown && answer.status == 404;
        unknown |= answer.status == 504;
        assert!(made || [503, 504].contains(&answer.status), "{}", answer.show());
        made.then_some(())
    })
    .await;
}

/// It only makes a test fail: the bound for one run of the command line.
const COMMAND_MOST: Duration = Duration::from_secs(120);

/// Runs `eldest members` with these words against the node at this address; returns
/// its success and its output.
async fn members(url: &str, words: &str) -> (bool, String) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_eldest"));
    command.arg("members").args(words.split(' ')).env("ELDEST_URL", url).kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_MOST, command.output()).await;
    let output =
        output.unwrap_or_else(|_| panic!("`members {words}` does not end")).expect("the binary runs");
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).expect("text"))
}

/// The same for a change: repeats it until the previous one is on a majority of the disks.
async fn members_changed(url: &str, words: &str) -> String {
    wait_for("the change before is committed", async || {
        let (done, said) = members(url, words).await;
        assert!(done || said.contains("members_changing"), "{said}");
        done.then_some(said)
    })
    .await
}

/// A node answers, whether or not it belongs to the cluster.
async fn starts(cluster: &Cluster, id: u32) {
    cluster.start(id);
    wait_for("it answers", async || cluster.ask(id, &Call::get("/livez")).await.ok()).await;
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
    starts(&cluster, 4).await;
    // Any node takes the call, and a repeated call changes nothing.
    changed(&cluster, 2, &add).await;
    changed(&cluster, 1, &add).await;
    votes(&cluster, leader, 4).await;
    cluster.counts(4).await;

    // The leader is removed: it hands over first. It ends by itself, and says why.
    let stays: Vec<u32> = [1, 2, 3].into_iter().filter(|id| *id != leader).collect();
    changed(&cluster, stays[1], &json!({"remove": leader})).await;
    let ended = wait_for("the one that was removed ends", async || cluster.node(leader).ended()).await;
    assert_eq!(ended.code(), Some(70));
    assert!(cluster.node(leader).log_tail().contains("has been removed from the cluster"));

    // One of the three that are left dies, and the new one is needed.
    cluster.kill9(stays[1]);
    cluster.write_doc("after", 1).await;
    for number in 0..30 {
        assert_eq!(cluster.read_doc(4, &format!("d/{number}"), "linear").await, Some(number));
    }
}

/// The test types what an operator types; a script can read the output.
#[tokio::test]
async fn the_command_line_adds_moves_and_removes() {
    let cluster = Plan::new(4).prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    cluster.leader_among(&[1, 2, 3]).await;
    let url = cluster.node(1).url();
    let address = cluster.node(4).url().replace("http://", "");
    starts(&cluster, 4).await;
    let said = members_changed(&url, &format!("add 4 {address} --wait")).await;
    assert!(said.contains("node 4 votes"), "{said}");
    let (done, said) = members(&url, "list").await;
    assert!(done && said.starts_with("cluster ") && said.lines().count() == 6, "{said}");
    let (done, said) = members(&url, "list --json").await;
    let listed: Value = serde_json::from_str(&said).expect("JSON");
    assert!(done && listed["members"][3]["votes"] == true, "{said}");
    let said = members_changed(&url, "move 4 127.0.0.1:9").await;
    assert!(said.contains("node 4 is now called at 127.0.0.1:9"), "{said}");
    wait_for("every node calls it there", async || {
        for id in 1..=3 {
            let listed = cluster.answer(id, Call::get("/v1/members")).await.expect(200).json();
            if listed["members"][3]["url"] != "http://127.0.0.1:9" {
                return None;
            }
        }
        Some(())
    })
    .await;
    let said = members_changed(&url, "remove 4").await;
    assert!(said.contains("node 4 is removed"), "{said}");
    let (done, said) = members(&url, "remove 9").await;
    assert!(!done && said.contains("not_found"), "{said}");
    let (done, said) = members(&url, "add 5 a/b:9000").await;
    assert!(!done && said.contains("is not a node's address"), "{said}");
}

/// A wrong address in the log would count against every majority.
#[tokio::test]
async fn only_a_node_that_answers_as_itself_is_added() {
    let cluster =
        Plan::new(5).config("cluster_secret = \"the secret of this cluster, 0123456789\"").prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    cluster.leader_among(&[1, 2, 3]).await;
    let address = |id: u32| cluster.node(id).url().replace("http://", "");
    let refused = async |id: u32, address: &str, rule: &str| {
        let add = json!({"add": {"id": id, "address": address}});
        let said = wait_for("the leader has asked", async || {
            let answer = change(&cluster, 2, &add).await;
            (answer.status == 409).then(|| problem(&answer, 409, "rule_violated"))
        })
        .await;
        assert_eq!(said["rule"], rule, "{said}");
        said["detail"].as_str().expect("a text").to_string()
    };
    let said = refused(4, &address(4), "not_reached").await;
    assert!(said.contains("no answer:"), "{said}");
    let said = refused(4, &address(2), "another_node").await;
    assert!(said.contains("this is node 2"), "{said}");
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let somewhere = other.local_addr().expect("it is bound").to_string();
    let page = axum::Router::new().fallback(|| async { "It works!" });
    let server = tokio::spawn(async move { axum::serve(other, page).await });
    let said = refused(4, &somewhere, "another_node").await;
    assert!(said.contains("not an Eldest node"), "{said}");
    server.abort();
    cluster.configure(4, "cluster_secret = \"the secret of another one, 0123456789\"");
    starts(&cluster, 4).await;
    let said = refused(4, &address(4), "another_node").await;
    assert!(said.contains("unauthorized"), "{said}");
    cluster.kill9(4);
    cluster.configure(4, "");
    starts(&cluster, 4).await;
    let said = refused(4, &address(4), "another_node").await;
    assert!(said.contains("it has no secret"), "{said}");
    cluster.kill9(4);
    for id in 1..=3 {
        assert_eq!(listed(&cluster, id).await, 3, "none of them is in the log of n{id}");
    }

    // The node is added by force, and in the right way.
    let url = cluster.node(1).url();
    let (done, said) = members(&url, &format!("add 4 {}", address(4))).await;
    assert!(!done && said.contains("--force"), "{said}");
    members_changed(&url, &format!("add 4 {} --force", address(4))).await;
    members_changed(&url, "remove 4").await;
    starts(&cluster, 5).await;
    members_changed(&url, &format!("add 5 {} --wait", address(5))).await;
}

async fn listed(cluster: &Cluster, at: u32) -> usize {
    let listed = cluster.answer(at, Call::get("/v1/members")).await.expect(200).json();
    listed["members"].as_array().map_or(0, Vec::len)
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
        wait_for("a node says what is wrong with its file", async || {
            let remark = cluster.status_of(id, "remark").await;
            remark.as_str()?.contains("names the nodes 1, 2, 3").then_some(())
        })
        .await;
    }
    // A node that has restarted learns from a leader what is committed: it has to know that
    // before there is no leader.
    cluster.equal_states(&[1, 2, 3, 4, 5]).await;
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

    // The operator follows the advice: the directory is moved away.
    cluster.kill9(3);
    cluster.wipe(3);
    cluster.start(3);
    cluster.counts(3).await;
    cluster.is_ready(3).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// An operator who starts two of three nodes learns what the cluster waits for: from the
/// status, a refusal and the log.
#[tokio::test]
async fn a_cluster_that_waits_says_for_whom() {
    let cluster = Plan::new(3).prepare();
    let told = async |id: u32, expected: &'static str| {
        wait_for("the status tells", async || {
            let remark = cluster.status(id).await?["remark"].as_str()?.to_string();
            remark.contains(expected).then_some(())
        })
        .await;
        wait_for("the refusal tells", async || {
            let refused = cluster.answer(id, Call::put("/v1/docs/a").raw_json("1")).await;
            // A call that was under way to a leader when the leader died has an unknown outcome.
            assert!([503, 504].contains(&refused.status), "{}", refused.show());
            let tells = refused.status == 503 && refused.json()["detail"].as_str()?.contains(expected);
            tells.then_some(())
        })
        .await;
        wait_for("the log tells", async || cluster.node(id).log_tail().contains(expected).then_some(()))
            .await;
    };
    cluster.start(2);
    cluster.start(3);
    told(2, "the cluster has never been formed and is waiting for node-1").await;
    cluster.start(1);
    let leader = cluster.leader().await;
    cluster.write_doc("a", 1).await;
    // A follower notices at once that its leader's process is dead; a leader waits for its followers.
    let left = cluster.others(leader)[0];
    wait_for("nothing is the matter any more", async || {
        cluster.status(left).await?["remark"].is_null().then_some(())
    })
    .await;
    cluster.others(left).into_iter().for_each(|id| cluster.kill9(id));
    told(left, "2 of 3 nodes are needed").await;
}
