//! An older copy of a data directory is put back, as a snapshot of the machine or an rsync in place does: the
//! incarnation is the same, and the disk has forgotten what it acknowledged (P27).

use std::fs;
use std::path::Path;

use crate::harness::{Cluster, Plan, wait_for};
use crate::partitions::SECRET;

/// Files are overwritten in place, so that each keeps its identity: a replaced file would show that
/// the directory was copied.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let (path, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("an entry");
        match path.is_dir() {
            true => copy(&path, &to),
            false => fs::write(&to, fs::read(&path).expect("a file")).expect("a copy"),
        }
    }
}

/// Newer files are removed, and the old content comes back.
fn put_back(copied: &Path, data: &Path) {
    for folder in ["log", "snapshots"] {
        fs::remove_dir_all(data.join(folder)).expect("a folder of the node");
    }
    copy(copied, data);
}

async fn is_found_and_comes_back(config: &str) {
    let cluster = Plan::new(3).config(config).start().await;
    let leader = cluster.leader().await;
    let old = cluster.others(leader)[1];
    cluster.write_doc("before", 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
    cluster.term(old).await;
    let (data, copied) = (&cluster.node(old).data, cluster.folder().join("copied"));
    copy(data, &copied);
    cluster.start(old);
    cluster.is_ready(old).await;
    for value in 0..20 {
        cluster.write_doc("k", value).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    // A beat of the leader learns that this node has them.
    acknowledged(&cluster, old).await;
    cluster.term(old).await;
    put_back(&copied, data);
    cluster.start(old);
    let ended = wait_for("what was put back is found", async || cluster.node(old).ended()).await;
    assert_eq!(ended.code(), Some(70), "{}", cluster.node(old).log_tail());
    let said = fs::read_to_string(cluster.node(old).stderr_path()).expect("its log");
    assert!(said.contains("an older copy of the data directory had been put back"), "{said}");
    let told = fs::read_to_string(cluster.node(leader).stderr_path()).expect("its log");
    assert!(told.contains("as if an older copy of its data directory had been put back"), "{told}");
    assert_eq!(cluster.leader().await, leader);

    cluster.start(old);
    cluster.counts(old).await;
    cluster.is_ready(old).await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.read_doc(old, "k", "local").await, Some(19));
    assert!(fs::read_dir(data.join("quarantine")).expect("what was set aside").next().is_some());
    // It votes again.
    let third = cluster.others(leader).into_iter().find(|id| *id != old).expect("three nodes");
    cluster.kill9(third);
    cluster.write_doc("after", 1).await;
    assert_eq!(cluster.read_doc(old, "before", "linear").await, Some(1));
}

/// Waits until a beat has been sent and answered since.
async fn acknowledged(cluster: &Cluster, id: u32) {
    let applied = cluster.status_of(id, "applied_index").await;
    for _ in 0..2 {
        let round = std::time::Instant::now();
        wait_for("a beat passes", async || {
            (round.elapsed() > std::time::Duration::from_millis(300)).then_some(())
        })
        .await;
    }
    assert_eq!(cluster.status_of(id, "applied_index").await, applied);
}

#[tokio::test]
async fn a_copy_that_is_put_back_is_found() {
    is_found_and_comes_back(SECRET).await;
}

/// Without a secret, peers cannot prove who they are: the node asks whether the claim is true.
#[tokio::test]
async fn a_copy_that_is_put_back_is_found_without_a_secret() {
    is_found_and_comes_back("").await;
}
