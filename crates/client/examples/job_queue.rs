//! A job queue in one document, and two brokers of which one writes at a time. The first dies in the middle; the second
//! goes on, and no job is lost or done by one that was replaced.
//!
//! ```sh
//! cargo run --release -- dev
//! cargo run --example job_queue
//! ```
//!
//! Argument: the nodes' URLs with commas between them. Takes about as long as a broker that died is waited for.

use std::error::Error;
use std::time::Duration;

use eldest_client::{Broker, BrokerTried, Client, StateDoc};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const NODES: &str = "http://127.0.0.1:9000,http://127.0.0.2:9000,http://127.0.0.3:9000";

/// Between two tries of a broker that stands by.
const TRY_AGAIN: Duration = Duration::from_millis(500);

const JOBS: u64 = 20;

/// The document. Each broker writes it in its own name: one who led before cannot write any more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Queue {
    broker: String,
    waiting: Vec<u64>,
    done: Vec<u64>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let nodes = std::env::args().nth(1).unwrap_or_else(|| NODES.to_string());
    let client = Client::new(nodes.split(','))?;
    let queue: StateDoc<Queue> = StateDoc::new(client.clone(), "example/queue");
    let filled = Queue { waiting: (1..=JOBS).collect(), ..Queue::default() };
    queue.update(|_| Some(filled.clone())).await?;

    let first = tokio::spawn(serve(client.clone(), queue.clone(), "0.0.0.0:8080"));
    let second = tokio::spawn(serve(client.clone(), queue.clone(), "0.0.0.0:8081"));
    until(&queue, JOBS / 2).await?;
    let writer = queue.read().await?.unwrap_or_default().broker;
    println!("half of the jobs are done; broker {writer} dies");
    let (dies, stays) = if writer.ends_with("8080") { (first, second) } else { (second, first) };
    dies.abort();

    until(&queue, JOBS).await?;
    stays.abort();
    let mut done = queue.read().await?.unwrap_or_default().done;
    done.sort_unstable();
    println!("all done, each once: {}", done == (1..=JOBS).collect::<Vec<_>>());
    Ok(())
}

async fn until(queue: &StateDoc<Queue>, jobs: u64) -> Result<(), eldest_client::Error> {
    while queue.read().await?.unwrap_or_default().done.len() < jobs as usize {
        sleep(TRY_AGAIN / 5).await;
    }
    Ok(())
}

/// One broker: works while it leads, and stands by while another one does.
async fn serve(client: Client, queue: StateDoc<Queue>, address: &'static str) {
    let mut broker = Broker::new(client, "example/queue-broker", address).ttl(Duration::from_secs(3));
    broker = broker.heartbeat_every(Duration::from_secs(1));
    loop {
        match broker.try_elect().await {
            Ok(BrokerTried::Elected { token }) => println!("broker {address} is elected: {token}"),
            Ok(BrokerTried::AlreadyLeader { .. }) => {}
            Ok(BrokerTried::OtherLeader { .. } | BrokerTried::Conflict { .. }) => {
                sleep(TRY_AGAIN).await;
                continue;
            }
            Err(error) => {
                eprintln!("broker {address}: {error}");
                sleep(TRY_AGAIN).await;
                continue;
            }
        }
        match broker.update(&queue, |queue| next_job(queue, address)).await {
            Ok(_) => sleep(TRY_AGAIN / 10).await,
            Err(error) => eprintln!("broker {address}: {error}"),
        }
    }
}

/// One job done; nothing if there is none.
fn next_job(queue: Option<Queue>, address: &str) -> Option<Queue> {
    let mut queue = queue.filter(|queue| !queue.waiting.is_empty())?;
    let job = queue.waiting.remove(0);
    queue.done.push(job);
    queue.broker = address.to_string();
    Some(queue)
}
