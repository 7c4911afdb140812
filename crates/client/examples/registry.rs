//! Processes that know of each other: who is there, who leads, and a message to one of them.
//!
//! ```sh
//! cargo run --release -- dev
//! cargo run --example registry
//! ```
//!
//! Argument: the nodes' URLs with commas between them.

use std::error::Error;

use eldest_client::{Client, ELECTION_WAIT, Election, Heard, MASTER, Registry, RegistryEvent, SLAVE};
use serde_json::json;

const NODES: &str = "http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = std::env::args().nth(1).unwrap_or_else(|| NODES.to_string());
    let client = Client::new(nodes.split(','))?;

    // This process stands for the lead, and is registered under the same id.
    let election = Election::new(client.clone(), "cms-cluster")?;
    let registry = Registry::builder(client.clone(), "cms-backend").id(election.id());
    let registry = registry.capabilities(json!({"canProcessDetections": true, "maxSubscriptions": 100}));
    let registry = registry.register().await?;
    election.start();
    let role = if election.wait_for_election(ELECTION_WAIT).await { MASTER } else { SLAVE };
    registry.set_role(role).await?;
    println!("{} is {role}", registry.id());

    // Another process registers, subscribes to its own channel, and appears in the events.
    let mut events = registry.events();
    let worker = Registry::builder(client.clone(), "worker").register().await?;
    let mut messages = client.subscribe(&worker.channel()).await?;
    if let Some(RegistryEvent::SlaveRegistered(slave)) = events.next().await {
        println!("{} has come", slave.id);
        client.publish(&slave.channel, &json!({"assign": "camera-7"})).await?;
    }
    if let Heard::Message(message) = messages.next().await? {
        println!("{} was told {message}", worker.id());
    }

    println!("{} processes, {} slaves", registry.all().await?.len(), registry.slave_count().await?);
    println!("the leader's: {:?}", registry.leader_of("cms-cluster").await?.map(|leader| leader.id));
    worker.unregister().await?;
    registry.unregister().await?;
    election.stop().await;
    Ok(())
}
