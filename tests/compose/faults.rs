//! Faults of containers, one after the other, each while clients write.

use crate::cluster::{Cluster, NODES};
use crate::writers::Writers;

/// Enough that every writer gets its turn before and after the fault.
const SOME: u64 = 40;

pub async fn leader_killed(cluster: &Cluster) {
    let writers = Writers::start("the leader is killed", &cluster.client);
    writers.more(SOME).await;
    let leader = cluster.leader().await;
    cluster.kill(leader);
    cluster.leader_among(&cluster.followers(leader)).await;
    writers.more(SOME).await;
    cluster.start(leader);
    writers.end(cluster).await;
}

/// A frozen process keeps its connections and its port, so only its silence reveals it.
pub async fn leader_frozen(cluster: &Cluster) {
    let writers = Writers::start("the leader is frozen", &cluster.client);
    writers.more(SOME).await;
    let leader = cluster.leader().await;
    cluster.freeze(leader);
    cluster.leader_among(&cluster.followers(leader)).await;
    writers.more(SOME).await;
    cluster.thaw(leader);
    writers.end(cluster).await;
}

pub async fn leader_cut_off(cluster: &Cluster) {
    let writers = Writers::start("the leader is cut off", &cluster.client);
    writers.more(SOME).await;
    let leader = cluster.leader().await;
    cluster.cut(leader);
    let refused = cluster.refuses_within(leader).await;
    cluster.leader_among(&cluster.followers(leader)).await;
    writers.more(SOME).await;
    cluster.mend(leader);
    writers.end(cluster).await;
    cluster.lacks(&refused).await;
}

pub async fn follower_cut_off(cluster: &Cluster) {
    let writers = Writers::start("a follower is cut off", &cluster.client);
    let leader = cluster.leader().await;
    let [follower, _] = cluster.followers(leader);
    cluster.cut(follower);
    let refused = cluster.refuses_within(follower).await;
    writers.more(SOME).await;
    cluster.mend(follower);
    writers.end(cluster).await;
    cluster.lacks(&refused).await;
}

/// No node has a majority, so no node accepts a write. Everything works again when one more node is back.
pub async fn leader_left_alone(cluster: &Cluster) {
    let leader = cluster.leader().await;
    let followers = cluster.followers(leader);
    followers.iter().for_each(|&node| cluster.cut(node));
    let mut refused = Vec::new();
    for node in NODES {
        refused.push(cluster.refuses_within(node).await);
    }
    cluster.mend(followers[0]);
    let writers = Writers::start("the majority is back", &cluster.client);
    writers.more(SOME).await;
    cluster.mend(followers[1]);
    writers.end(cluster).await;
    for key in refused {
        cluster.lacks(&key).await;
    }
}

pub async fn rolling_restart(cluster: &Cluster) {
    let writers = Writers::start("every node is restarted", &cluster.client);
    for node in NODES {
        writers.more(SOME).await;
        cluster.restart(node);
        cluster.ready(node).await;
    }
    writers.more(SOME).await;
    writers.end(cluster).await;
}

/// Every node is killed at once; the disks stay as they were.
pub async fn power_failure(cluster: &Cluster) {
    let writers = Writers::start("all power fails", &cluster.client);
    writers.more(SOME).await;
    NODES.iter().for_each(|&node| cluster.kill(node));
    NODES.iter().for_each(|&node| cluster.start(node));
    writers.more(SOME).await;
    writers.end(cluster).await;
}
