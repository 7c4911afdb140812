//! Ten thousand requests that no client should send, and bytes that are no requests at all.
//!
//! The node may refuse them or close; it does not hang, does not fail, does not grow, and still serves.

use std::sync::Arc;
use std::time::Duration;

use crate::harness::{Call, Cluster, Plan, Raw, Rng};
use crate::malformed;

const REQUESTS: u64 = 10_000;

const NOISES: u64 = 400;

/// At the same time: more would only wait for two cores.
const CALLERS: u64 = 16;

/// Room for caches and connections; a leak in each request would be a multiple of it after so many.
const GROWTH_MOST_KIB: u64 = 64 << 10;

/// Sizes are compared once everything has been touched.
const WARM_UP: u64 = 2_000;

fn seed() -> u64 {
    std::env::var("ELDEST_IT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

async fn bombard(cluster: &Arc<Cluster>, seed: u64, count: u64) {
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let cluster = cluster.clone();
            let mut rng = Rng::new(seed.wrapping_mul(1_000).wrapping_add(caller));
            tokio::spawn(async move {
                for _ in 0..count / CALLERS {
                    let node = cluster.ids().nth(rng.below(3) as usize).expect("three nodes");
                    one(&cluster, node, &malformed::request(&mut rng)).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller does not panic");
    }
}

async fn one(cluster: &Cluster, node: u32, request: &[u8]) {
    let shown = || String::from_utf8_lossy(&request[..request.len().min(2_000)]).into_owned();
    let mut raw = Raw::connect(cluster.node(node)).await;
    raw.send(request).await;
    let answer = raw.read_to_end().await;
    assert!(!answer.is_empty(), "no answer to {}", shown());
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap_or_default());
    let status: u16 = line.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        panic!("{line} to {}", shown());
    });
    let fine = status < 500 || status == 503;
    assert!(fine, "{} to {}", String::from_utf8_lossy(&answer), shown());
    let text = String::from_utf8_lossy(&answer).to_lowercase();
    // An answer to HEAD has no body that could explain anything.
    let explained = status < 400 || request.starts_with(b"HEAD") || text.contains("application/problem+json");
    assert!(explained, "no problem in {text} to {}", shown());
}

async fn still_serves(cluster: &Cluster) {
    cluster.eventually(Call::post("/service_up")).await.expect(200);
    cluster.write_doc("after", 1).await;
    for id in cluster.ids() {
        assert!(cluster.node(id).alive(), "n{id} is gone");
        cluster.is_ready(id).await;
        assert_eq!(cluster.read_doc(id, "after", "linear").await, Some(1));
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn malformed_requests_of_all_kinds_on_every_route() {
    let seed = seed();
    println!("ELDEST_IT_SEED={seed}");
    let cluster = Arc::new(Cluster::of(3).await);
    let epoch = cluster.status_of(1, "epoch").await;
    bombard(&cluster, seed, WARM_UP).await;
    let before: Vec<u64> = cluster.ids().map(|id| cluster.node(id).resident_kib()).collect();
    bombard(&cluster, seed + 1, REQUESTS - WARM_UP).await;
    for (id, before) in cluster.ids().zip(before) {
        let after = cluster.node(id).resident_kib();
        println!("n{id}: {before} KiB, then {after} KiB");
        assert!(after < before + GROWTH_MOST_KIB, "n{id} grew from {before} to {after} KiB");
    }
    still_serves(&cluster).await;
    assert_eq!(cluster.status_of(1, "epoch").await, epoch, "a malformed request changed the leader");
}

/// The node need not answer these, but it must close the connection.
#[tokio::test]
async fn bytes_that_are_no_requests() {
    let short = "limits.header_timeout_ms = 500\nlimits.body_timeout_ms = 500\nlimits.idle_timeout_ms = 500";
    let cluster = Arc::new(Plan::new(3).config(short).start().await);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let cluster = cluster.clone();
            let mut rng = Rng::new(seed().wrapping_mul(77).wrapping_add(caller));
            tokio::spawn(async move {
                for _ in 0..NOISES / CALLERS {
                    let node = rng.below(3) as u32 + 1;
                    let mut raw = Raw::connect(cluster.node(node)).await;
                    raw.send(&malformed::noise(&mut rng)).await;
                    if rng.below(2) == 0 {
                        raw.finish_sending().await;
                    }
                    // Some callers are gone before they are heard.
                    if rng.below(4) == 0 {
                        raw.read_for(Duration::from_millis(rng.below(20))).await;
                    } else {
                        raw.read_to_end().await;
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("a caller does not panic");
    }
    still_serves(&cluster).await;
}
