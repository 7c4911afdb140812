//! The three levels of reading, and the answers to the probes of load balancers.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Call, Cluster, Plan, problem, wait_for, watch_for};

#[tokio::test]
async fn every_level_answers_on_every_node() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 5).await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        for level in ["linear", "leader", "local"] {
            // The lease of a leader may lapse for a moment, and with it `level=leader`.
            let call = Call::get(format!("/v1/docs/k?level={level}"));
            let answer = cluster.eventually_at(id, &call).await.expect(200);
            assert_eq!(answer.json(), json!(5), "{level}");
            if level == "local" {
                let age = answer.header("eldest-age-ms").expect("the age of a local read");
                age.parse::<u64>().expect("milliseconds");
            }
        }
        let odd = cluster.answer(id, Call::get("/v1/docs/k?level=newest")).await;
        let refused = problem(&odd, 400, "bad_field");
        assert!(refused["detail"].as_str().expect("a detail").contains("level"), "{refused}");
    }
}

#[tokio::test]
async fn a_local_read_needs_nobody() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 5).await;
    cluster.equal_states(&[1, 2, 3]).await;
    cluster.kill9(1);
    cluster.kill9(2);
    wait_for("no leader, no read at the leader's level", async || {
        let leader = cluster.status(3).await?["leader"].clone();
        let answer = cluster.answer(3, Call::get("/v1/docs/k?level=leader")).await;
        (leader.is_null() && answer.status == 503).then_some(())
    })
    .await;
    let local = async || {
        let answer = cluster.answer(3, Call::get("/v1/docs/k?level=local")).await.expect(200);
        assert_eq!(answer.json(), json!(5));
        answer.header("eldest-age-ms").and_then(|age| age.parse::<u64>().ok()).expect("an age")
    };
    let first = local().await;
    wait_for("it grows old", async || (local().await > first).then_some(())).await;
    cluster.answer(3, Call::get("/v1/docs/k")).await.expect(503);
}

/// Local reads share a view of the state. It must be gone before the leader answers a write.
#[tokio::test]
async fn the_leader_shows_what_it_has_acknowledged() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let reads = async {
        loop {
            cluster.answer(leader, Call::get("/v1/docs/other?level=local")).await.expect(404);
        }
    };
    let writes = async {
        for number in 1..=200 {
            let written = cluster.answer(leader, Call::put("/v1/docs/k").json(&json!(number))).await;
            assert!(written.ok(), "{}", written.show());
            // The promise ends where another node leads.
            if written.header("eldest-leader") == Some(leader.to_string().as_str()) {
                let read = cluster.answer(leader, Call::get("/v1/docs/k?level=local")).await.expect(200);
                assert_eq!(read.json(), json!(number));
            }
        }
    };
    tokio::select! {
        () = writes => {}
        () = reads => {}
    }
}

/// Waits until the probes agree, and returns the leader. Another node may come to lead
/// between two of these calls.
async fn all_are_ready_and_one_leads(cluster: &Cluster) -> u32 {
    watch_for("all nodes are ready and one leads", async || {
        let leader = cluster.leader().await;
        for id in cluster.ids() {
            cluster.answer(id, Call::get("/livez")).await.expect(200);
            for (path, yes) in [("/readyz", true), ("/leader", id == leader)] {
                let answer = cluster.answer(id, Call::get(path)).await;
                assert!([200, 503].contains(&answer.status), "n{id}: {}", answer.show());
                if (answer.status == 200) != yes {
                    return Err(format!("n{leader} leads; n{id} says to {path}: {}", answer.show()));
                }
            }
        }
        Ok(leader)
    })
    .await
}

#[tokio::test]
async fn probes_tell_alive_from_ready_from_leading() {
    let cluster = Cluster::brisk(3).await;
    let leader = all_are_ready_and_one_leads(&cluster).await;
    cluster.others(leader).iter().for_each(|id| cluster.kill9(*id));
    wait_for("neither ready nor leading", async || {
        let ready = cluster.answer(leader, Call::get("/readyz")).await;
        let leads = cluster.answer(leader, Call::get("/leader")).await;
        (ready.status == 503 && leads.status == 503).then_some(())
    })
    .await;
    cluster.answer(leader, Call::get("/livez")).await.expect(200);
}

#[tokio::test]
async fn status_shows_every_member_from_this_nodes_view() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 5).await;
    let leader = cluster.leader().await;
    for id in cluster.ids() {
        let status = wait_for("all are reachable", async || {
            let status = cluster.status(id).await?;
            let members = status["members"].as_array()?;
            members.iter().all(|member| member["reachable"] == true).then_some(status.clone())
        })
        .await;
        assert_eq!(status["cluster"], "it", "{status}");
        assert_eq!(status["mode"], "safe", "{status}");
        assert_eq!(status["node"], json!({"id": id, "name": format!("node-{id}")}), "{status}");
        assert_eq!(status["role"], if id == leader { "leader" } else { "follower" }, "{status}");
        assert_eq!(status["leader"]["id"], leader, "{status}");
        assert_eq!(status["leader"]["url"], cluster.node(leader).url(), "{status}");
        let ids: Vec<u64> = status["members"]
            .as_array()
            .expect("members")
            .iter()
            .map(|member| member["id"].as_u64().expect("an id"))
            .collect();
        assert_eq!(ids, [1, 2, 3], "{status}");
        for member in ["commit_index", "applied_index", "last_index", "snapshot_id"] {
            assert!(status[member].is_u64(), "{member}: {status}");
        }
        for member in ["epoch", "digest"] {
            assert!(status[member].is_string(), "{member}: {status}");
        }
    }
    let dead = cluster.others(leader)[0];
    cluster.kill9(dead);
    cluster.sees(leader, dead, false).await;
}

/// A beat comes every two minutes, which is longer than any wait of this test, and a lease lasts half a
/// second: no call waits for a beat.
#[tokio::test]
async fn where_beats_are_rare_nobody_waits_for_one() {
    let rare = "timing.heartbeat_ms = 120000\ntiming.dead_after_ms = 360000\ntiming.lease_ms = 500";
    let cluster = Plan::new(3).brisk().config(rare).start().await;
    let leader = cluster.leader().await;
    // A follower learns of the commit right after the write, without a beat; its feed
    // depends on the same message.
    for number in 1..=3 {
        cluster.write_doc("k", number).await;
        for id in cluster.others(leader) {
            wait_for("the follower hears of it", async || {
                (cluster.read_doc(id, "k", "local").await == Some(number)).then_some(())
            })
            .await;
        }
    }
    // This goes through several leases, each of which lapses before the next beat.
    let until = Instant::now() + Duration::from_millis(1_700);
    while Instant::now() < until {
        // On a busy machine a lease may lapse between the round that proves it and the answer.
        assert_eq!(cluster.leader().await, leader);
        assert_eq!(cluster.read_doc(leader, "k", "leader").await, Some(3));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.kill9(leader);
    cluster.leader().await;
    cluster.write_doc("k", 4).await;
}
