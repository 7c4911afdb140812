//! A node whose state differs from the others' ends by itself and comes back as a new disk, even without
//! authentication of peers (P25, P51).

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Call, Cluster, wait_for};

/// The same polynomial as in zlib.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The newest of a node's snapshot files that has this line, and its offset.
fn snapshot_with(data: &Path, line: &[u8]) -> Option<(PathBuf, usize)> {
    let generations = files(&data.join("snapshots"));
    let mut all: Vec<PathBuf> = generations.iter().flat_map(|generation| files(generation)).collect();
    all.sort();
    all.into_iter().rev().find_map(|file| {
        let place = fs::read(&file).ok()?.windows(line.len()).position(|found| found == line)?;
        Some((file, place))
    })
}

/// Changes a value in the snapshot of a node that is down, and corrects the checksum.
fn falsify(data: &Path) {
    let (file, place) = snapshot_with(data, b"doc \"k7\" ").expect("a snapshot with k7");
    let mut bytes = fs::read(&file).expect("a snapshot");
    let value = bytes[place..].windows(2).position(|text| text == b"77").expect("its value");
    bytes[place + value..][..2].copy_from_slice(b"78");
    let sum = bytes.len() - 9;
    let crc = format!("{:08x}", crc32(&bytes[..sum]));
    bytes[sum..sum + 8].copy_from_slice(crc.as_bytes());
    fs::write(file, bytes).expect("a snapshot that is not so");
}

/// Writes until this node's process has ended, and returns its exit code.
async fn code_of_its_end(cluster: &Cluster, id: u32) -> Option<i32> {
    let mut value = 0;
    let ended = wait_for("the odd node ends", async || {
        cluster.write_doc("k1", value).await;
        value += 1;
        cluster.node(id).ended()
    });
    ended.await.code()
}

async fn goes_and_comes_back(odd: u32) {
    let cluster = Cluster::of(3).await;
    let others = cluster.others(odd);
    cluster.write_doc("k7", 77).await;
    for value in 0..40 {
        cluster.write_doc("k1", value).await;
    }
    let data = &cluster.node(odd).data;
    wait_for("a snapshot with k7", async || snapshot_with(data, b"doc \"k7\" ")).await;
    // The odd node is the leader among nodes that all restart, or a follower of a leader that keeps running.
    let down = if odd == 1 { vec![1, 2, 3] } else { vec![odd] };
    for id in &down {
        cluster.term(*id).await;
    }
    falsify(data);
    down.iter().for_each(|id| cluster.start(*id));
    assert_eq!(code_of_its_end(&cluster, odd).await, Some(70));
    assert_eq!(cluster.read_doc(others[0], "k7", "linear").await, Some(77));
    cluster.start(odd);
    cluster.counts(odd).await;
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.read_doc(odd, "k7", "local").await, Some(77));
    let why = files(&data.join("quarantine")).iter().any(|folder| folder.join("why.txt").exists());
    assert!(why, "nothing says why");
    let led = cluster.answer(odd, Call::put("/v1/docs/k7").raw_json("79")).await;
    assert!(led.ok(), "{}", led.show());
}

#[tokio::test]
async fn a_leader_whose_state_differs_goes_and_comes_back() {
    goes_and_comes_back(1).await;
}

#[tokio::test]
async fn a_follower_whose_state_differs_goes_and_comes_back() {
    goes_and_comes_back(3).await;
}
