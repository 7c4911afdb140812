//! A lock for one piece of work, and a scope for a cron job.
//!
//! ```sh
//! cargo run --release -- dev
//! cargo run --example lock
//! ```
//!
//! Argument: the nodes' URLs with commas between them.

use std::error::Error;
use std::time::Duration;

use eldest_client::{Client, Lock, Scope, leader_only};

const NODES: &str = "http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = std::env::args().nth(1).unwrap_or_else(|| NODES.to_string());
    let client = Client::new(nodes.split(','))?;

    // Wait for it, hold it, give it back.
    let guard = Lock::new(client.clone(), "migration").acquire_within(Duration::from_secs(60)).await?;
    tokio::select! {
        () = guard.lost() => println!("lost: whatever was done since may be undone by the next holder"),
        () = migrate(guard.token()) => println!("migrated"),
    }
    guard.release().await?;

    // Try once, as a cron job on each of many machines does.
    let scope = Scope::enter(Lock::new(client.clone(), "daily-report")).await?;
    if scope.is_leader() {
        println!("writing the report");
    }
    scope.leave().await?;

    // The same in one call.
    let rows = leader_only(client, "aggregation", async |token| token % 100).await?;
    println!("aggregated: {rows:?}");
    Ok(())
}

async fn migrate(token: u64) {
    println!("migrating, as holder {token}");
}
