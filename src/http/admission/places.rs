//! Places that a caller may keep for long: a count for all callers, and a share of it for each address and for each principal, so that one
//! caller leaves room for the others.
//!
//! ```text
//!   all ────────────────────────────────────────────┐ 12,000
//!   one address ────────────────────────┐ address_percent
//!   one token, the admin token, … ──────┐ three quarters
//! ```
//!
//! A call counts for both of its sharers: an address with many tokens is bounded by the first share, a token with many addresses by the
//! second. It is a plain count: a semaphore would queue, and a queue of calls that time out one after the other serves no caller.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::http::access::Who;
use crate::http::answer::{Code, Problem};
use crate::store::TokenId;
use crate::types::Text;

/// The share of one principal, and of one address if no setting states it.
const PERCENT: usize = 75;

/// The number of tables at which unused ones are removed; afterwards this happens at twice the number that was left.
const LOOKED_THROUGH_AT: usize = 64;

/// The origin of a call: an address, or the network of one household for IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin(IpAddr);

impl Origin {
    /// A client with IPv6 has 2^64 addresses, so they count as one.
    pub fn of(address: IpAddr) -> Origin {
        const NETWORK: u128 = !0 << 64;
        Origin(match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & NETWORK))
            }
            address => address,
        })
    }

    pub fn address(self) -> IpAddr {
        self.0
    }
}

/// A unit that has a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharer {
    Address(Origin),
    Token(TokenId),
    Admin,
    /// All callers without a token.
    NoToken,
    /// All callers with a token that this node does not know.
    /// If each counted by itself, a caller could make up tokens, and would have no share.
    UnknownToken,
}

impl Sharer {
    pub fn of(who: &Who) -> Sharer {
        match who {
            Who::Anonymous => Sharer::NoToken,
            Who::Admin => Sharer::Admin,
            Who::Token { id, .. } => Sharer::Token(*id),
            Who::Unknown => Sharer::UnknownToken,
        }
    }

    /// Returns the words by which a refusal names the full share.
    fn told(self) -> &'static str {
        match self {
            Sharer::Address(_) => ", of one address",
            Sharer::Token(_) => ", of one token",
            Sharer::Admin => ", of the admin token",
            Sharer::NoToken => ", of all callers without a token",
            Sharer::UnknownToken => ", of all callers with an unknown token",
        }
    }
}

/// The sharers that one call counts for. None if they are not known: for this node's own work, and in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharers {
    pub origin: Option<Origin>,
    pub principal: Option<Sharer>,
}

impl Sharers {
    pub fn at(origin: Origin) -> Sharers {
        Sharers { origin: Some(origin), principal: None }
    }

    fn each(self) -> impl Iterator<Item = Sharer> {
        self.origin.map(Sharer::Address).into_iter().chain(self.principal)
    }
}

/// The sizes of the shares.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    pub address_percent: usize,
    /// Whether callers without a token are one principal. Without an admin token no caller needs a token, so this group would be
    /// all callers.
    pub no_token_is_one: bool,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares { address_percent: PERCENT, no_token_is_one: false }
    }
}

impl Shares {
    /// Returns None for a sharer that may take everything: it is not counted.
    fn of(self, most: usize, sharer: Sharer) -> Option<usize> {
        let percent = match sharer {
            Sharer::Address(_) => self.address_percent,
            Sharer::NoToken if !self.no_token_is_one => return None,
            Sharer::Token(_) | Sharer::Admin | Sharer::NoToken | Sharer::UnknownToken => PERCENT,
        };
        // A single place cannot be shared.
        Some((most * percent / 100).max(1))
    }
}

#[derive(Debug)]
pub struct Places {
    bound: &'static str,
    most: usize,
    shares: Shares,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Entries with a zero count are removed.
    by_sharer: HashMap<Sharer, usize>,
}

/// One place, given back when dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    sharers: Sharers,
    /// Those of the sharers that have a share, and so a count.
    counted: [Option<Sharer>; 2],
}

impl Taken {
    fn give_back(&mut self, counted: [Option<Sharer>; 2]) {
        for sharer in counted.into_iter().flatten() {
            if let Entry::Occupied(mut own) = self.by_sharer.entry(sharer) {
                *own.get_mut() -= 1;
                if *own.get() == 0 {
                    own.remove();
                }
            }
        }
    }
}

impl Places {
    /// `bound` is its name in a refusal.
    pub fn new(bound: &'static str, most: usize, shares: Shares) -> Arc<Places> {
        Arc::new(Places { bound, most, shares, taken: Mutex::default() })
    }

    pub fn take(self: &Arc<Places>, sharers: Sharers) -> Result<Place, Problem> {
        let mut taken = self.taken();
        if taken.all >= self.most {
            return Err(full(self.bound, ""));
        }
        let mut counted = [None; 2];
        for (sharer, counts) in sharers.each().zip(0..) {
            let Some(share) = self.shares.of(self.most, sharer) else { continue };
            let own = taken.by_sharer.entry(sharer).or_default();
            if *own >= share {
                taken.give_back(counted);
                return Err(full(self.bound, sharer.told()));
            }
            *own += 1;
            counted[counts] = Some(sharer);
        }
        taken.all += 1;
        Ok(Place { places: self.clone(), sharers, counted })
    }

