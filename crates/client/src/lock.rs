//! A role as a lock: a process acquires it, holds it while it needs it, and releases it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::backend::{Backend, Hold};
use super::clock::Clock;
use super::error::Error;
use super::http::Client;
use super::lease::{Belief, RENEWALS, Term};
use super::pauses::Pauses;
use super::random;
use super::seat::Seat;
use super::ties::{HeldBy, NO_CONNECTION};

/// The default ttl of a lease.
pub const TTL: Duration = Duration::from_secs(30);

/// The longest time that one call waits for a role. After it, the lock sends the next call.
pub const POLL_MOST: Duration = Duration::from_secs(30);

/// A lock that is not acquired yet: its role and its options.
#[derive(Clone, Debug)]
pub struct Lock<B = Client> {
    seat: Seat<B>,
    renew_every: Option<Duration>,
    metadata: Option<Value>,
}

impl<B: Backend> Lock<B> {
    /// A lock on this role, with the default options.
    pub fn new(backend: B, role: impl Into<String>) -> Lock<B> {
        let seat = Seat {
            backend,
            role: role.into(),
            instance_id: random::id(),
            ttl: TTL,
            renew_every: TTL / RENEWALS,
            priority: 0,
            address: None,
            held_by: HeldBy::default(),
        };
        Lock { seat, renew_every: None, metadata: None }
    }

    /// Identifies one life of a process. Default: a random name.
    pub fn instance_id(mut self, id: impl Into<String>) -> Lock<B> {
        self.seat.instance_id = id.into();
        self
    }

    /// The ttl of the lease. Default: 30 s. The lease is renewed after a third of it.
    pub fn ttl(mut self, ttl: Duration) -> Lock<B> {
        self.seat.ttl = ttl;
        self
    }

    /// The interval of renewals. Default: a third of the ttl. At most half of the ttl.
    pub fn renew_every(mut self, span: Duration) -> Lock<B> {
        self.renew_every = Some(span);
        self
    }

    /// Among the contenders that wait, a higher priority goes first. Default: 0.
    pub fn priority(mut self, priority: i64) -> Lock<B> {
        self.seat.priority = priority;
        self
    }

    /// The address at which others find the holder.
    pub fn address(mut self, address: impl Into<String>) -> Lock<B> {
        self.seat.address = Some(address.into());
        self
    }

    /// Selects how the role is held. Default: by a lease and a connection.
    pub fn held_by(mut self, held_by: HeldBy) -> Lock<B> {
        self.seat.held_by = held_by;
        self
    }

    /// The metadata that others see while this process holds the role. Default: none.
    pub fn metadata(mut self, metadata: Value) -> Lock<B> {
        self.metadata = Some(metadata);
        self
    }

