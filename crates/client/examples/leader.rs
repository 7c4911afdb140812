//! One of many instances does the work: continuous election.
//!
//! ```sh
//! cargo run --release -- dev                       # a cluster on this machine
//! cargo run --example leader -- a                  # in another terminal
//! cargo run --example leader -- b                  # and in a third; then end the first with Ctrl-C
//! ```
//!
//! Arguments: this instance's name, and the nodes' URLs with commas between them.

use std::error::Error;
use std::time::Duration;

use eldest_client::{Client, ELECTION_WAIT, Election};

const NODES: &str = "http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "a".to_string());
    let nodes = arguments.next().unwrap_or_else(|| NODES.to_string());

    let client = Client::new(nodes.split(','))?;
    let election = Election::builder(client, "cleanup-worker").identifier(name).build()?;
    let mut events = election.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            println!("{event:?}");
        }
    });

    election.start();
    election.wait_for_election(ELECTION_WAIT).await;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = tokio::signal::ctrl_c() => break,
        }
        // Dropped half-way if the lease is lost meanwhile.
        match election.leader_only(async |token| clean_up(token).await).await {
            Ok(Some(())) | Ok(None) => {}
            Err(lost) => eprintln!("{lost}"),
        }
    }
    // The next one takes over at once.
    election.stop().await;
    Ok(())
}

/// Every system it writes to receives the token, and refuses one that is smaller than it has seen.
async fn clean_up(token: u64) {
    println!("cleaning up, as holder {token}");
}
