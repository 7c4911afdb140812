//! Available mode: every side of a split continues, and when they meet, nothing is lost (I12).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Network, Plan, wait_for};
use crate::load::Load;

pub const CONFIG: &str =
    "mode = \"available\"\ncluster_secret = \"the secret of these tests, long enough to pass\"";

/// A busy machine keeps its leaders with this: only a cut, or the end of a process, makes a side.
pub const PATIENCE: &str = "\ntiming.dead_after_ms = 3000\n";

pub async fn cluster_on(network: &Network) -> Arc<Cluster> {
    cluster_with(network, &[CONFIG, PATIENCE].concat()).await
}

pub async fn cluster_with(network: &Network, config: &str) -> Arc<Cluster> {
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers()).config(config);
    Arc::new(plan.start().await)
}

/// This node's side takes a write, which its own leader acknowledges.
pub async fn put(cluster: &Cluster, id: u32, key: &str, value: u32) {
    wait_for("a side takes writes", async || {
        let put = Call::put(format!("/v1/docs/{key}")).raw_json(&value.to_string());
        cluster.ask(id, &put).await.ok().filter(|answer| answer.ok())
    })
    .await;
}

/// This node's side does this once, after as many attempts as it takes.
async fn order(cluster: &Cluster, id: u32, call: Call) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let call = call.header("idempotency-key", format!("order-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    let answer = cluster.eventually_at(id, &call).await;
    assert!(answer.ok(), "{call:?} through n{id}: {}", answer.show());
}

async fn command(cluster: &Cluster, id: u32, name: &str, payload: Value) {
    order(cluster, id, Call::command(name, payload)).await;
}

/// Waits until these nodes have this leader.
async fn led_by(cluster: &Cluster, ids: &[u32], leader: u32) {
    for id in ids {
        wait_for("a side has its leader", async || {
            (cluster.status(*id).await?["leader"]["id"] == leader).then_some(())
        })
        .await;
    }
}

/// Waits until these nodes follow one of them, and returns it: an heir that comes forward later
/// than its `stagger` (on a busy machine) finds the next one leading, and does not take over
/// unless `takeover` says so.
async fn led_by_one_of(cluster: &Cluster, ids: &[u32]) -> u32 {
    wait_for("a side agrees on a leader", async || {
        let mut leaders = BTreeSet::new();
        for id in ids {
            leaders.insert(cluster.status(*id).await?["leader"]["id"].as_u64()?);
        }
        let leader = leaders.pop_first()?;
        let leader = ids.iter().copied().find(|id| u64::from(*id) == leader)?;
        leaders.is_empty().then_some(leader)
    })
    .await
}

/// Waits until all follow the node with the lowest id, have one state, and accept writes.
pub async fn one_again(cluster: &Cluster) {
    let all = cluster.running();
    led_by(cluster, &all, all[0]).await;
    all_take_writes(cluster).await;
}

async fn all_take_writes(cluster: &Cluster) {
    let all = cluster.running();
    put(cluster, all[0], "one-again", 1).await;
    cluster.equal_states(&all).await;
}

async fn json_of(cluster: &Cluster, id: u32, path: &str) -> Value {
    wait_for("an answer", async || {
        let answer = cluster.ask(id, &Call::get(path)).await.ok()?;
        answer.ok().then(|| answer.json())
    })
    .await
}

pub async fn conflicts(cluster: &Cluster, id: u32) -> Vec<Value> {
    json_of(cluster, id, "/v1/conflicts").await["items"].as_array().expect("a list").clone()
}

/// Node 1 is alone; returns the leader of the other side.
pub async fn split_in_two(network: &Network, cluster: &Cluster) -> u32 {
    network.split(&[1], &[2, 3]);
    led_by(cluster, &[1], 1).await;
    led_by_one_of(cluster, &[2, 3]).await
}

/// The seed's own scenario.
#[tokio::test]
async fn two_sides_go_on_and_become_one() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    command(&cluster, 1, "CreateElection", json!({"name": "board", "choices": ["x", "y"]})).await;
    for name in ["ann", "ben", "cem", "dan"] {
        command(&cluster, 1, "CreateUser", json!({"name": name})).await;
    }
    put(&cluster, 1, "shared", 0).await;
    put(&cluster, 1, "dropped", 0).await;
    split_in_two(&network, &cluster).await;
    let vote =
        |voter: &str, choice: &str| json!({"election_name": "board", "voter_name": voter, "choice": choice});
    put(&cluster, 1, "shared", 1).await;
    command(&cluster, 1, "CreateUser", json!({"name": "eva"})).await;
    command(&cluster, 1, "VoteElection", vote("ann", "x")).await;
    command(&cluster, 1, "VoteElection", vote("ben", "x")).await;
    order(&cluster, 1, Call::delete("/v1/docs/dropped")).await;
    put(&cluster, 3, "shared", 2).await;
    put(&cluster, 3, "theirs", 3).await;
    command(&cluster, 2, "CreateUser", json!({"name": "fay"})).await;
    command(&cluster, 2, "VoteElection", vote("ben", "y")).await;
    command(&cluster, 3, "VoteElection", vote("cem", "y")).await;
    network.heal();
    let healed = Instant::now();
    one_again(&cluster).await;
    println!("one again {} ms after the heal", healed.elapsed().as_millis());
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "shared", "linear").await, Some(1), "the elder's value");
        assert_eq!(cluster.read_doc(id, "theirs", "linear").await, Some(3));
        assert_eq!(
            cluster.read_doc(id, "dropped", "linear").await,
            None,
            "deleted, and not changed elsewhere"
        );
        for user in ["eva", "fay"] {
            let read = Call::get(format!("/v1/users/{user}"));
            cluster.eventually_at(id, &read).await.expect(200);
        }
        let board = json_of(&cluster, id, "/v1/elections/board").await;
        assert_eq!((&board["tally"], &board["votes"]), (&json!({"x": 2, "y": 1}), &json!(3)));
        let conflicts = conflicts(&cluster, id).await;
        let lost: Vec<_> = conflicts.iter().map(|entry| (&entry["kind"], &entry["lost"]["value"])).collect();
        assert_eq!(lost, [(&json!("doc"), &json!(2)), (&json!("vote"), &json!("y"))]);
    }
}