    /// Returns how many places are taken, and how many there are.
    pub fn in_use(&self) -> (usize, usize) {
        (self.taken().all, self.most)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full(bound: &str, whose: &str) -> Problem {
    let bound = format!("{bound}{whose}");
    Problem::new(Code::TooManyRequests, format!("limit reached: {bound}")).with("bound", bound)
}

impl Place {
    pub fn sharers(&self) -> Sharers {
        self.sharers
    }

    pub fn is_of(&self, places: &Arc<Places>) -> bool {
        Arc::ptr_eq(&self.places, places)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        taken.give_back(self.counted);
    }
}

/// Places of the same kind for each of many names.
#[derive(Debug)]
pub struct PlacesByName {
    bound: &'static str,
    most: usize,
    shares: Shares,
    known: Mutex<Known>,
}

/// Names with a place that is taken.
#[derive(Debug)]
struct Known {
    by_name: HashMap<Text, Weak<Places>>,
    look_through_at: usize,
}

impl PlacesByName {
    /// `most` is the number of places of one name.
    pub fn new(bound: &'static str, most: usize, shares: Shares) -> PlacesByName {
        let known = Known { by_name: HashMap::new(), look_through_at: LOOKED_THROUGH_AT };
        PlacesByName { bound, most, shares, known: Mutex::new(known) }
    }

    pub fn take(&self, name: &Text, sharers: Sharers) -> Result<Place, Problem> {
        self.of(name).take(sharers)
    }

    fn of(&self, name: &Text) -> Arc<Places> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = known.by_name.get(name).and_then(Weak::upgrade) {
            return places;
        }
        if known.by_name.len() >= known.look_through_at {
            known.by_name.retain(|_, places| places.strong_count() > 0);
            known.look_through_at = LOOKED_THROUGH_AT.max(2 * known.by_name.len());
        }
        // A name without a taken place is forgotten, so the table is bounded by the places that callers keep.
        let places = Places::new(self.bound, self.most, self.shares);
        known.by_name.insert(name.clone(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares = Shares { address_percent: 50, no_token_is_one: true };
    const ANYBODY: Sharers = Sharers { origin: None, principal: None };

    fn sharers(last: u8, principal: Sharer) -> Sharers {
        Sharers { principal: Some(principal), ..Sharers::at(Origin::of([10, 0, 0, last].into())) }
    }

    fn token(id: u64) -> Sharer {
        Sharer::Token(TokenId(id))
    }

    fn fill(places: &Arc<Places>, mut next: impl FnMut(u8) -> Sharers) -> Vec<Place> {
        (0..=255).map_while(|number| places.take(next(number)).ok()).collect()
    }

    fn refused(places: &Arc<Places>, sharers: Sharers) -> String {
        format!("{:?}", places.take(sharers).expect_err("it is full"))
    }

    #[test]
    fn one_address_and_one_token_leave_room_to_others() {
        let places = Places::new("chairs", 100, SHARES);
        let of_address = fill(&places, |number| sharers(1, token(number.into())));
        assert_eq!(of_address.len(), 50);
        assert!(refused(&places, sharers(1, token(1))).contains("chairs, of one address"));
        let others = places.take(sharers(2, token(1)));
        assert!(others.is_ok(), "another address has room, also with a token that is used there");
        drop((of_address, others));
        let of_token = fill(&places, |number| sharers(number, token(1)));
        assert_eq!(of_token.len(), PERCENT);
        assert!(refused(&places, sharers(254, token(1))).contains("chairs, of one token"));
        let others = fill(&places, |number| sharers(number, token(2)));
        assert_eq!(others.len(), 100 - PERCENT);
        assert!(refused(&places, sharers(254, token(3))).contains("\"chairs\""), "of all");
        drop((of_token, others));
        let taken = places.taken();
        assert_eq!((taken.all, taken.by_sharer.len()), (0, 0));
    }

    #[test]
    fn whoever_needs_no_token_is_not_one() {
        let shares = Shares { address_percent: 100, no_token_is_one: false };
        for (shares, most) in [(shares, 100), (Shares { no_token_is_one: true, ..shares }, PERCENT)] {
            let places = Places::new("chairs", 100, shares);
            assert_eq!(fill(&places, |_| sharers(1, Sharer::NoToken)).len(), most);
        }
    }

    #[test]
    fn each_principal_has_a_share() {
        let places = Places::new("chairs", 100, SHARES);
        let all = [Sharer::Admin, Sharer::NoToken, Sharer::UnknownToken, token(1)];
        for principal in all {
            let taken = fill(&places, |number| sharers(number, principal));
            assert_eq!(taken.len(), PERCENT, "{principal:?}");
            for other in all.into_iter().filter(|other| *other != principal) {
                assert!(places.take(sharers(1, other)).is_ok(), "{other:?} beside {principal:?}");
            }
        }
    }

    #[test]
    fn a_share_is_never_all_of_several() {
        for most in 2..2000 {
            for sharer in [Sharer::Admin, Sharer::Address(Origin::of([10, 0, 0, 1].into()))] {
                assert!(
                    Shares::default().of(most, sharer).is_some_and(|share| (1..most).contains(&share)),
                    "{most}"
                );
            }
        }
        let one = Places::new("chairs", 1, SHARES);
        assert!(one.take(sharers(1, token(1))).is_ok());
    }

    #[test]
    fn each_name_has_places_and_those_that_nobody_has_are_forgotten() {
        let names = PlacesByName::new("chairs", 4, SHARES);
        let take = |name: &str, last| names.take(&name.into(), sharers(last, Sharer::Admin));
        let kept = [take("a", 1), take("a", 1)];
        assert!(kept.iter().all(Result::is_ok) && take("a", 1).is_err());
        assert!(take("a", 2).is_ok() && take("b", 1).is_ok());
        for number in 0..1000 {
            assert!(names.take(&format!("{number}").as_str().into(), ANYBODY).is_ok());
        }
        assert!(names.known.lock().expect("nobody panics here").by_name.len() <= LOOKED_THROUGH_AT);
        assert!(take("a", 1).is_err(), "what is used is not forgotten");
    }
}
