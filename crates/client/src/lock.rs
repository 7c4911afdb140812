//! A role as a lock: taken, held while it is needed, given back.

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

/// A lease lasts as long as this unless told.
pub const TTL: Duration = Duration::from_secs(30);

/// The longest that one call waits for a role; then the next one does.
pub const POLL_MOST: Duration = Duration::from_secs(30);

/// How a lock is asked for.
#[derive(Clone, Debug)]
pub struct Lock<B = Client> {
    seat: Seat<B>,
    renew_every: Option<Duration>,
    metadata: Option<Value>,
}

impl<B: Backend> Lock<B> {
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

    /// One life of a process; a random name unless told.
    pub fn instance_id(mut self, id: impl Into<String>) -> Lock<B> {
        self.seat.instance_id = id.into();
        self
    }

    /// 30 s unless told. It is renewed every third of it.
    pub fn ttl(mut self, ttl: Duration) -> Lock<B> {
        self.seat.ttl = ttl;
        self
    }

    pub fn renew_every(mut self, span: Duration) -> Lock<B> {
        self.renew_every = Some(span);
        self
    }

    /// Among those who wait, higher goes first; 0 unless told.
    pub fn priority(mut self, priority: i64) -> Lock<B> {
        self.seat.priority = priority;
        self
    }

    pub fn address(mut self, address: impl Into<String>) -> Lock<B> {
        self.seat.address = Some(address.into());
        self
    }

    /// A connection besides the lease, unless told.
    pub fn held_by(mut self, held_by: HeldBy) -> Lock<B> {
        self.seat.held_by = held_by;
        self
    }

    pub fn metadata(mut self, metadata: Value) -> Lock<B> {
        self.metadata = Some(metadata);
        self
    }

    /// None if somebody else has it.
    pub async fn try_acquire(self) -> Result<Option<LockGuard<B>>, Error> {
        match self.within(Some(Duration::ZERO)).await {
            Ok(guard) => Ok(Some(guard)),
            Err(Error::RoleHeld(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits as long as it takes, and through outages that come once a node has answered.
    pub async fn acquire(self) -> Result<LockGuard<B>, Error> {
        self.within(None).await
    }

    /// [`Error::RoleHeld`] if it is still held by then.
    pub async fn acquire_within(self, span: Duration) -> Result<LockGuard<B>, Error> {
        self.within(Some(span)).await
    }

    /// Gives up what an `acquire` of this lock that was dropped while it waited may have been granted.
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
                    // Nobody believes in what was granted: whoever comes next need not wait for its ttl.
                    let _ = self.seat.leave().await;
                }
                return Err(error);
            }
            if held {
                // First without waiting: a role that is free is believed without a second call.
                (reached, wait) = (true, POLL_MOST);
            } else {
                sleep(pauses.next()).await;
            }
        }
    }
}

/// Holds the role: renews it in the background until it is released, dropped or lost.
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

    /// What a resource compares: a greater token than it has seen is newer, a smaller one is refused.
    pub fn token(&self) -> u64 {
        self.token
    }

    pub fn role(&self) -> &str {
        &self.seat.role
    }

    pub fn instance_id(&self) -> &str {
        &self.seat.instance_id
    }

    /// The clock that the lease is counted by.
    pub fn clock(&self) -> Clock {
        self.seat.backend.clock()
    }

    /// Asked of the clock at each call: true means held at this moment.
    pub fn is_held(&self) -> bool {
        self.belief.is_held()
    }

    /// Returns once the role is not held any more.
    pub async fn lost(&self) {
        self.belief.lost().await;
    }

    /// Each new proof of the lease, and its end.
    pub fn terms(&self) -> watch::Receiver<Option<Term>> {
        self.belief.watch()
    }

    /// Keeps the role from others for as long as the lease lasts, though nobody holds it here any more: something that was done under it
    /// may still be at work.
    pub async fn lapse(self) -> Result<(), Error> {
        self.belief.end();
        // The lease ends with no connection from now on; the guard's own is closed when that is known. A renewal without a number would
        // not do: the first one that names the guard's connection may be late, and tie the lease after it.
        let tie = (self.seat.held_by == HeldBy::Connection).then_some(NO_CONNECTION);
        let hold = Hold { tie, ..self.seat.hold(self.token) };
        self.seat.backend.renew(&hold).await.map(drop)
    }

    /// From now on it is not believed, nor renewed.
    pub(super) fn end(&self) {
        self.renewing.abort();
        self.belief.end();
    }

    /// Gives the role back at once; [`Error::LeaseLost`] if it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        // Nobody may act on it from here on, whatever becomes of the call.
        self.end();
        self.seat.backend.release(&self.seat.hold(self.token)).await
    }
}

/// Without a release the role is free once the connection that it is held by is closed, or lapses after its ttl.
impl<B: Backend> Drop for LockGuard<B> {
    fn drop(&mut self) {
        self.end();
    }
}
