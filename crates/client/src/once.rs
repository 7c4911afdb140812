//! Work that one process among many does once.

use super::backend::Backend;
use super::error::Error;
use super::http::Client;
use super::lock::{Lock, LockGuard};

/// One try for a role, and the scope in which the role is held. This is what a cron job needs.
#[derive(Debug)]
pub struct Scope<B: Backend = Client>(Option<LockGuard<B>>);

impl<B: Backend> Scope<B> {
    /// Tries once to acquire the lock, without waiting. If another instance holds the role, the scope does not lead. Fails
    /// as [`Lock::try_acquire`] does.
    pub async fn enter(lock: Lock<B>) -> Result<Scope<B>, Error> {
        Ok(Scope(lock.try_acquire().await?))
    }

    /// Whether the role is held at this moment, by the clock and without a call.
    pub fn is_leader(&self) -> bool {
        self.0.as_ref().is_some_and(LockGuard::is_held)
    }

    /// The fencing token, if the role is held at this moment.
    pub fn token(&self) -> Option<u64> {
        self.0.as_ref().filter(|guard| guard.is_held()).map(LockGuard::token)
    }

    /// The guard of the role. Returns `None` if the try did not get the role.
    pub fn guard(&self) -> Option<&LockGuard<B>> {
        self.0.as_ref()
    }

    /// Releases the role, if it is held. If the scope is dropped instead, the role lapses.
    pub async fn leave(self) -> Result<(), Error> {
        match self.0 {
            Some(guard) => guard.release().await,
            None => Ok(()),
        }
    }
}

/// Runs `work` with the token if the role is free, and then releases the role. Returns `None` if another instance
/// holds the role.
///
/// If the lease is lost while the work runs, the work is dropped and the call fails with [`Error::LeaseLost`].
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
            // The work is done, so a failed release is no error: the role lapses.
            let _ = guard.release().await;
            Ok(Some(done))
        }
        None => Err(Error::LeaseLost { role: role.to_string(), leader: None, token: None }),
    }
}
