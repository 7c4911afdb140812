//! C14: no lease ends before the time that its holder was promised has passed since it asked, no matter which
//! node promised and which one ends it. There is one exception: a promise made before its holder named a
//! connection, or while it did, is void once the serving node may say that this connection has closed (P45).

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, ensure};

const NAME: &str = "C14 never early";

#[derive(Clone, Copy, Debug)]
struct Promise {
    sent: u64,
    until: u64,
}

/// Keyed by token; times are true time.
#[derive(Debug, Default)]
pub struct Early {
    promised: BTreeMap<u64, Vec<Promise>>,
    /// The time at which each tie was last named: until then its holder agreed that the lease ends with it.
    named: BTreeMap<(u64, u64), u64>,
    untied: BTreeSet<(u64, u64)>,
    expired: BTreeMap<u64, u64>,
}

impl Early {
    /// A renewal that was sent at this time names this connection.
    pub fn names(&mut self, token: u64, tie: u64, sent: u64) {
        self.named.insert((token, tie), sent);
    }

    /// The node that served this connection says that it has closed.
    pub fn unties(&mut self, token: u64, tie: u64) {
        self.untied.insert((token, tie));
    }

    /// An answer leaves, whether or not it arrives. `until` is counted from the request, less what holders
    /// take off.
    pub fn promised(&mut self, token: u64, sent: u64, until: u64) -> Check {
        let promises = self.promised.entry(token).or_default();
        // A promise that was sent no later and lasts no longer than this one adds nothing.
        promises.retain(|promise| promise.sent > sent || promise.until > until);
        promises.push(Promise { sent, until });
        let (expired, void) = (self.expired.get(&token), self.void_until(token));
        ensure(expired.is_none_or(|at| until <= *at || sent <= void), NAME, || {
            format!("{token} is promised until {until}, and expired at {expired:?}")
        })
    }

    /// The record that ends the lease is committed.
    pub fn expired(&mut self, now: u64, token: u64) -> Check {
        self.expired.insert(token, now);
        let void = self.void_until(token);
        let promised = self.latest(token, |promise| promise.sent > void);
        ensure(promised <= now, NAME, || format!("{token} expires at {now}, promised until {promised}"))
    }

    /// Whether the lease ends now before all that was promised has passed.
    pub fn is_untied(&self, now: u64, token: u64) -> bool {
        self.latest(token, |_| true) > now
    }

    fn latest(&self, token: u64, counts: impl Fn(&Promise) -> bool) -> u64 {
        let promises = self.promised.get(&token).into_iter().flatten().filter(|promise| counts(promise));
        promises.map(|promise| promise.until).max().unwrap_or_default()
    }

    /// Promises whose requests were sent up to this time are void.
    fn void_until(&self, token: u64) -> u64 {
        let untied = self.untied.range((token, 0)..=(token, u64::MAX));
        untied.filter_map(|tie| self.named.get(tie)).copied().max().unwrap_or_default()
    }
}
