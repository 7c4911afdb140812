//! One client of any system: it performs an operation at a node, and returns the outcome.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::super::http::Failure;
use super::super::session::{Fate, Trouble};
use super::super::target::Target;
use super::eldest::Eldest;
use super::etcd::{Etcd, Gateway};
use super::op::Op;
use super::redis::Redis;
use super::zookeeper::{ZooKeeper, srvr};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    Eldest,
    Etcd,
    /// etcd by its JSON gateway
    EtcdJson,
    Zookeeper,
    /// One master, and replicas that receive its writes
    Redis,
}

#[derive(Debug)]
enum Speech {
    Eldest(Eldest),
    Etcd(Box<Etcd>),
    Gateway(Gateway),
    ZooKeeper(ZooKeeper),
    Redis(Redis),
}

/// A client that stays with a node until an operation fails there.
#[derive(Debug)]
pub struct Client {
    speech: Speech,
    targets: Arc<[Target]>,
    at: usize,
    patience: Duration,
}

impl Client {
    /// `number` distinguishes this client from the others. `targets` must not be empty. The first node is `first`,
    /// modulo the number of targets.
    pub fn new(
        system: System,
        number: usize,
        targets: Arc<[Target]>,
        first: usize,
        patience: Duration,
    ) -> Client {
        let speech = match system {
            System::Eldest => Speech::Eldest(Eldest::new(number, patience)),
            System::Etcd => Speech::Etcd(Box::new(Etcd::new())),
            System::EtcdJson => Speech::Gateway(Gateway::new(patience)),
            System::Zookeeper => Speech::ZooKeeper(ZooKeeper::default()),
            System::Redis => Speech::Redis(Redis::new(number)),
        };
        let at = first % targets.len();
        Client { speech, targets, at, patience }
    }

    /// Performs an operation. After a failure the next operation opens a new connection, to the next node.
    pub async fn perform(&mut self, op: &Op<'_>) -> Result<(), Trouble> {
        let target = &self.targets[self.at];
        let done = async {
            match &mut self.speech {
                Speech::Eldest(eldest) => eldest.perform(target, op).await,
                Speech::Etcd(etcd) => etcd.perform(target.address, op).await,
                Speech::Gateway(gateway) => gateway.perform(target, op).await,
                Speech::ZooKeeper(zookeeper) => zookeeper.perform(target.address, op).await,
                Speech::Redis(redis) => redis.perform(target.address, op).await,
            }
        };
        let done = timeout(self.patience, done).await;
        let done = done.unwrap_or_else(|_| Err(Trouble::of_failure(Failure::Timeout)));
        if done.as_ref().is_err_and(|trouble| trouble.fate != Fate::Rejected) {
            self.disconnect();
            self.at = (self.at + 1) % self.targets.len();
        }
        done
    }

    fn disconnect(&mut self) {
        match &mut self.speech {
            Speech::Eldest(eldest) => eldest.disconnect(),
            Speech::Etcd(etcd) => etcd.disconnect(),
            Speech::Gateway(gateway) => gateway.disconnect(),
            Speech::ZooKeeper(zookeeper) => zookeeper.disconnect(),
            Speech::Redis(redis) => redis.disconnect(),
        }
    }
}

/// The time limit for a node to say whether it leads.
const PATIENCE: Duration = Duration::from_secs(2);

/// The index of the node that leads. Redis has a first node instead.
pub async fn leader(system: System, targets: &[Target]) -> Option<usize> {
    for (at, target) in targets.iter().enumerate() {
        let leads = timeout(PATIENCE, leads(system, target)).await;
        if matches!(leads, Ok(Ok(true))) {
            return Some(at);
        }
    }
    None
}

async fn leads(system: System, target: &Target) -> Result<bool, Trouble> {
    match system {
        System::Eldest => Eldest::new(0, PATIENCE).leads(target).await,
        System::Etcd | System::EtcdJson => Etcd::new().leads(target.address).await,
        System::Zookeeper => {
            let told = srvr(target.address).await.map_err(Trouble::of_failure)?;
            Ok(told.contains("Mode: leader"))
        }
        System::Redis => Ok(true),
    }
}

/// The target in the form that Eldest and the gateway need.
pub fn target(address: SocketAddr) -> Target {
    Target { url: format!("http://{address}"), host: address.to_string(), address, secured: None }
}
