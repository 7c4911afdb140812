//! One writer at a time for a shared state: the elected broker writes, and the others stand by.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::backend::{Backend, Grant, Outcome};
use super::documents::Holder;
use super::error::Error;
use super::holder::Leader;
use super::http::Client;
use super::lock::LockGuard;
use super::random;
use super::seat::{LEAVE_MOST, Seat, not_left};
use super::state_doc::StateDoc;
use super::ties::HeldBy;

/// A broker that sends no renewal for this long may be replaced.
const TTL: Duration = Duration::from_secs(10);

/// With this interval, two renewals in a row may be missed.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// The cluster ends the lease of an earlier life a second after its connection has closed. The rest of this time is
/// for the calls.
const EARLIER_LIFE: Duration = Duration::from_secs(2);
const EARLIER_LIFE_PAUSE: Duration = Duration::from_millis(200);

/// The outcome of one try to become the broker.
#[derive(Clone, Debug, PartialEq)]
pub enum BrokerTried {
    Elected {
        token: u64,
    },
    AlreadyLeader {
        token: u64,
    },
    OtherLeader {
        leader: Leader,
    },
    /// The role was free, and another broker was faster.
    Conflict {
        leader: Leader,
    },
}

/// A contender that tries only when asked to, and renews the role in the background while it holds it.
#[derive(Debug)]
pub struct Broker<B: Backend = Client> {
    seat: Seat<B>,
    guard: Option<LockGuard<B>>,
    /// An acquire got no answer: the role may have been granted.
    perhaps_held: bool,
}

impl<B: Backend> Broker<B> {
    /// `address` is where others find this broker while it leads.
    pub fn new(backend: B, role: impl Into<String>, address: impl Into<String>) -> Broker<B> {
        let seat = Seat {
            backend,
            role: role.into(),
            instance_id: random::id(),
            ttl: TTL,
            renew_every: HEARTBEAT,
            priority: 0,
            address: Some(address.into()),
            held_by: HeldBy::default(),
        };
        Broker { seat, guard: None, perhaps_held: false }
    }

    /// Identifies one life of a process. Default: a random name.
    pub fn instance_id(mut self, id: impl Into<String>) -> Broker<B> {
        self.seat.instance_id = id.into();
        self
    }

    /// The ttl of the lease. Default: 10 s.
    pub fn ttl(mut self, ttl: Duration) -> Broker<B> {
        self.seat.ttl = ttl;
        self
    }

    /// The interval of renewals. Default: 3 s.
    pub fn heartbeat_every(mut self, span: Duration) -> Broker<B> {
        self.seat.renew_every = span;
        self
    }

    /// The instance id of this broker.
    pub fn id(&self) -> &str {
        &self.seat.instance_id
    }

    /// Tries once to become the leader. A broker that must stand by decides itself when to try again.
    ///
    /// If the role is held under this broker's own address, its holder is an earlier life of this broker. Then the
    /// call waits for that lease to end, and returns `AlreadyLeader` with its own token. If the lease has not
    /// ended after 2 s, the call returns `OtherLeader`.
    pub async fn try_elect(&mut self) -> Result<BrokerTried, Error> {
        self.try_elect_with(None).await
    }

    /// Does the same as [`Broker::try_elect`], with metadata that others see while this broker leads.
    pub async fn try_elect_with(&mut self, metadata: Option<Value>) -> Result<BrokerTried, Error> {
        self.seat.check()?;
        let (mut again, ends) = (false, Instant::now() + EARLIER_LIFE);
        loop {
            // The flag stays set if this future is dropped, or if no answer comes.
            self.perhaps_held = true;
            let asked = self.seat.backend.acquire(&self.seat.ask(Duration::ZERO, metadata.clone())).await;
            self.perhaps_held = matches!(asked, Err(Error::Indeterminate { .. }));
            let held = match asked {
                Ok(grant) => return Ok(self.won(&grant, again)),
                Err(Error::RoleHeld(held)) => held,
                Err(error) => return Err(error),
            };
            self.guard = None;
            let leader = held.leader;
            if held.conflict {
                return Ok(BrokerTried::Conflict { leader });
            }
            again = leader.address == self.seat.address;
            if !again || Instant::now() >= ends {
                return Ok(BrokerTried::OtherLeader { leader });
            }
            sleep(EARLIER_LIFE_PAUSE).await;
        }
    }

    fn won(&mut self, grant: &Grant, again: bool) -> BrokerTried {
        let token = grant.term.token;
        if self.token() != Some(token) {
            self.guard = Some(LockGuard::new(self.seat.clone(), grant.term));
        }
        match grant.outcome {
            Outcome::Elected if !again => BrokerTried::Elected { token },
            _ => BrokerTried::AlreadyLeader { token },
        }
    }

    /// Asks the cluster whether this broker still leads. A broker that does not lead must not write any more.
    pub async fn check_leadership(&mut self) -> Result<bool, Error> {
        let Some(token) = self.token() else {
            self.guard = None;
            return Ok(false);
        };
        let state = self.seat.backend.holder(&self.seat.role).await?;
        if state.token != Some(token) {
            self.guard = None;
        }
        Ok(self.is_leader())
    }

    /// Runs [`StateDoc::update`] in this broker's name.
    ///
    /// If this broker was replaced and does not know it yet, nothing changes: the call fails with
    /// [`Error::RoleNotHeld`], and the broker leads no more. If this broker does not lead, the call fails the same
    /// way and sends nothing.
    pub async fn update<T: Serialize + DeserializeOwned>(
        &self,
        state: &StateDoc<T>,
        change: impl FnMut(Option<T>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let role = &self.seat.role;
        let Some(guard) = self.guard.as_ref().filter(|guard| guard.is_held()) else {
            return Err(Error::RoleNotHeld { role: role.clone() });
        };
        let changed = state.changed(Some(Holder { role, token: guard.token() }), change).await;
        if matches!(changed, Err(Error::RoleNotHeld { .. })) {
            guard.end();
        }
        changed
    }

    /// Whether this broker leads, by the clock and without a call.
    pub fn is_leader(&self) -> bool {
        self.token().is_some()
    }

    /// The fencing token while this broker leads. Write it along with the state, so that no broker with a smaller
    /// token writes afterwards.
    pub fn token(&self) -> Option<u64> {
        self.guard.as_ref().filter(|guard| guard.is_held()).map(LockGuard::token)
    }

    /// Returns once this broker does not lead.
    pub async fn lost(&self) {
        if let Some(guard) = &self.guard {
            guard.lost().await;
        }
    }

    /// Releases the role at once, so that the next broker can lead. Fails if the release did not succeed within a
    /// second; then the role lapses after its ttl.
    pub async fn stop(&mut self) -> Result<(), Error> {
        let leaving = async {
            match self.guard.take() {
                Some(guard) => match guard.release().await {
                    Err(error) if error.is_lease_lost() => Ok(()),
                    left => left,
                },
                None if self.perhaps_held => self.seat.leave().await,
                None => Ok(()),
            }
        };
        let left = timeout(LEAVE_MOST, leaving).await.unwrap_or_else(|_| Err(not_left()));
        self.perhaps_held &= left.is_err();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[tokio::test]
    async fn the_defaults() {
        let broker = Broker::new(Memory::new(), "queue", "0.0.0.0:8080");
        assert_eq!((broker.seat.ttl.as_secs(), broker.seat.renew_every.as_secs()), (10, 3));
        assert_eq!(broker.seat.address.as_deref(), Some("0.0.0.0:8080"));
    }
}
