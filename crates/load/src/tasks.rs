//! The state that the tasks of a benchmark share, and the end of a task that fails.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// Locks the shared state. The counts are right after any number of whole steps, so a panic in another task does no
/// harm.
pub fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the first of several endless tasks. A task that ends has failed, and then the program has failed.
pub async fn failure(tasks: &mut JoinSet<()>) {
    if let Some(Err(ended)) = tasks.join_next().await
        && let Ok(panic) = ended.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
