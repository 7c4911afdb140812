//! Three programs that want one role, and a look at them each millisecond.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::tally::Tally;
use crate::cli::exit::Failure;
use crate::client::{Client, Election};

const COUNT: usize = 3;

/// Longer than a failover takes, so that it is the cluster that is tried and not a lease.
const TTL: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Holders {
    elections: Arc<Vec<Election<Client>>>,
    looks: JoinHandle<()>,
}

impl Holders {
    pub fn start(client: &Client, role: &str, tally: &Arc<Mutex<Tally>>) -> Result<Holders, Failure> {
        let election = |_| Election::builder(client.clone(), role).ttl(TTL).build();
        let elections: Result<Vec<_>, _> = (0..COUNT).map(election).collect();
        let elections = Arc::new(elections.map_err(|error| Failure::Usage { what: error.to_string() })?);
        elections.iter().for_each(Election::start);
        let looks = tokio::spawn(look(elections.clone(), tally.clone()));
        Ok(Holders { elections, looks })
    }

    pub async fn end(self) {
        self.looks.abort();
        for election in self.elections.iter() {
            election.stop().await;
        }
    }
}

async fn look(elections: Arc<Vec<Election<Client>>>, tally: Arc<Mutex<Tally>>) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let leads = |(number, election): (usize, &Election<Client>)| election.is_leader().then_some(number);
        let holders: Vec<usize> = elections.iter().enumerate().filter_map(leads).collect();
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        let now = tally.now();
        tally.sampled(now, &holders);
    }
}
