//! etcd, version 3: gRPC, and the gateway that accepts the same calls as JSON.

mod frames;
mod gateway;
mod grpc;
mod protobuf;

pub use gateway::Gateway;

use std::net::SocketAddr;

use super::super::session::{Fate, Trouble};
use super::op::Op;
use grpc::Grpc;
use protobuf::{bytes, find_bytes, find_number, number};

/// Longer than any run: a client keeps one lease for all its locks.
const LEASE_S: u64 = 3600;

/// The number of the header field in each answer.
const HEADER: u64 = 1;

#[derive(Debug)]
pub struct Etcd {
    grpc: Grpc,
    message: Vec<u8>,
    methods: Methods,
    lease: Option<u64>,
    /// The key of the lock that the client holds.
    held: Vec<u8>,
}

/// The headers of each call.
#[derive(Debug)]
struct Methods {
    put: Vec<u8>,
    range: Vec<u8>,
    grant: Vec<u8>,
    lock: Vec<u8>,
    unlock: Vec<u8>,
    status: Vec<u8>,
}

impl Etcd {
    pub fn new() -> Etcd {
        let method = |name: &str| frames::headers(name, "127.0.0.1");
        let methods = Methods {
            put: method("/etcdserverpb.KV/Put"),
            range: method("/etcdserverpb.KV/Range"),
            grant: method("/etcdserverpb.Lease/LeaseGrant"),
            lock: method("/v3lockpb.Lock/Lock"),
            unlock: method("/v3lockpb.Lock/Unlock"),
            status: method("/etcdserverpb.Maintenance/Status"),
        };
        Etcd { grpc: Grpc::default(), message: Vec::new(), methods, lease: None, held: Vec::new() }
    }

    pub fn disconnect(&mut self) {
        self.grpc.disconnect();
    }

    pub async fn perform(&mut self, address: SocketAddr, op: &Op<'_>) -> Result<(), Trouble> {
        self.message.clear();
        match op {
            Op::Write { key, value } => {
                bytes(&mut self.message, 1, format!("bench/{key}").as_bytes());
                bytes(&mut self.message, 2, value);
                self.grpc.call(address, &self.methods.put, &self.message).await.map(|_| ())
            }
            Op::ReadLinear { key } => self.range(address, *key, false).await,
            Op::ReadLocal { key } => self.range(address, *key, true).await,
            Op::Acquire { lock } => self.acquire(address, lock).await,
            Op::Release { .. } => {
                bytes(&mut self.message, 1, &self.held);
                self.grpc.call(address, &self.methods.unlock, &self.message).await.map(|_| ())
            }
        }
    }

    pub async fn leads(&mut self, address: SocketAddr) -> Result<bool, Trouble> {
        let status = self.grpc.call(address, &self.methods.status, &[]).await?;
        let own = find_bytes(status, HEADER).and_then(|header| find_number(header, 2));
        Ok(own.is_some() && own == find_number(status, 4))
    }

    async fn range(&mut self, address: SocketAddr, key: u64, serializable: bool) -> Result<(), Trouble> {
        bytes(&mut self.message, 1, format!("bench/{key}").as_bytes());
        if serializable {
            number(&mut self.message, 7, 1);
        }
        self.grpc.call(address, &self.methods.range, &self.message).await.map(|_| ())
    }

    async fn acquire(&mut self, address: SocketAddr, lock: &str) -> Result<(), Trouble> {
        let lease = match self.lease {
            Some(lease) => lease,
            None => self.grant(address).await?,
        };
        bytes(&mut self.message, 1, lock.as_bytes());
        number(&mut self.message, 2, lease);
        let answer = self.grpc.call(address, &self.methods.lock, &self.message).await?;
        self.held = find_bytes(answer, 2).unwrap_or_default().to_vec();
        Ok(())
    }

    async fn grant(&mut self, address: SocketAddr) -> Result<u64, Trouble> {
        let mut message = Vec::new();
        number(&mut message, 1, LEASE_S);
        let answer = self.grpc.call(address, &self.methods.grant, &message).await?;
        let lease = find_number(answer, 2);
        self.lease = lease;
        lease.ok_or_else(|| Trouble { fate: Fate::Unknown, code: "no_lease".into(), status: None })
    }
}