    /// Tries once, without waiting. Returns `None` if another instance holds the role.
    pub async fn try_acquire(self) -> Result<Option<LockGuard<B>>, Error> {
        match self.within(Some(Duration::ZERO)).await {
            Ok(guard) => Ok(Some(guard)),
            Err(Error::RoleHeld(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the role without a deadline. An outage ends the wait only if no node has answered before; after the
    /// first answer, the wait goes on through outages.
    pub async fn acquire(self) -> Result<LockGuard<B>, Error> {
        self.within(None).await
    }

    /// Waits at most `span` for the role. Fails with [`Error::RoleHeld`] if the role is still held at the end of it.
    pub async fn acquire_within(self, span: Duration) -> Result<LockGuard<B>, Error> {
        self.within(Some(span)).await
    }

    /// Releases what the cluster may have granted to an `acquire` of this lock whose future was dropped while it
    /// waited.
    pub async fn abandon(self) -> Result<(), Error> {
        self.seat.leave().await
    }

    async fn within(mut self, span: Option<Duration>) -> Result<LockGuard<B>, Error> {
        self.seat.renew_every = self.renew_every.unwrap_or(self.seat.ttl / RENEWALS);
        self.seat.check()?;
        let term = self.obtained(span.map(|span| Instant::now() + span)).await?;
        Ok(LockGuard::new(self.seat, term))
    }

    async fn obtained(&self, deadline: Option<Instant>) -> Result<Term, Error> {
        let mut pauses = Pauses::new();
        let (mut reached, mut wait) = (false, Duration::ZERO);
        let mut unproved = false;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let ask = self.seat.ask(wait.min(left.unwrap_or(POLL_MOST)), self.metadata.clone());
            let error = match self.seat.backend.acquire(&ask).await {
                Ok(grant) => match self.seat.proved(&grant, !ask.wait.is_zero()).await {
                    Ok(term) => return Ok(term),
                    Err(error) => {
                        unproved = !error.is_lease_lost();
                        error
                    }
                },
                Err(error) => error,
            };
            let held = matches!(error, Error::RoleHeld(_));
            let again = held || reached && (error.is_outage() || error.is_lease_lost());
            let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !again || over {
                if unproved {
                    // This process does not use the grant, so it releases it: the next contender need not wait for
                    // the ttl.
                    let _ = self.seat.leave().await;
                }
                return Err(error);
            }
            if held {
                // The first call alone does not wait: if the role is free, its grant is fresh and needs no second call
                // as a proof.
                (reached, wait) = (true, POLL_MOST);
            } else {
                sleep(pauses.next()).await;
            }
        }
    }
}

/// Holds the role, and renews its lease in the background until the guard is released or dropped, or the role is
/// lost.
#[derive(Debug)]
pub struct LockGuard<B: Backend = Client> {
    seat: Seat<B>,
    token: u64,
    belief: Arc<Belief>,
    renewing: JoinHandle<()>,
}

impl<B: Backend> LockGuard<B> {
    pub(super) fn new(seat: Seat<B>, term: Term) -> LockGuard<B> {
        let belief = Arc::new(Belief::in_term(seat.backend.clock(), term));
        let (keeper, kept) = (seat.clone(), belief.clone());
        let renewing = tokio::spawn(async move {
            keeper.keep(&kept, |_| ()).await;
        });
        LockGuard { seat, token: term.token, belief, renewing }
    }

    /// The fencing token. A resource accepts a token that is greater than any it has seen, and refuses a smaller one.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The name of the role.
    pub fn role(&self) -> &str {
        &self.seat.role
    }

    /// The id under which the role is held.
    pub fn instance_id(&self) -> &str {
        &self.seat.instance_id
    }

    /// The clock that counts the lease.
    pub fn clock(&self) -> Clock {
        self.seat.backend.clock()
    }

    /// Reads the clock at each call: `true` means that the role is held at this moment.
    pub fn is_held(&self) -> bool {
        self.belief.is_held()
    }

    /// Returns once the role is not held any more.
    pub async fn lost(&self) {
        self.belief.lost().await;
    }

    /// A receiver that sees each new proof of the lease, and its end.
    pub fn terms(&self) -> watch::Receiver<Option<Term>> {
        self.belief.watch()
    }

    /// Ends this guard and keeps the role reserved until the lease ends, although this process does not hold it any
    /// more. Use it when work that was begun under the role may still be running.
    pub async fn lapse(self) -> Result<(), Error> {
        self.belief.end();
        // This renewal unties the lease from any connection. The guard's own connection is closed only after the
        // renewal has come through. A renewal without a number would not be enough: an earlier renewal that names the
        // guard's connection may arrive late, and tie the lease again.
        let tie = (self.seat.held_by == HeldBy::Connection).then_some(NO_CONNECTION);
        let hold = Hold { tie, ..self.seat.hold(self.token) };
        self.seat.backend.renew(&hold).await.map(drop)
    }

    /// Ends the belief and the renewals.
    pub(super) fn end(&self) {
        self.renewing.abort();
        self.belief.end();
    }

    /// Releases the role at once. Fails with [`Error::LeaseLost`] if it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        // This process must not act under the role from here on, whatever the outcome of the call.
        self.end();
        self.seat.backend.release(&self.seat.hold(self.token)).await
    }
}

/// A guard that is dropped does not release the role. The role becomes free when the connection that holds it is
/// closed, or when the ttl is over.
impl<B: Backend> Drop for LockGuard<B> {
    fn drop(&mut self) {
        self.end();
    }
}
