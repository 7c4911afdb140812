//! The options of an election.

use std::time::Duration;

use serde_json::Value;

use super::candidacy::Election;
use super::core::Core;
use crate::backend::Backend;
use crate::error::Error;
use crate::lease::RENEWALS;
use crate::lock::TTL;
use crate::random;
use crate::seat::Seat;
use crate::ties::HeldBy;

/// The default time that a follower waits at the cluster for the role before it asks again.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// The longest such wait. A cluster or a proxy may take a longer call for lost.
const CHECK_MOST: Duration = Duration::from_secs(30);

/// The options of an election.
#[derive(Clone, Debug)]
pub struct ElectionBuilder<B> {
    seat: Seat<B>,
    renew_every: Option<Duration>,
    check_every: Duration,
    identifier: Option<String>,
    metadata: Option<Value>,
}

impl<B: Backend> Election<B> {
    /// Begins the options of an election for this role.
    pub fn builder(backend: B, role: impl Into<String>) -> ElectionBuilder<B> {
        ElectionBuilder::new(backend, role.into())
    }

    /// An election with all defaults. Fails as [`ElectionBuilder::build`] does.
    pub fn new(backend: B, role: impl Into<String>) -> Result<Election<B>, Error> {
        Election::builder(backend, role).build()
    }
}

impl<B: Backend> ElectionBuilder<B> {
    pub(super) fn new(backend: B, role: String) -> ElectionBuilder<B> {
        let seat = Seat {
            backend,
            role,
            instance_id: random::id(),
            ttl: TTL,
            renew_every: TTL / RENEWALS,
            priority: 0,
            address: None,
            held_by: HeldBy::default(),
        };
        ElectionBuilder {
            seat,
            renew_every: None,
            check_every: CHECK_EVERY,
            identifier: None,
            metadata: None,
        }
    }

    /// Identifies one life of a process. Default: a random name.
    pub fn instance_id(mut self, id: impl Into<String>) -> Self {
        self.seat.instance_id = id.into();
        self
    }

    /// A name for people. Default: the name of the program.
    pub fn identifier(mut self, identifier: impl Into<String>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    /// The time for which a leader that sends no renewal keeps the role. Default: 30 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.seat.ttl = ttl;
        self
    }

    /// The interval of renewals. Default: a third of the ttl, which is 10 s.
    pub fn renew_every(mut self, span: Duration) -> Self {
        self.renew_every = Some(span);
        self
    }

    /// The time that a follower waits at the cluster for the role before it asks again. Default: 5 s, at most 30 s.
    pub fn check_every(mut self, span: Duration) -> Self {
        self.check_every = span;
        self
    }

    /// Among the contenders that wait, a higher priority goes first. Default: 0.
    pub fn priority(mut self, priority: i64) -> Self {
        self.seat.priority = priority;
        self
    }

    /// The address at which others find the leader.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.seat.address = Some(address.into());
        self
    }

    /// Selects how the role is held. Default: by a lease and a connection.
    pub fn held_by(mut self, held_by: HeldBy) -> Self {
        self.seat.held_by = held_by;
        self
    }

    /// The metadata that others see while this process leads. Default: none.
    pub fn metadata(mut self, metadata: Value) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Checks the options and returns the election, which is not started yet. Fails with [`Error::BadOption`].
    pub fn build(mut self) -> Result<Election<B>, Error> {
        self.seat.renew_every = self.renew_every.unwrap_or(self.seat.ttl / RENEWALS);
        self.seat.check()?;
        if self.check_every.is_zero() || self.check_every > CHECK_MOST {
            return Err(Error::BadOption { name: "check_every", why: "must be above 0 and at most 30 s" });
        }
        let identifier = self.identifier.unwrap_or_else(program);
        let core = Core::new(self.seat, self.check_every, identifier, self.metadata);
        Ok(Election::of(core))
    }
}

fn program() -> String {
    let path = std::env::current_exe().ok();
    let name =
        path.as_ref().and_then(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "eldest-client".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[tokio::test]
    async fn the_defaults() {
        let election = Election::new(Memory::new(), "r").expect("good options");
        let core = &election.core;
        assert_eq!((core.seat.ttl.as_secs(), core.seat.renew_every.as_secs()), (30, 10));
        assert_eq!((core.check_every.as_secs(), core.seat.priority), (5, 0));
        assert!(election.id().len() == 32 && !election.identifier().is_empty());
        let short = Election::builder(Memory::new(), "r").ttl(Duration::from_secs(6)).build();
        assert_eq!(short.expect("good options").core.seat.renew_every, Duration::from_secs(2));
    }
}
