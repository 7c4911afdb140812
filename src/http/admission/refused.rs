//! Refused credentials, counted by address. A caller that goes on guessing is refused, and fills neither the audit log nor the
//! leader's time. A call with a credential that this node knows is never refused because of other callers at its address. A call
//! with a token that this node does not know may be, because only the leader can tell that token from a guess.
//!
//! A second table of this type bounds the lines of the audit log about calls with a valid credential and
//! without the grant (`Context::denied`). Beyond it those calls get the same answer, and no line.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};

use super::places::Origin;
use crate::http::answer::{Code, Problem};
use crate::metrics::Counter;

/// A program with an old token tries a few times; a secret of 256 bits is not found in a million tries.
const MOST: u32 = 20;
/// It begins with the first refusal of an address.
const WINDOW: Duration = Duration::from_secs(60);

/// The maximum number of remembered addresses. All further addresses are counted as one.
const ADDRESSES_MOST: usize = 4096;

/// The key is None for all calls whose address is not known, and for all addresses beyond the bound of the
/// table.
#[derive(Debug, Default)]
pub struct Refused(Mutex<HashMap<Option<Origin>, Counts>>);

#[derive(Clone, Copy, Debug)]
struct Counts {
    since: Instant,
    refused: u32,
}

impl Refused {
    /// Counts one more, and returns whether it is within the limit.
    /// Windows that are over are removed only when the table is full: until then a lookup is enough.
    pub fn add(&self, origin: Option<Origin>, now: Instant) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place_of(&mut known, origin, now);
        let counts = known.entry(place).or_insert(Counts { since: now, refused: 0 });
        if counts.is_over(now) {
            *counts = Counts { since: now, refused: 0 };
        }
        counts.refused = counts.refused.saturating_add(1);
        counts.refused <= MOST
    }

    /// Returns whether the address has reached the limit for now.
    /// It is asked before an unknown token is looked up at the leader, so guesses from one address cost the
    /// leader some 20 calls in a minute.
    pub fn is_full(&self, origin: Option<Origin>, now: Instant) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place_of(&mut known, origin, now);
        known.get(&place).is_some_and(|counts| counts.refused >= MOST && !counts.is_over(now))
    }

    pub fn too_many() -> Problem {
        let bound = "refused credentials from one address";
        let detail = format!("limit reached: {bound}, {MOST} a minute");
        Problem::new(Code::TooManyRequests, detail).with("bound", bound)
    }
}

/// Returns the address under which a call is counted: with a full table, that of all further addresses.
fn place_of(
    known: &mut HashMap<Option<Origin>, Counts>,
    origin: Option<Origin>,
    now: Instant,
) -> Option<Origin> {
    if known.len() >= ADDRESSES_MOST && !known.contains_key(&origin) {
        known.retain(|_, counts| !counts.is_over(now));
    }
    origin.filter(|_| known.len() < ADDRESSES_MOST || known.contains_key(&origin))
}

impl Counts {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= WINDOW
    }
}

/// The interval between log lines on failed handshakes: any client can cause them.
const TOLD_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct FailedHandshakes {
    pub count: Counter,
    /// The time of the last log line.
    told: Mutex<Option<Instant>>,
}

impl FailedHandshakes {
    pub fn note(&self, from: SocketAddr, why: &str) {
        self.count.add(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(%from, why, failed_so_far = self.count.get(), "a TLS handshake failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn origin(number: u32) -> Option<Origin> {
        Some(Origin::of(IpAddr::from(number.to_be_bytes())))
    }

    #[test]
    fn each_address_is_counted_by_itself_and_a_minute_at_a_time() {
        let (refused, now) = (Refused::default(), Instant::now());
        assert!((0..MOST).all(|_| refused.add(origin(1), now)));
        assert!(!refused.add(origin(1), now) && refused.add(origin(2), now));
        assert!(!refused.add(origin(1), now + WINDOW - Duration::from_secs(1)));
        assert!(refused.add(origin(1), now + WINDOW));
    }

    #[test]
    fn the_table_has_an_end() {
        let (refused, now) = (Refused::default(), Instant::now());
        for number in 0..ADDRESSES_MOST as u32 {
            assert!(refused.add(origin(number), now));
        }
        assert!(!refused.is_full(origin(1 << 24), now));
        assert_eq!((0..100).filter(|more| refused.add(origin(1 << 24 | more), now)).count(), MOST as usize);
        assert!(refused.is_full(origin(1 << 24 | 1 << 16), now), "counted as one");
        assert!(refused.0.lock().expect("nobody panics").len() <= ADDRESSES_MOST + 1);
        assert!(refused.add(origin(1 << 24), now + WINDOW), "the others' minute is over");
    }
}