/// A value that lost can be applied again, and an entry that is dropped is gone.
#[tokio::test]
async fn what_was_overridden_can_be_put_back() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    split_in_two(&network, &cluster).await;
    for key in ["one", "two"] {
        put(&cluster, 1, key, 1).await;
        put(&cluster, 2, key, 2).await;
    }
    network.heal();
    one_again(&cluster).await;
    let ids: Vec<_> = conflicts(&cluster, 3).await.iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    for (id, verb) in ids.iter().zip(["apply", "drop"]) {
        let path = format!("/v1/conflicts/{}/{verb}", crate::harness::query(id.as_str().expect("a text")));
        order(&cluster, 2, Call::post(path)).await;
    }
    assert_eq!(cluster.read_doc(1, "one", "linear").await, Some(2));
    assert_eq!(cluster.read_doc(1, "two", "linear").await, Some(1));
    assert_eq!(conflicts(&cluster, 1).await, Vec::<Value>::new());
}

/// C18: a write that the lowest node alone acknowledged survives its return.
#[tokio::test]
async fn a_returning_elder_is_a_side_too() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    split_in_two(&network, &cluster).await;
    put(&cluster, 1, "alone", 1).await;
    cluster.kill9(1);
    put(&cluster, 2, "together", 2).await;
    network.heal();
    cluster.start(1);
    one_again(&cluster).await;
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "alone", "linear").await, Some(1));
        assert_eq!(cluster.read_doc(id, "together", "linear").await, Some(2));
    }
}

