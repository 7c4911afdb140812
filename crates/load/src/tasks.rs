//! What the tasks of a benchmark share, and what becomes of one that fails.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// What is counted is right after any number of whole steps, so that a panic elsewhere does no harm to it.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the first of tasks that have no end of their own: one that ends has failed, and so has the program.
pub async fn failure(tasks: &mut JoinSet<()>) {
    if let Some(Err(ended)) = tasks.join_next().await
        && let Ok(panic) = ended.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
