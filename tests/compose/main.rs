//! The cluster of `docker-compose.yml`, in containers, with the faults that only a real network and a real kernel
//! have: a leader killed, cables pulled, processes frozen, every node restarted in turn while clients write.
//!
//! The test needs a container engine and fails where there is none, so that silence is not mistaken
//! for success; `ELDEST_SKIP_COMPOSE=1` declares that there is no engine. It is one test, because
//! there is one cluster at a time.

mod client;
mod cluster;
mod engine;
mod faults;
mod sides;
#[path = "../docs/turn.rs"]
mod turn;
mod writers;

use cluster::Cluster;

#[test]
fn acknowledged_writes_survive_what_happens_to_containers() {
    if std::env::var("ELDEST_SKIP_COMPOSE").is_ok_and(|value| value == "1") {
        println!("ELDEST_SKIP_COMPOSE=1: nothing was tested, by request");
        return;
    }
    engine::require();
    // The names, the addresses and the image exist once on a machine.
    let _turn = turn::wait_for_turn(&std::env::temp_dir().join("eldest-compose.lock"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let cluster = Cluster::up("safe").await;
        faults::leader_killed(&cluster).await;
        faults::leader_frozen(&cluster).await;
        faults::leader_cut_off(&cluster).await;
        faults::follower_cut_off(&cluster).await;
        faults::leader_left_alone(&cluster).await;
        faults::rolling_restart(&cluster).await;
        faults::power_failure(&cluster).await;
        drop(cluster);
        let cluster = Cluster::up("available").await;
        sides::the_eldest_is_cut_off(&cluster).await;
        sides::everybody_is_alone(&cluster).await;
    });
}

/// The files that are shipped are the files that were tested.
#[test]
fn the_topology_matches_the_compose_file() {
    let topology = engine::read("config/compose-topology.json");
    let compose = engine::read("docker-compose.yml");
    for node in cluster::NODES {
        let address = cluster::address(node);
        assert!(topology.contains(&format!("\"ip\": \"{address}\", \"id\": {node}")), "{topology}");
        assert!(compose.contains(&format!("ipv4_address: {address}")), "{compose}");
        assert!(compose.contains(&format!("127.0.0.1:{}:9000", client::port(node))), "{compose}");
    }
}
