//! Nothing that a node says leaves before its disk has it: nodes in one process, whose disks end no sync until they are told to.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use super::Answer;
use super::meeting::{Node, free_ports, start_on, wait};
use crate::driver::End;
use crate::protocol::Mode;
use crate::storage::files::Simulated;

/// What is sent too early has arrived by then; where it has not, a test misses a fault and fails for nothing.
const TOO_EARLY: Duration = Duration::from_millis(500);

struct Three {
    nodes: Vec<Node>,
    disks: Vec<Simulated>,
}

impl Three {
    /// The first of them leads, and stays.
    async fn formed() -> Three {
        let (ports, disks) = (free_ports(3), [1, 2, 3].map(Simulated::new).to_vec());
        let mut nodes = Vec::new();
        for (me, disk) in (1..).zip(&disks) {
            nodes.push(start_on(Mode::Safe, me, &ports, Path::new("/data"), disk.files()).await);
        }
        nodes[0].put("first").await;
        let three = Three { nodes, disks };
        wait(async || three.shows(1, Some(1)).await && three.shows(2, Some(1)).await).await;
        wait(async || three.shows(3, Some(1)).await).await;
        three
    }

    fn disk(&self, node: usize) -> &Simulated {
        &self.disks[node - 1]
    }

    fn node(&self, node: usize) -> &Node {
        &self.nodes[node - 1]
    }

    /// Which leader this node shows.
    async fn shows(&self, node: usize, leader: Option<u64>) -> bool {
        self.node(node).status().await["leader"]["id"].as_u64() == leader
    }

    async fn write(&self) -> Answer {
        self.node(1).call("PUT /v1/docs/second", "2").await
    }

    /// These disks hold their syncs, and a write waits for them; then the first of them is let go, which makes a majority.
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
    // Its next write fails, and so it ends.
    three.disk(1).kill();
    drop(three.write().await);
    let fallen = three.nodes.remove(0).falls().await;
    assert!(matches!(fallen, End::Disk(_)), "{fallen}");
    let [two, three_] = [&three.nodes[0], &three.nodes[1]];
    let leads = async |node: &Node| node.status().await["leader"]["id"].as_u64().is_some_and(|id| id > 1);
    wait(async || three.disks[1].syncs_waiting() > 0).await;
    tokio::time::sleep(TOO_EARLY).await;
    assert!(!leads(two).await, "before its own promise is synced");
    three.disks[1].let_syncs_go();
    wait(async || three.disks[2].syncs_waiting() > 0).await;
    tokio::time::sleep(TOO_EARLY).await;
    assert!(!leads(two).await && !leads(three_).await, "before a majority's promises are synced");
    three.disks[2].let_syncs_go();
    wait(async || leads(two).await || leads(three_).await).await;
    three.end().await;
}
