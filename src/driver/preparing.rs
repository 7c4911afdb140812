//! What takes as long as there is much of it is done beside the loop: states from other nodes are worked in (P49), and what was
//! large is freed.

use super::engine::Engine;
use crate::replica::{Discarded, Preparation, Prepared};

/// The replica asks for one at a time.
pub const PREPARED_MOST: usize = 1;

impl Engine {
    pub fn prepare(&self, preparation: Preparation) {
        let tell = self.prepared.clone();
        tokio::task::spawn_blocking(move || {
            let prepared: Prepared = preparation.run();
            // A loop that has ended takes nothing more; its process is about to end.
            let _ = tell.blocking_send(prepared);
        });
    }

    pub fn discard(&self, discarded: Discarded) {
        tokio::task::spawn_blocking(move || drop(discarded));
    }
}
