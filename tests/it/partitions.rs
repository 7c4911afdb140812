//! Partitions of a real network: packets that do not arrive, in both directions and in one.

use std::sync::Arc;

use serde_json::Value;

use crate::harness::{Call, Cluster, Network, Plan, problem, wait_for, watch_for};
use crate::load::Load;

/// Beyond loopback a node requires a secret.
pub const SECRET: &str = "cluster_secret = \"the secret of these tests, long enough to pass\"";

/// For tests in which a leader may change at any time.
const SHORT: u32 = 1_000;

/// A busy machine keeps its leader with this: only a cut changes it.
const PATIENT: u32 = 4_000;

async fn cluster_on(network: &Network, dead_after_ms: u32) -> Arc<Cluster> {
    let config = format!("{SECRET}\ntiming.dead_after_ms = {dead_after_ms}");
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers()).config(&config);
    Arc::new(plan.start().await)
}

/// Writes and linear reads are refused, because there is no majority.
async fn refuses(cluster: &Cluster, id: u32) {
    wait_for("a minority refuses", async || {
        // Its round begins after the cut, so no reply to that can come. The read comes first: a leader that
        // was cut off a moment ago steps down while the write waits.
        let read = cluster.answer(id, Call::get("/v1/docs/before")).await;
        assert!(!read.ok(), "a minority answers a linear read: {}", read.show());
        // A write that reached the log of such a leader may still be applied.
        let put = Call::put("/v1/docs/perhaps").raw_json("1");
        let write = cluster.answer(id, put).await;
        assert!(!write.ok(), "a minority acknowledged: {}", write.show());
        (write.status == 503 && read.status == 503).then_some(write)
    })
    .await;
    let write = cluster.answer(id, Call::put("/v1/docs/minority").raw_json("1")).await;
    let code = write.json()["code"].as_str().expect("a code").to_string();
    assert!(["no_quorum", "no_leader"].contains(&code.as_str()), "{}", write.show());
    problem(&write, 503, &code);
    assert!(!cluster.says_it_leads(id).await);
}

async fn write_through(cluster: &Cluster, id: u32, key: &str) {
    wait_for("the majority takes writes", async || {
        let put = Call::put(format!("/v1/docs/{key}")).raw_json("1");
        cluster.ask(id, &put).await.ok().filter(|answer| answer.ok())
    })
    .await;
}

/// This node still leads in this epoch, and all nodes come to see that: a node that returns follows,
/// since `takeover` is never.
async fn goes_on(cluster: &Cluster, leader: u32, epoch: &Value) {
    assert_eq!(cluster.leader().await, leader, "somebody else leads");
    assert_eq!(cluster.status_of(leader, "epoch").await, *epoch, "the leader was unseated");
    for id in cluster.ids() {
        watch_for("a node sees who leads", async || {
            let seen = cluster.status_of(id, "epoch").await;
            if seen == *epoch { Ok(()) } else { Err(format!("n{id}: {seen}, not {epoch}")) }
        })
        .await;
    }
}

async fn all_is_well(cluster: &Arc<Cluster>, load: Load) {
    cluster.ready().await;
    write_through(cluster, 1, "healed").await;
    let tally = load.end().await;
    println!("{}", tally.show());
    for id in cluster.ids() {
        tally.verify(cluster, id).await;
        assert_eq!(cluster.read_doc(id, "minority", "linear").await, None, "refused, and there it is");
    }
    let all: Vec<u32> = cluster.ids().collect();
    cluster.equal_states(&all).await;
}

#[tokio::test]
async fn the_leader_is_isolated() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network, PATIENT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    let old = cluster.leader().await;
    let others = cluster.others(old);
    network.split(&[old], &others);
    let new = cluster.leader_among(&others).await;
    write_through(&cluster, others[1], "during").await;
    refuses(&cluster, old).await;
    let epoch = cluster.status_of(new, "epoch").await;
    network.heal();
    cluster.is_ready(old).await;
    goes_on(&cluster, new, &epoch).await;
    assert_eq!(cluster.read_doc(old, "during", "linear").await, Some(1));
    all_is_well(&cluster, load).await;
}

#[tokio::test]
async fn a_follower_is_isolated() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network, PATIENT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    let leader = cluster.leader().await;
    let epoch = cluster.status_of(leader, "epoch").await;
    let [alone, other] = cluster.others(leader)[..] else { unreachable!("three nodes") };
    network.split(&[alone], &[leader, other]);
    refuses(&cluster, alone).await;
    write_through(&cluster, other, "during").await;
    network.heal();
    cluster.is_ready(alone).await;
    goes_on(&cluster, leader, &epoch).await;
    all_is_well(&cluster, load).await;
}

#[tokio::test]
async fn five_nodes_split_in_two_and_three() {
    let Some(network) = Network::new(5) else { return };
    let cluster = cluster_on(&network, PATIENT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    network.split(&[1, 2], &[3, 4, 5]);
    let new = cluster.leader_among(&[3, 4, 5]).await;
    write_through(&cluster, 4, "during").await;
    refuses(&cluster, 1).await;
    refuses(&cluster, 2).await;
    let epoch = cluster.status_of(new, "epoch").await;
    network.heal();
    for id in [1, 2] {
        cluster.is_ready(id).await;
        assert_eq!(cluster.read_doc(id, "during", "linear").await, Some(1));
    }
    goes_on(&cluster, new, &epoch).await;
    all_is_well(&cluster, load).await;
}

/// The link between two nodes is cut: both still reach a majority, and one leader is enough.
#[tokio::test]
async fn one_link_is_cut() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network, SHORT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    let leader = cluster.leader().await;
    let [second, third] = cluster.others(leader)[..] else { unreachable!("three nodes") };
    network.split(&[leader], &[third]);
    write_through(&cluster, second, "one").await;
    network.heal();
    network.split(&[second], &[third]);
    write_through(&cluster, second, "two").await;
    write_through(&cluster, third, "three").await;
    network.heal();
    all_is_well(&cluster, load).await;
}

/// First a node that cannot call but can be called, then the reverse.
#[tokio::test]
async fn calls_pass_in_one_direction_only() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network, SHORT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    for round in 0..3 {
        let leader = cluster.leader().await;
        let others = cluster.others(leader);
        match round {
            0 => others.iter().for_each(|other| network.cut_calls(leader, *other)),
            1 => others.iter().for_each(|other| network.cut_calls(*other, leader)),
            _ => network.cut_calls(leader, others[1]),
        }
        // A node that cannot call the leader cannot forward anything.
        let through = if round == 1 { leader } else { others[0] };
        write_through(&cluster, through, &format!("round-{round}")).await;
        network.heal();
        cluster.ready().await;
    }
    all_is_well(&cluster, load).await;
}

#[tokio::test]
async fn all_links_are_cut_and_healed_in_turn() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network, SHORT).await;
    cluster.write_doc("before", 1).await;
    let load = Load::start(&cluster, "load");
    for first_healed in cluster.ids() {
        network.split(&[1], &[2, 3]);
        network.split(&[2], &[3]);
        for id in cluster.ids() {
            refuses(&cluster, id).await;
        }
        network.heal();
        // One of them stays cut off while the others find each other.
        let rest = cluster.others(first_healed);
        network.split(&[first_healed], &rest);
        write_through(&cluster, rest[0], &format!("without-{first_healed}")).await;
        network.heal();
        cluster.ready().await;
    }
    all_is_well(&cluster, load).await;
}
