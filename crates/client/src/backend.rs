//! The store of roles: a cluster, or a store in memory for a program's own tests.
//!
//! Elections, locks and brokers know nothing else about where they run.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::clock::{Clock, Moment};
use super::error::Error;
use super::holder::{Leader, RoleState};
use super::lease::Term;

/// Watched events that wait for a slow reader. Beyond this bound the backend waits, too.
pub const WATCHED_MAX: usize = 64;

/// A request for a role: the contender, and how it wants to hold the role.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub role: String,
    /// Identifies one life of a process: a second request with the same id comes from the same holder.
    pub instance_id: String,
    pub ttl: Duration,
    /// Among the contenders that wait, a higher priority goes first.
    pub priority: i64,
    /// The address at which others find the holder.
    pub address: Option<String>,
    pub metadata: Option<Value>,
    /// The time to wait if another instance holds the role.
    pub wait: Duration,
}

/// The claim of an instance to hold a role under a token.
#[derive(Clone, Debug)]
pub struct Hold {
    pub role: String,
    pub instance_id: String,
    pub token: u64,
    pub ttl: Duration,
    /// The number of the connection that the lease is tied to.
    pub tie: Option<u64>,
}

/// An open connection that the lease is tied to.
#[derive(Debug)]
pub struct Tied {
    /// Opening the connection was also a renewal: this one.
    pub renewal: Renewal,
    /// News of the connection. Dropping the receiver closes the connection.
    pub news: mpsc::Receiver<TieNews>,
}

/// News of a connection that a lease is tied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieNews {
    /// The node that counts the lease now does not know of the connection yet: renew.
    Renew,
    /// The node releases the connection: the lease goes on without it.
    Let,
    /// The connection is gone.
    Broken,
}

/// Whether a grant is new, or the instance held the role already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Elected,
    AlreadyLeader,
}

/// A role that was granted.
#[derive(Clone, Debug)]
pub struct Grant {
    pub outcome: Outcome,
    pub leader: Leader,
    /// The term of the lease, counted from when the request was sent.
    pub term: Term,
}

/// A lease that was renewed.
#[derive(Clone, Copy, Debug)]
pub struct Renewal {
    pub sent: Moment,
    pub expires_in: Duration,
}

/// An event that concerns a role.
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
    /// A document whose key is the role's name, or is below that name, has changed. The value is the event of the
    /// feed.
    Changed(Value),
}

/// The receiver ends when the watch does. An error is its last item.
pub type Watch = mpsc::Receiver<Result<Watched, Error>>;

/// A store of roles. A clone is the same backend.
pub trait Backend: Clone + Send + Sync + 'static {
    /// The clock that counts the leases of this backend.
    fn clock(&self) -> Clock;

    /// Asks for the role. Fails with [`Error::RoleHeld`] if another instance still holds it at the end of the wait.
    fn acquire(&self, ask: &Acquire) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// Renews the lease. Fails with [`Error::LeaseLost`] if the token is not the current one any more.
    fn renew(&self, hold: &Hold) -> impl Future<Output = Result<Renewal, Error>> + Send;

    /// Ties the lease to a connection to one node. After this process has closed the connection, the node waits for
    /// `grace` and then frees the role, unless a renewal has named a greater number by then. Returns `None` if the
    /// backend offers leases only. Fails with [`Error::Indeterminate`] if the connection may be open all the same.
    fn tie(&self, hold: &Hold, grace: Duration) -> impl Future<Output = Result<Option<Tied>, Error>> + Send {
        let _ = (hold, grace);
        async { Ok(None) }
    }

    /// Releases the role. Fails with [`Error::LeaseLost`] if it was lost before.
    fn release(&self, hold: &Hold) -> impl Future<Output = Result<(), Error>> + Send;

    /// Makes this instance the holder, even if another one holds the role now.
    fn elect(&self, ask: &Acquire) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// The present state of the role.
    fn holder(&self, role: &str) -> impl Future<Output = Result<RoleState, Error>> + Send;

    /// The events of the role from now on.
    fn watch(&self, role: &str) -> impl Future<Output = Result<Watch, Error>> + Send;
}
