//! Clients that write all the time, remember which writes were acknowledged, and read them back afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::cluster::{Cluster, NODES, document, until};

const WRITERS: u64 = 4;

/// The pause after a refusal or a missing answer: a client that hammers a cluster without
/// a leader learns nothing.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Writes under way. Each has its own key, is tried on one node after the other with the same idempotency key
/// until it is acknowledged, and counts only then.
pub struct Writers {
    name: &'static str,
    ends: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Vec<String>>>,
}

impl Writers {
    pub fn start(name: &'static str, client: &Client) -> Writers {
        let ends = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let tasks = (0..WRITERS)
            .map(|writer| {
                let shared = (client.clone(), ends.clone(), acknowledged.clone());
                tokio::spawn(write(name, writer, shared))
            })
            .collect();
        Writers { name, ends, acknowledged, tasks }
    }

    /// Waits until this many more have been acknowledged from now on.
    pub async fn more(&self, count: u64) {
        let target = self.acknowledged.load(Ordering::Relaxed) + count;
        let look = async || (self.acknowledged.load(Ordering::Relaxed) >= target).then_some(());
        until(&format!("{count} more writes while {}", self.name), look).await;
    }

    /// Ends the writers, and reads every acknowledged write back.
    pub async fn end(self, cluster: &Cluster) {
        self.ends.store(true, Ordering::Relaxed);
        let mut keys = Vec::new();
        for task in self.tasks {
            keys.extend(task.await.expect("a writer ends"));
        }
        assert!(!keys.is_empty(), "nothing was acknowledged while {}", self.name);
        cluster.whole().await;
        for (place, key) in keys.iter().enumerate() {
            let node = NODES[place % NODES.len()];
            let found = document(&cluster.client, node, key).await;
            assert_eq!(found, Some(json!(key)), "{key} was acknowledged and node {node} has something else");
        }
        println!("{}: {} acknowledged writes are there", self.name, keys.len());
    }
}

async fn write(
    name: &'static str,
    writer: u64,
    (client, ends, acknowledged): (Client, Arc<AtomicBool>, Arc<AtomicU64>),
) -> Vec<String> {
    let prefix = name.replace(' ', "-");
    let mut keys = Vec::new();
    let mut attempt = writer as usize;
    for number in 0_u64.. {
        let key = format!("{prefix}/{writer}-{number}");
        loop {
            if ends.load(Ordering::Relaxed) {
                return keys;
            }
            let node = NODES[attempt % NODES.len()];
            let answer = client.put(node, &format!("/v1/docs/{key}"), &json!(key), &key).await;
            if answer.is_some_and(|answer| matches!(answer.status, 200 | 201)) {
                break;
            }
            attempt += 1;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
        keys.push(key);
    }
    keys
}
