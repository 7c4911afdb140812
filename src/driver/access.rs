//! Who is let in by a token, where any thread looks without asking the loop (P56).

use std::sync::Arc;

use tokio::sync::watch;

use super::api::{Handle, Signs};
use super::clock;
use super::tokens::Tokens;
use crate::store::Store;
use crate::types::WallTime;

impl Signs {
    /// Says who is let in by a token; before it is shown that what made or revoked it is applied.
    pub fn let_in(&self, store: &Store) {
        self.access.send_if_modified(|tokens| {
            let news = tokens.changed_in(store);
            news.map(|news| *tokens = news.into()).is_some()
        });
    }
}

impl Handle {
    /// Who is let in by a token, as of what this node has applied.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.access.borrow().clone()
    }

    /// Tells of each change to them; closed when the node ends.
    pub fn access(&self) -> watch::Receiver<Arc<Tokens>> {
        self.access.clone()
    }

    /// By this node's own clock: whether a token has ended.
    pub fn wall(&self) -> WallTime {
        clock::now().wall
    }
}
