//! A node sends only what is on its disk. The tests use three nodes in one process, whose disks hold every sync until the test releases
//! it.

use std::pin::pin;
use std::time::Duration;

use super::Answer;
use super::meeting::{Node, free_ports, start_on, temp_dir, wait};
use crate::driver::End;
use crate::protocol::Mode;
use crate::storage::files::Simulated;

/// A message that is sent too early has arrived by this time. On a slower machine a test may miss that fault, but never fails for it.
const TOO_EARLY: Duration = Duration::from_millis(500);

/// The leader comes first, whichever node it is.
struct Three {
    nodes: Vec<Node>,
    disks: Vec<Simulated>,
    leader: u64,
}

impl Three {
    async fn formed() -> Three {
        let (ports, mut disks) = (free_ports(3), [1, 2, 3].map(Simulated::new).to_vec());
        let mut nodes = Vec::new();
        for (me, disk) in (1..).zip(&disks) {
            // The directory is empty: all data but the chronicle is in memory, and the chronicle is not kept.
            nodes.push(start_on(Mode::Safe, me, &ports, &temp_dir(), disk.files()).await);
        }
        nodes[0].put("first").await;
        let leader = leader(&nodes[0]).await.expect("somebody has taken a write");
        nodes.swap(0, leader as usize - 1);
        disks.swap(0, leader as usize - 1);
        for node in &nodes {
            wait(async || self::leader(node).await == Some(leader)).await;
        }
        Three { nodes, disks, leader }
    }

    fn disk(&self, node: usize) -> &Simulated {
        &self.disks[node - 1]
    }

    async fn write(&self) -> Answer {
        self.nodes[0].call("PUT /v1/docs/second", "2").await
    }

    /// These disks hold their syncs, and a write waits for them; then the first disk is released, which makes a majority.
    async fn counts_what_is_synced(&self, held: [usize; 2]) {
        held.iter().for_each(|node| self.disk(*node).hold_syncs());
        let mut write = pin!(self.write());
        let waiting = async {
            wait(async || held.iter().all(|node| self.disk(*node).syncs_waiting() > 0)).await;
            tokio::time::sleep(TOO_EARLY).await;
        };
        tokio::select! {
            answer = &mut write => panic!("before its sync: {answer:?}"),
            () = waiting => {}
        }
        self.disk(held[0]).let_syncs_go();
        assert_eq!(write.await.status, 201);
        self.disk(held[1]).let_syncs_go();
    }

    async fn end(self) {
        for node in self.nodes.into_iter().rev() {
            node.end().await;
        }
    }
}

/// Returns the leader that this node shows.
async fn leader(node: &Node) -> Option<u64> {
    node.status().await["leader"]["id"].as_u64()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_acknowledges_what_it_has_synced() {
    let three = Three::formed().await;
    three.counts_what_is_synced([2, 3]).await;
    three.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_counts_itself_where_it_has_synced() {
    let three = Three::formed().await;
    three.counts_what_is_synced([1, 3]).await;
    three.end().await;
}

/// A promise that is forgotten can be given twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_promise_is_synced_before_it_is_given() {
    let mut three = Three::formed().await;
    [2, 3].iter().for_each(|node| three.disk(*node).hold_syncs());
    // Its next write fails, and so the node ends.
    three.disk(1).kill();
    drop(three.write().await);
    let fallen = three.nodes.remove(0).falls().await;
    assert!(matches!(fallen, End::Disk(_)), "{fallen}");
    let before = three.leader;
    let leads = async |node: &Node| leader(node).await.is_some_and(|id| id != before);
    let any = async || leads(&three.nodes[0]).await || leads(&three.nodes[1]).await;
    for node in &three.nodes {
        wait(async || leader(node).await != Some(before)).await;
    }
    tokio::time::sleep(TOO_EARLY).await;
    assert!(!any().await, "before any promise is synced");
    three.disk(2).let_syncs_go();
    wait(async || three.disk(3).syncs_waiting() > 0).await;
    tokio::time::sleep(TOO_EARLY).await;
    assert!(!any().await, "before a majority's promises are synced");
    three.disk(3).let_syncs_go();
    wait(any).await;
    three.end().await;
}
