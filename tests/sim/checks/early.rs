//! C14: no lease ends before what its holder was promised has passed since it asked, whoever promised and whoever ends it.

use std::collections::BTreeMap;

use super::{Check, ensure};

const NAME: &str = "C14 never early";

/// By token, in true time.
#[derive(Debug, Default)]
pub struct Early {
    promised: BTreeMap<u64, u64>,
    expired: BTreeMap<u64, u64>,
}

impl Early {
    /// An answer leaves, whether or not it arrives. `until`: from the asking, less what holders take off.
    pub fn promised(&mut self, token: u64, until: u64) -> Check {
        let promised = self.promised.entry(token).or_default();
        *promised = until.max(*promised);
        let expired = self.expired.get(&token);
        ensure(expired.is_none_or(|at| until <= *at), NAME, || {
            format!("{token} is promised until {until}, and expired at {expired:?}")
        })
    }

    /// The record that says so is committed.
    pub fn expired(&mut self, now: u64, token: u64) -> Check {
        self.expired.insert(token, now);
        let promised = self.promised.get(&token).copied().unwrap_or_default();
        ensure(promised <= now, NAME, || format!("{token} expires at {now}, promised until {promised}"))
    }
}
