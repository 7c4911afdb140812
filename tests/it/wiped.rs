//! A disk is replaced: the node comes back empty, and does not vote until the others have admitted it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::{Call, Cluster, Plan, eldest, problem, wait_for};

#[tokio::test]
async fn a_wiped_node_rejoins_and_then_carries_its_part() {
    let cluster = Cluster::of(3).await;
    for number in 0..30 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    cluster.kill9(3);
    cluster.wipe(3);
    cluster.start(3);
    cluster.counts(3).await;
    cluster.is_ready(3).await;
    cluster.equal_states(&[1, 2, 3]).await;

    // Now it must have everything: one of the two others goes.
    let leader = cluster.leader().await;
    cluster.kill9(if leader == 3 { 1 } else { leader });
    cluster.write_doc("after", 1).await;
    for number in 0..30 {
        assert_eq!(cluster.read_doc(3, &format!("d/{number}"), "linear").await, Some(number));
    }
}

/// n1 and an empty n3 are two of three, and still no majority: n3 may have acknowledged a record that only
/// its old disk had (counterexample 2).
#[tokio::test]
async fn an_empty_disk_is_no_part_of_a_majority() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("a", 1).await;
    let leader = cluster.leader().await;
    let [dead, wiped] = cluster.others(leader)[..] else { unreachable!("three nodes") };
    cluster.kill9(dead);
    cluster.kill9(wiped);
    cluster.wipe(wiped);
    cluster.start(wiped);
    // It is up and talks to the leader.
    cluster.sees(leader, wiped, true).await;
    wait_for("they are no majority", async || {
        let put = Call::put("/v1/docs/refused").raw_json("9");
        let answer = cluster.answer(leader, put).await;
        assert!(!answer.ok(), "acknowledged with an empty disk: {}", answer.show());
        (answer.status == 503).then_some(())
    })
    .await;
    for id in [leader, wiped] {
        let answer = cluster.answer(id, Call::get("/v1/docs/a")).await;
        assert_eq!(answer.status, 503, "a linear read without a majority: {}", answer.show());
        assert!(!cluster.says_it_leads(id).await);
    }
    assert_eq!(cluster.status_of(wiped, "admitted").await, false);

    cluster.start(dead);
    cluster.counts(wiped).await;
    assert_eq!(cluster.read_doc(wiped, "a", "linear").await, Some(1));
    cluster.equal_states(&[1, 2, 3]).await;
}

/// If the disks are replaced one after the other, with time between, nothing is lost.
#[tokio::test]
async fn all_disks_are_replaced_one_after_the_other() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("a", 1).await;
    for id in cluster.ids() {
        cluster.term(id).await;
        cluster.wipe(id);
        cluster.start(id);
        cluster.counts(id).await;
        cluster.is_ready(id).await;
        cluster.equal_states(&[1, 2, 3]).await;
    }
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "a", "linear").await, Some(1));
    }
}

/// A cluster forms once, and only after every node of its topology has been heard (counterexample 3).
#[tokio::test]
async fn a_cluster_does_not_form_without_all_its_nodes() {
    let cluster = Plan::new(3).prepare();
    cluster.start(1);
    cluster.start(2);
    cluster.sees(1, 2, true).await;
    let put = Call::put("/v1/docs/a").raw_json("1");
    let answer = cluster.answer(1, put).await;
    problem(&answer, 503, answer.json()["code"].as_str().expect("a code"));
    assert!(!cluster.says_it_leads(1).await && !cluster.says_it_leads(2).await);
    cluster.start(3);
    cluster.ready().await;
    cluster.write_doc("a", 2).await;
    assert_eq!(cluster.read_doc(3, "a", "linear").await, Some(2));
}

/// A directory that was named by mistake stays unchanged: its names, modes and lengths.
#[tokio::test]
async fn a_directory_that_is_refused_stays_as_it_is() {
    let cluster = Cluster::of(1).await;
    cluster.write_doc("k", 1).await;
    cluster.term(1).await;
    let topology = cluster.folder().join("other.json");
    fs::write(&topology, cluster.topology().called("other").text(1)).expect("a file");
    let foreign = cluster.folder().join("foreign");
    fs::create_dir(&foreign).expect("a folder");
    fs::write(foreign.join("report.txt"), "kept").expect("a file");
    for (dir, why) in [(&cluster.node(1).data, "belongs to cluster"), (&foreign, "report.txt")] {
        open_to_others(dir);
        let before = state_of(dir);
        let [data, topology] = [dir, &topology].map(|path| path.display().to_string());
        let refused = eldest(&["serve", "--topology", &topology, "--node", "1", "--data", &data]);
        let said = String::from_utf8_lossy(&refused.stderr).to_string();
        assert!(!refused.status.success() && said.contains(why), "{refused:?}");
        assert_eq!(state_of(dir), before);
    }
}

fn open_to_others(path: &Path) {
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    below(path).iter().for_each(|inner| open_to_others(inner));
}

/// Every path with its mode and length.
fn state_of(path: &Path) -> Vec<String> {
    let metadata = fs::metadata(path).expect("it is there");
    let own = format!("{} {:o} {}", path.display(), metadata.permissions().mode(), metadata.len());
    let inner = below(path).into_iter().flat_map(|inner| state_of(&inner));
    [own].into_iter().chain(inner).collect()
}

fn below(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}
