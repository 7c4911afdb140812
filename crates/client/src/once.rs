//! Work for one process among many, done once and not kept up.

use super::backend::Backend;
use super::error::Error;
use super::http::Client;
use super::lock::{Lock, LockGuard};

/// One try for a role, and the scope in which it is held: what a cron job needs.
#[derive(Debug)]
pub struct Scope<B: Backend = Client>(Option<LockGuard<B>>);

impl<B: Backend> Scope<B> {
    pub async fn enter(lock: Lock<B>) -> Result<Scope<B>, Error> {
        Ok(Scope(lock.try_acquire().await?))
    }

    pub fn is_leader(&self) -> bool {
        self.0.as_ref().is_some_and(LockGuard::is_held)
    }

    pub fn token(&self) -> Option<u64> {
        self.0.as_ref().filter(|guard| guard.is_held()).map(LockGuard::token)
    }

    pub fn guard(&self) -> Option<&LockGuard<B>> {
        self.0.as_ref()
    }

    /// Gives the role back, if it is held. A scope that is dropped lets it lapse.
    pub async fn leave(self) -> Result<(), Error> {
        match self.0 {
            Some(guard) => guard.release().await,
            None => Ok(()),
        }
    }
}

/// Runs `work` if the role is free, and gives the role back; None if somebody else has it.
///
/// Work that is under way when the lease is lost is dropped, and that is [`Error::LeaseLost`].
pub async fn leader_only<B: Backend, T>(
    backend: B,
    role: &str,
    work: impl AsyncFnOnce(u64) -> T,
) -> Result<Option<T>, Error> {
    let Some(guard) = Lock::new(backend, role).try_acquire().await? else {
        return Ok(None);
    };
    let done = tokio::select! {
        biased;
        () = guard.lost() => None,
        done = work(guard.token()) => Some(done),
    };
    match done {
        Some(done) => {
            // Done is done: a release that fails leaves the role to lapse.
            let _ = guard.release().await;
            Ok(Some(done))
        }
        None => Err(Error::LeaseLost { role: role.to_string(), leader: None, token: None }),
    }
}
