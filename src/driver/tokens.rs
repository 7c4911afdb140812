//! Who is let in by a token: a copy of the state's table (P56).

use std::collections::BTreeMap;

use crate::store::{Store, Token, TokenId};
use crate::types::WallTime;

/// More than there can be.
const ALL: usize = usize::MAX;

/// Written anew with each change of the table, which is rare.
#[derive(Debug, Default)]
pub struct Tokens {
    digest: u64,
    by_id: BTreeMap<TokenId, Token>,
}

impl Tokens {
    /// None if these are the state's already.
    pub fn changed_in(&self, store: &Store) -> Option<Tokens> {
        let digest = store.tokens_digest();
        if digest == self.digest {
            return None;
        }
        let mut by_id = BTreeMap::new();
        loop {
            let after = by_id.last_key_value().map(|(id, _)| *id);
            let page = store.tokens(after, ALL);
            by_id.extend(page.items.into_iter().map(|view| (view.id, view.token)));
            if page.next.is_none() {
                return Some(Tokens { digest, by_id });
            }
        }
    }

    /// Whether whoever was let in by this token still is; if not, why.
    pub fn judge(&self, id: TokenId, now: WallTime) -> Result<(), &'static str> {
        match self.by_id.get(&id) {
            None => Err("the token was revoked"),
            Some(token) if token.has_ended(now) => Err("the token has ended"),
            Some(_) => Ok(()),
        }
    }

    pub fn get(&self, id: TokenId) -> Option<&Token> {
        self.by_id.get(&id)
    }
}
