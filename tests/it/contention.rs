//! Many clients want one role, while nodes die, freeze and are cut off: a resource that checks tokens sees
//! them in order (I6, I13).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eldest::client::{Client, Lock, LockGuard};
use tokio::task::JoinSet;

use crate::harness::{Cluster, Network, Plan, wait_for};

const CONTENDERS: u32 = 20;
const CHANGES: usize = 1000;
const TTL: Duration = Duration::from_secs(2);
/// A failover and a ttl, several times over.
const WAIT: Duration = Duration::from_secs(30);

/// The resource that a lock guards: it remembers the greatest token.
#[derive(Debug, Default)]
struct Resource {
    newest: u64,
    /// The writer under each token.
    writers: BTreeMap<u64, u32>,
    violations: Vec<String>,
}

impl Resource {
    fn write(&mut self, token: u64, who: u32) {
        if token < self.newest {
            self.violations.push(format!("{who} writes with {token} after {}", self.newest));
        }
        self.newest = self.newest.max(token);
        if self.writers.insert(token, who).is_some_and(|other| other != who) {
            self.violations.push(format!("token {token} is {who}'s and another's"));
        }
    }
}

/// No other task runs between a look at the clock and the write after it: this runtime has one thread.
async fn contend(client: Client, who: u32, resource: Arc<Mutex<Resource>>) {
    loop {
        let lock = Lock::new(client.clone(), "resource").instance_id(format!("c{who}")).ttl(TTL);
        // A failed attempt holds nothing; it tries again, as a program would.
        if let Ok(guard) = lock.acquire_within(WAIT).await {
            hold(guard, who, &resource).await;
        }
    }
}

async fn hold(guard: LockGuard<Client>, who: u32, resource: &Mutex<Resource>) {
    for _ in 0..3 {
        if guard.is_held() {
            resource.lock().expect("no panic").write(guard.token(), who);
        }
        // The others run here: a contender that wrongly believes that it holds the role is found out.
        tokio::task::yield_now().await;
    }
    // If the release fails, the lease lapses.
    let _ = guard.release().await;
}

/// Each change may take as long as one wait: the pace of the changes depends on the machine.
async fn changes(resource: &Mutex<Resource>, more: usize) {
    let count = || resource.lock().expect("no panic").writers.len();
    let wanted = count() + more;
    while count() < wanted {
        let before = count();
        wait_for("the role goes from hand to hand", async || (count() > before).then_some(())).await;
    }
}

async fn fault(cluster: &Cluster, network: &Network, kind: usize, hit: u32, resource: &Mutex<Resource>) {
    match kind % 3 {
        0 => {
            cluster.kill9(hit);
            changes(resource, 50).await;
            cluster.start(hit);
        }
        1 => {
            cluster.stop(hit);
            changes(resource, 50).await;
            cluster.cont(hit);
        }
        _ => {
            network.split(&[hit], &cluster.others(hit));
            changes(resource, 50).await;
            network.heal();
        }
    }
    cluster.is_ready(hit).await;
}

#[tokio::test]
async fn a_thousand_changes_of_holder() {
    let Some(network) = Network::new(3) else { return };
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers());
    let cluster =
        plan.config("cluster_secret = \"the secret of these tests, long enough to pass\"").start().await;
    let client = Client::new(cluster.ids().map(|id| cluster.node(id).url())).expect("a client");
    let resource = Arc::new(Mutex::new(Resource::default()));
    let mut contenders = JoinSet::new();
    for who in 0..CONTENDERS {
        contenders.spawn(contend(client.clone(), who, resource.clone()));
    }
    changes(&resource, 50).await;
    for round in 0..6 {
        let leader = cluster.leader().await;
        let hit = if round < 3 { leader } else { cluster.others(leader)[0] };
        fault(&cluster, &network, round, hit, &resource).await;
    }
    let done = resource.lock().expect("no panic").writers.len();
    for _ in (done..CHANGES).step_by(50) {
        changes(&resource, 50).await;
    }
    contenders.shutdown().await;
    let resource = resource.lock().expect("no panic");
    println!("{} changes of holder", resource.writers.len());
    assert_eq!(resource.violations, [""; 0]);
    assert!(resource.writers.len() >= CHANGES);
}
