//! Clients that write unique documents through every node during faults, and the promise that they check: an
//! acknowledged write is kept, and a refused one never appears.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinHandle;

use crate::harness::{Call, Cluster, Silence, query, wait_for};

/// Enough that a write is always under way, few enough for two cores.
const WRITERS: u64 = 4;

/// The statuses of a plain write to a cluster in trouble.
const EXPECTED: [u16; 6] = [200, 201, 421, 429, 503, 504];

/// The size of a page of the listing.
const PAGE: usize = 500;

#[derive(Debug)]
pub struct Load {
    prefix: &'static str,
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Tally>>,
}

#[derive(Debug, Default)]
pub struct Tally {
    prefix: &'static str,
    pub acked: BTreeMap<String, u64>,
    /// Keys that are certain not to be applied: a node said so, or nothing was sent.
    pub refused: BTreeSet<String>,
    pub unknown: BTreeSet<String>,
    pub statuses: BTreeMap<u16, usize>,
}

impl Load {
    /// Writes below this prefix, which no other load of the cluster uses.
    pub fn start(cluster: &Arc<Cluster>, prefix: &'static str) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = |number| {
            let (cluster, stop) = (cluster.clone(), stop.clone());
            tokio::spawn(async move { write(&cluster, prefix, number, &stop).await })
        };
        Load { prefix, writers: (0..WRITERS).map(writer).collect(), stop }
    }

    pub async fn end(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Tally::new(self.prefix);
        for writer in self.writers {
            all.add(writer.await.expect("a writer does not panic"));
        }
        all
    }
}

async fn write(cluster: &Cluster, prefix: &'static str, writer: u64, stop: &AtomicBool) -> Tally {
    let mut tally = Tally::new(prefix);
    let nodes = cluster.ids().count() as u64;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{prefix}/{writer}/{number}");
        let value = writer * 1_000_000 + number;
        let node = (writer + number) % nodes + 1;
        tally.write(cluster, node as u32, key, value).await;
        // Other tasks run here, even when every node refuses at once.
        tokio::task::yield_now().await;
    }
    tally
}

impl Tally {
    pub fn new(prefix: &'static str) -> Tally {
        Tally { prefix, ..Tally::default() }
    }

    /// One write through one node; records its outcome.
    pub async fn write(&mut self, cluster: &Cluster, node: u32, key: String, value: u64) -> Option<u16> {
        let call = Call::put(format!("/v1/docs/{key}")).raw_json(&value.to_string());
        let status = match cluster.ask(node, &call).await {
            Ok(answer) => Some(answer.status),
            Err(Silence::NotSent) => {
                self.refused.insert(key);
                return None;
            }
            Err(Silence::Unknown) => None,
        };
        match status {
            Some(200 | 201) => drop(self.acked.insert(key, value)),
            Some(421 | 429 | 503) => drop(self.refused.insert(key)),
            _ => drop(self.unknown.insert(key)),
        }
        if let Some(status) = status {
            *self.statuses.entry(status).or_default() += 1;
        }
        status
    }

    pub fn add(&mut self, other: Tally) {
        self.acked.extend(other.acked);
        self.refused.extend(other.refused);
        self.unknown.extend(other.unknown);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
    }

    /// Checks the promise, as seen through this node.
    pub async fn verify(&self, cluster: &Cluster, node: u32) {
        let odd: Vec<_> = self.statuses.keys().filter(|status| !EXPECTED.contains(status)).collect();
        assert!(odd.is_empty(), "a client was told {odd:?}");
        assert!(!self.acked.is_empty(), "nothing was acknowledged: {:?}", self.statuses);
        let found = documents(cluster, node, &format!("{}/", self.prefix)).await;
        for (key, value) in &self.acked {
            assert_eq!(found.get(key), Some(value), "{key} was acknowledged; n{node} tells another story");
        }
        for key in found.keys() {
            assert!(!self.refused.contains(key), "{key} was refused, and n{node} has it");
            let known = self.acked.contains_key(key) || self.unknown.contains(key);
            assert!(known, "nobody wrote {key}, and n{node} has it");
        }
    }

    pub fn show(&self) -> String {
        let Tally { acked, refused, unknown, statuses, .. } = self;
        format!("{} acked, {} refused, {} unknown, {statuses:?}", acked.len(), refused.len(), unknown.len())
    }
}

/// Every document below a prefix, page by page, by linear reads of one node.
pub async fn documents(cluster: &Cluster, node: u32, prefix: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/docs?prefix={}&limit={PAGE}&after={}", query(prefix), query(&after));
        let page = wait_for("a page of documents", async || {
            let answer = cluster.ask(node, &Call::get(&path)).await.ok()?;
            answer.ok().then(|| answer.json())
        })
        .await;
        for item in page["items"].as_array().expect("items") {
            let key = item["key"].as_str().expect("a key").to_string();
            found.insert(key, item["value"].as_u64().expect("a number"));
        }
        match page["next"].as_str() {
            Some(next) => after = next.to_string(),
            None => return found,
        }
    }
}