/// Three sides, of which two meet first.
#[tokio::test]
async fn three_sides_meet_in_every_order() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    for last in cluster.ids() {
        network.split(&[1], &[2, 3]);
        network.split(&[2], &[3]);
        for id in cluster.ids() {
            led_by(&cluster, &[id], id).await;
            put(&cluster, id, &format!("of-{id}-{last}"), id).await;
            put(&cluster, id, &format!("of-all-{last}"), id).await;
        }
        let first = cluster.others(last);
        network.mend(first[0], first[1]);
        led_by(&cluster, &first, first[0]).await;
        assert_eq!(
            cluster.read_doc(first[0], &format!("of-{}-{last}", first[1]), "linear").await,
            Some(u64::from(first[1]))
        );
        network.heal();
        one_again(&cluster).await;
        for id in cluster.ids() {
            assert_eq!(cluster.read_doc(1, &format!("of-{id}-{last}"), "linear").await, Some(u64::from(id)));
        }
        assert_eq!(
            cluster.read_doc(3, &format!("of-all-{last}"), "linear").await,
            Some(1),
            "{last} was last"
        );
    }
}

/// Cuts come and go, also in the middle of a merge, while clients write through every node.
#[tokio::test]
async fn cuts_come_and_go_under_load() {
    let Some(network) = Network::new(3) else { return };
    // Each of these cuts is shorter than the patience of the other tests.
    let cluster = cluster_with(&network, CONFIG).await;
    let load = Load::start(&cluster, "load");
    for (number, pause) in [1_500, 300, 700, 150, 1_200, 400, 90, 600].into_iter().enumerate() {
        let alone = number as u32 % 3 + 1;
        network.split(&[alone], &cluster.others(alone));
        tokio::time::sleep(Duration::from_millis(pause)).await;
        network.heal();
        tokio::time::sleep(Duration::from_millis(2_000 / (number as u64 + 1))).await;
    }
    let tally = load.end().await;
    println!("{}", tally.show());
    // An elder that a busy machine has kept silent for too long follows.
    led_by_one_of(&cluster, &cluster.running()).await;
    all_take_writes(&cluster).await;
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
}

/// If any node dies in the middle of a heal, the heal is repeated with the same result.
#[tokio::test]
async fn any_node_dies_while_sides_are_merged() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    for (round, victim) in [1, 2, 3, 1, 2].into_iter().enumerate() {
        network.split(&[1], &[2, 3]);
        led_by_one_of(&cluster, &[2, 3]).await;
        led_by_one_of(&cluster, &[1]).await;
        put(&cluster, 1, &format!("one-{round}"), 1).await;
        put(&cluster, 2, &format!("two-{round}"), 2).await;
        let before = cluster.status_of(2, "epoch").await;
        network.heal();
        if round > 0 {
            // The node is killed as soon as the merge can be seen anywhere: the service
            // stops, or an epoch begins.
            wait_for("a merge is under way", async || {
                let status = cluster.status(2).await?;
                (status["service_down"] == true || status["epoch"] != before).then_some(())
            })
            .await;
        }
        cluster.kill9(victim);
        cluster.start(victim);
        led_by_one_of(&cluster, &cluster.running()).await;
        all_take_writes(&cluster).await;
        for id in cluster.ids() {
            assert_eq!(cluster.read_doc(id, &format!("one-{round}"), "linear").await, Some(1));
            assert_eq!(cluster.read_doc(id, &format!("two-{round}"), "linear").await, Some(2));
        }
    }
}

/// The same split in safe mode: the minority refuses, and there is never a conflict.
#[tokio::test]
async fn in_safe_mode_there_is_one_side() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_with(&network, &[&CONFIG.replace("available", "safe"), PATIENCE].concat()).await;
    network.split(&[1], &[2, 3]);
    let leader = led_by_one_of(&cluster, &[2, 3]).await;
    wait_for("the minority refuses", async || {
        let write = cluster.answer(1, Call::put("/v1/docs/k").raw_json("1")).await;
        (write.status == 503 && write.json()["code"] == "no_quorum").then_some(())
    })
    .await;
    put(&cluster, 2, "k", 2).await;
    network.heal();
    led_by(&cluster, &[1], leader).await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(conflicts(&cluster, 1).await, Vec::<Value>::new());
}
