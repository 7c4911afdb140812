//! One writer at a time for a shared state: who is elected writes, and the others stand by.

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

/// A broker that is not heard of for as long may be replaced.
const TTL: Duration = Duration::from_secs(10);

/// Two may be missed in a row.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// The cluster ends the lease of an earlier life a second after its connection; the rest is for the way.
const EARLIER_LIFE: Duration = Duration::from_secs(2);
const EARLIER_LIFE_PAUSE: Duration = Duration::from_millis(200);

/// How one try to be the broker ended.
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
    /// It was free, and another one was faster.
    Conflict {
        leader: Leader,
    },
}

/// Tries when it is told to, and keeps what it has: renewed in the background.
#[derive(Debug)]
pub struct Broker<B: Backend = Client> {
    seat: Seat<B>,
    guard: Option<LockGuard<B>>,
    /// An acquire has no answer: it may have been granted.
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

    /// One life of a process; a random name unless told.
    pub fn instance_id(mut self, id: impl Into<String>) -> Broker<B> {
        self.seat.instance_id = id.into();
        self
    }

    /// 10 s unless told.
    pub fn ttl(mut self, ttl: Duration) -> Broker<B> {
        self.seat.ttl = ttl;
        self
    }

    /// 3 s unless told.
    pub fn heartbeat_every(mut self, span: Duration) -> Broker<B> {
        self.seat.renew_every = span;
        self
    }

    pub fn id(&self) -> &str {
        &self.seat.instance_id
    }

    /// One try; whoever is told to stand by tries again when it likes.
    ///
    /// Where this broker's own address leads, that is its earlier life: it waits for that lease to end, 2 s at most, and is the
    /// `AlreadyLeader` with a token of its own.
    pub async fn try_elect(&mut self) -> Result<BrokerTried, Error> {
        self.try_elect_with(None).await
    }

    pub async fn try_elect_with(&mut self, metadata: Option<Value>) -> Result<BrokerTried, Error> {
        self.seat.check()?;
        let (mut again, ends) = (false, Instant::now() + EARLIER_LIFE);
        loop {
            // Left so by a future that is dropped, and by an answer that never comes.
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

    /// Asks the cluster whether this broker still leads. One that does not must not write any more.
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

    /// [`StateDoc::update`] in this broker's name.
    ///
    /// One that was replaced, and does not know it yet, changes nothing: it is told [`Error::RoleNotHeld`], and leads no more. One that
    /// does not lead is told the same, and sends nothing.
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

    /// By the clock, without asking anybody.
    pub fn is_leader(&self) -> bool {
        self.token().is_some()
    }

    /// To be written along with the state, so that nobody with a smaller one writes after.
    pub fn token(&self) -> Option<u64> {
        self.guard.as_ref().filter(|guard| guard.is_held()).map(LockGuard::token)
    }

    /// Returns once this broker does not lead.
    pub async fn lost(&self) {
        if let Some(guard) = &self.guard {
            guard.lost().await;
        }
    }

    /// Lets the next one in at once. An error says what kept it from that for a second: then the role lapses.
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
