//! What keeps roles: a cluster, or for a program's own tests something in memory.
//!
//! Elections, locks and brokers know nothing else of where they run.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::clock::{Clock, Moment};
use super::error::Error;
use super::holder::{Leader, RoleState};
use super::lease::Term;

/// Watched events that wait for a slow reader; then the backend waits, too.
pub const WATCHED_MAX: usize = 64;

/// Who asks for a role, and for how long.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub role: String,
    /// One life of a process: the same id again is the same holder.
    pub instance_id: String,
    pub ttl: Duration,
    /// Higher goes first among those who wait.
    pub priority: i64,
    /// Where others find the holder.
    pub address: Option<String>,
    pub metadata: Option<Value>,
    /// How long to wait for the role if somebody has it.
    pub wait: Duration,
}

/// Who holds a role, by its own word.
#[derive(Clone, Debug)]
pub struct Hold {
    pub role: String,
    pub instance_id: String,
    pub token: u64,
    pub ttl: Duration,
    /// The number of the connection that the lease is to end with.
    pub tie: Option<u64>,
}

/// A connection that the lease ends with.
#[derive(Debug)]
pub struct Tied {
    /// Opening it renews the lease.
    pub renewal: Renewal,
    /// Dropped, the connection is closed.
    pub news: mpsc::Receiver<TieNews>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieNews {
    /// Whoever counts the lease now has not heard of it yet.
    Renew,
    /// The node lets go: the lease goes on without it.
    Let,
    /// The connection is gone.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Elected,
    AlreadyLeader,
}

/// A role given.
#[derive(Clone, Debug)]
pub struct Grant {
    pub outcome: Outcome,
    pub leader: Leader,
    /// Counted from when the request was sent.
    pub term: Term,
}

/// A lease proved.
#[derive(Clone, Copy, Debug)]
pub struct Renewal {
    pub sent: Moment,
    pub expires_in: Duration,
}

/// What happens around a role.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    Acquired {
        instance_id: String,
        token: u64,
    },
    Lost {
        instance_id: String,
        token: u64,
    },
    /// A document named like the role, or below that name, has changed: the event as the feed tells it.
    Changed(Value),
}

/// Ends when the watch does; an error is its last word.
pub type Watch = mpsc::Receiver<Result<Watched, Error>>;

/// A clone is the same backend.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The clock that leases of this backend are counted by.
    fn clock(&self) -> Clock;

    /// [`Error::RoleHeld`] if somebody else has it, at the end of the wait.
    fn acquire(&self, ask: &Acquire) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// [`Error::LeaseLost`] if the token is not the current one any more.
    fn renew(&self, hold: &Hold) -> impl Future<Output = Result<Renewal, Error>> + Send;

    /// Ties the lease to a connection to one node, which frees the role when `grace` has passed after this process has closed it,
    /// unless a renewal has named a greater number by then. None where leases are all there is; [`Error::Indeterminate`] if it may be
    /// open all the same.
    fn tie(&self, hold: &Hold, grace: Duration) -> impl Future<Output = Result<Option<Tied>, Error>> + Send {
        let _ = (hold, grace);
        async { Ok(None) }
    }

    /// [`Error::LeaseLost`] if it was lost before.
    fn release(&self, hold: &Hold) -> impl Future<Output = Result<(), Error>> + Send;

    /// Names the holder, whoever has it now.
    fn elect(&self, ask: &Acquire) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// Who has the role now.
    fn holder(&self, role: &str) -> impl Future<Output = Result<RoleState, Error>> + Send;

    /// What happens around the role from now on.
    fn watch(&self, role: &str) -> impl Future<Output = Result<Watch, Error>> + Send;
}
