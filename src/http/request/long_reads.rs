//! Long reads go through many rows: they take turns, beside the threads that serve connections.

use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

#[derive(Debug)]
pub struct LongReads {
    turns: Semaphore,
}

impl LongReads {
    /// One core is left for everything else, where there are several. Who waits for a turn has a seat among the lists.
    pub fn new() -> LongReads {
        let cores = available_parallelism().map_or(1, usize::from);
        LongReads { turns: Semaphore::new(cores.saturating_sub(1).max(1)) }
    }

    /// Meanwhile another thread serves the connections of this one.
    pub async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => work(),
            _ => block_in_place(work),
        }
    }
}
