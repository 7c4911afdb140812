//! A long random test with real processes: faults of every kind, and what was acknowledged is there afterwards.

#[allow(
    dead_code,
    unused_imports,
    reason = "it is shared with the tests in tests/it, and not all of it is needed here"
)]
#[path = "../it/harness/mod.rs"]
mod harness;

mod arena;
mod machine;
mod nemesis;
mod power;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena::{Arena, Mode};
use harness::{Call, Rng};
use nemesis::{Kind, Nemesis};

const WRITERS: u64 = 4;

fn set(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Only when it is asked for: it takes minutes.
#[tokio::main]
async fn main() {
    let seconds = set("TORTURE_SECONDS", 0);
    if seconds == 0 {
        return;
    }
    let available = std::env::var("TORTURE_MODE").is_ok_and(|mode| mode == "available");
    let mode = if available { Mode::Available } else { Mode::Safe };
    let seed = set("TORTURE_SEED", 1);
    let arena = Arc::new(Arena::new(set("TORTURE_NODES", 3) as u32, mode).await);
    let only = std::env::var("TORTURE_ONLY").unwrap_or_default();
    let mut kinds = Kind::all();
    kinds.retain(|kind| only.is_empty() || only.split(',').any(|name| name == kind.name()));
    let mut nemesis = Nemesis::of(kinds, arena.clone(), Rng::new(seed));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(arena.clone(), writer, stop.clone()))).collect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        println!("{:>4} s {}", began.elapsed().as_secs(), nemesis.strike().await);
    }
    nemesis.lift_all().await;
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect("a writer does not panic"));
    }
    println!("{:?}\nacknowledged: {}", nemesis.counts(), acknowledged.len());
    arena.cluster.ready().await;
    let ids: Vec<u32> = arena.cluster.ids().collect();
    arena.cluster.equal_states(&ids).await;
    let mut missing = Vec::new();
    for (key, value) in &acknowledged {
        for id in &ids {
            if arena.cluster.read_doc(*id, key, "local").await != Some(*value) {
                missing.push(format!("n{id} {key}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "{} acknowledged documents are missing: {:?}",
        missing.len(),
        &missing[..missing.len().min(20)]
    );
    println!("all is there on all nodes");
}

/// Each document once, through a random node; those that were acknowledged.
async fn write(arena: Arc<Arena>, writer: u64, stop: Arc<AtomicBool>) -> BTreeMap<String, u64> {
    let mut rng = Rng::new(writer);
    let ids: Vec<u32> = arena.cluster.ids().collect();
    let mut acknowledged = BTreeMap::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{writer}/{number}");
        let put = Call::put(format!("/v1/docs/{key}"))
            .raw_json(&number.to_string())
            .timeout(Duration::from_secs(3));
        match arena.cluster.ask(*rng.pick(&ids), &put).await {
            Ok(answer) if answer.ok() => {
                acknowledged.insert(key, number);
            }
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    acknowledged
}
