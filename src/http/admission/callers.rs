//! Tracks the address of each caller, and how much each address uses of this node: connections, and memory for bodies.
//!
//! Both are bounded for all callers together and for each address by itself, so that one address leaves room for the others. Behind a
//! proxy all clients have one address; its share is large.
//!
//! ```text
//!   Callers ── Weak ──► Caller, one for each address ◄── Arc ── ConnectionPlace, Held
//!      └── Shared: the counts of all callers together ◄────────────┘
//! ```
//!
//! A caller lives as long as a connection or a body of its address. Then everything that is known of the
//! address is forgotten, also that it is a peer's: the next connection proves it again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::places::Origin;
use crate::config::HttpLimits;
use crate::http::answer::{Code, Problem};

/// Connections beyond all limits, for one call each: for probes and operators when all other connections are taken.
const RESERVE: usize = 64;
/// The part of them that one address may use.
const RESERVE_EACH: usize = 16;

/// The number of addresses at which unused ones are removed; afterwards this happens at twice the number that was left.
/// So the work for each new address stays constant on average, and the table has at most twice as many
/// entries as were in use when it was last searched, or this many.
const LOOKED_THROUGH_AT: usize = 64;

/// The amount in use, by one caller or by all.
#[derive(Debug, Default)]
struct Used(AtomicUsize);

impl Used {
    /// The amount is added before it is compared, so what is granted never exceeds the bound. Two callers at
    /// once may both be refused although one of them would have fitted.
    fn take(&self, more: usize, most: usize) -> bool {
        let before = self.0.fetch_add(more, Ordering::Relaxed);
        let fits = before.saturating_add(more) <= most;
        if !fits {
            self.give_back(more);
        }
        fits
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn give_back(&self, less: usize) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }
}

/// The state that all callers share.
#[derive(Debug)]
struct Shared {
    connections: Used,
    connections_most: usize,
    connections_each: usize,
    reserve: Used,
    bytes: Used,
    bytes_most: usize,
    bytes_each: usize,
}

#[derive(Debug)]
pub struct Callers {
    shared: Arc<Shared>,
    known: Mutex<Known>,
}

/// Addresses with connections, or with bodies that are still held.
#[derive(Debug)]
struct Known {
    callers: HashMap<Origin, Weak<Caller>>,
    look_through_at: usize,
}

/// One address, for all of its connections.
#[derive(Debug)]
pub struct Caller {
    pub origin: Origin,
    shared: Arc<Shared>,
    connections: Used,
    reserve: Used,
    bytes: Used,
    /// A caller at this address has proved to be a node of this cluster.
    /// Peers that the topology lists by a name are recognized only by this.
    is_peer: AtomicBool,
}

/// The place of a connection; given back when dropped.
#[derive(Debug)]
pub struct ConnectionPlace {
    pub caller: Arc<Caller>,
    pub is_reserve: bool,
}

/// Memory for a body; given back when dropped.
#[derive(Debug)]
pub struct Held {
    caller: Arc<Caller>,
    bytes: usize,
}

impl Callers {
    pub fn new(limits: &HttpLimits) -> Callers {
        let shared = Shared {
            connections: Used::default(),
            connections_most: limits.connections,
            connections_each: part(limits.connections_each, limits.connections),
            reserve: Used::default(),
            bytes: Used::default(),
            bytes_most: limits.bodies_bytes,
            bytes_each: part(limits.bodies_bytes_each, limits.bodies_bytes),
        };
        let known = Known { callers: HashMap::new(), look_through_at: LOOKED_THROUGH_AT };
        Callers { shared: Arc::new(shared), known: Mutex::new(known) }
    }

    /// Takes a place for a connection from this address, one of the reserve if necessary. There are `extra` places if the address belongs
    /// to another node, or if a caller there has proved to be one.
    /// The address's own count comes first: an address with a full share does not touch the count of all.
    pub fn place(&self, from: IpAddr, is_peer: bool, extra: usize) -> Option<ConnectionPlace> {
        let (caller, shared) = (self.caller(from), &self.shared);
        let extra = if is_peer || caller.is_peer() { extra } else { 0 };
        if caller.connections.take(1, shared.connections_each.saturating_add(extra)) {
            if shared.connections.take(1, shared.connections_most.saturating_add(extra)) {
                return Some(ConnectionPlace { caller, is_reserve: false });
            }
            caller.connections.give_back(1);
        }
        if caller.reserve.take(1, RESERVE_EACH) {
            if shared.reserve.take(1, RESERVE) {
                return Some(ConnectionPlace { caller, is_reserve: true });
            }
            caller.reserve.give_back(1);
        }
        None
    }

    /// Returns the number of connections, without those of the reserve, and its limit.
    pub fn connections(&self) -> (usize, usize) {
        (self.shared.connections.now(), self.shared.connections_most)
    }

    /// Returns the bytes of bodies, and their limit.
    pub fn bytes(&self) -> (usize, usize) {
        (self.shared.bytes.now(), self.shared.bytes_most)
    }

    fn caller(&self, from: IpAddr) -> Arc<Caller> {
        let origin = Origin::of(from);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = known.callers.get(&origin).and_then(Weak::upgrade) {
            return caller;
        }
        if known.callers.len() >= known.look_through_at {
            known.callers.retain(|_, caller| caller.strong_count() > 0);
            known.look_through_at = LOOKED_THROUGH_AT.max(2 * known.callers.len());
        }
        let caller = Arc::new(Caller {
            origin,
            shared: self.shared.clone(),
            connections: Used::default(),
            reserve: Used::default(),
            bytes: Used::default(),
            is_peer: AtomicBool::new(false),
        });
        known.callers.insert(origin, Arc::downgrade(&caller));
        caller
    }
}

/// Returns the configured part, or half of the whole.
/// Half, so that two addresses are needed to use up everything.
fn part(told: usize, whole: usize) -> usize {
    if told == 0 { whole.div_ceil(2) } else { told.min(whole) }
}

impl Caller {
    pub fn has_proved_a_peer(&self) {
        self.is_peer.store(true, Ordering::Relaxed);
    }

    pub fn is_peer(&self) -> bool {
        self.is_peer.load(Ordering::Relaxed)
    }

    /// Returns None if there is no memory left for the body.
    pub fn hold(self: &Arc<Caller>, bytes: usize) -> Option<Held> {
        let mut held = Held { caller: self.clone(), bytes: 0 };
        held.grow(bytes).then_some(held)
    }

    /// For a response that already exists and must be sent in any case: the outcome of a write.
    /// The count may exceed its bound by this. Further bodies are refused until it is below again.
    pub fn hold_anyway(self: &Arc<Caller>, bytes: usize) -> Held {
        self.bytes.take(bytes, usize::MAX);
        self.shared.bytes.take(bytes, usize::MAX);
        Held { caller: self.clone(), bytes }
    }
}

impl Held {
    /// Returns false if there is no memory left for more.
    /// The memory that is held already stays held if there is no room for more.
    pub fn grow(&mut self, more: usize) -> bool {
        let Caller { shared, bytes, .. } = &*self.caller;
        if !bytes.take(more, shared.bytes_each) {
            return false;
        }
        let fits = shared.bytes.take(more, shared.bytes_most);
        if fits {
            self.bytes += more;
        } else {
            bytes.give_back(more);
        }
        fits
    }
}

/// The problem that is sent when [`Held::grow`] fails.
pub fn no_memory() -> Problem {
    let bound = "memory for bodies on this node";
    Problem::new(Code::TooManyRequests, format!("limit reached: {bound}")).with("bound", bound)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.caller.bytes.give_back(self.bytes);
        self.caller.shared.bytes.give_back(self.bytes);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let Caller { shared, connections, reserve, .. } = &*self.caller;
        let (own, all) = match self.is_reserve {
            true => (reserve, &shared.reserve),
            false => (connections, &shared.connections),
        };
        own.give_back(1);
        all.give_back(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callers(limits: HttpLimits) -> Callers {
        Callers::new(&limits)
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn one_address_leaves_connections_to_the_others_and_a_few_to_probes() {
        let callers = callers(HttpLimits { connections: 100, ..HttpLimits::default() });
        let seats: Vec<_> = (0..200).filter_map(|_| callers.place(address(1), false, 0)).collect();
        let ordinary = seats.iter().filter(|seat| !seat.is_reserve).count();
        assert_eq!((ordinary, seats.len()), (50, 50 + RESERVE_EACH));
        let others: Vec<_> = (0..200).filter_map(|_| callers.place(address(2), false, 0)).collect();
        assert_eq!(others.iter().filter(|seat| !seat.is_reserve).count(), 50);
        assert_eq!(callers.connections(), (100, 100));
        assert!(callers.place(address(3), false, 0).is_some_and(|seat| seat.is_reserve));
        assert!(callers.place(address(1), true, 1).is_some_and(|seat| !seat.is_reserve), "a peer");
        assert!(callers.place(address(4), false, 9).is_some_and(|seat| seat.is_reserve));
        callers.caller(address(2)).has_proved_a_peer();
        assert!(
            callers.place(address(2), false, 1).is_some_and(|seat| !seat.is_reserve),
            "a peer behind a name"
        );
        drop(seats);
        assert!(callers.place(address(3), false, 0).is_some_and(|seat| !seat.is_reserve));
    }

    #[test]
    fn the_reserve_has_an_end() {
        let callers = callers(HttpLimits { connections: 1, ..HttpLimits::default() });
        let seats: Vec<_> = (0..100).filter_map(|last| callers.place(address(last), false, 0)).collect();
        assert_eq!(seats.len(), 1 + RESERVE);
    }

    #[test]
    fn memory_is_for_all_and_a_part_of_it_for_each() {
        let callers =
            callers(HttpLimits { bodies_bytes: 100, bodies_bytes_each: 60, ..HttpLimits::default() });
        let [first, second] =
            [1, 2].map(|last| callers.place(address(last), false, 0).expect("there is room").caller.clone());
        let mut held = first.hold(40).expect("there is room");
        assert!(held.grow(20) && !held.grow(1));
        assert!(second.hold(41).is_none());
        assert_eq!(callers.bytes(), (60, 100));
        let other = second.hold(40).expect("there is room");
        drop(held);
        let anyway = first.hold_anyway(1000);
        assert!(first.hold(1).is_none() && second.hold(1).is_none());
        drop((anyway, other));
        assert!(first.hold(60).is_some());
    }

    #[test]
    fn addresses_of_one_owner_are_one_and_those_that_have_gone_are_forgotten() {
        let callers = callers(HttpLimits::default());
        let caller = |text: &str| callers.caller(text.parse().expect("an address"));
        let kept = [
            caller("2001:db8::1"),
            caller("2001:db8::2"),
            caller("2001:db8:0:1::1"),
            caller("::ffff:10.0.0.1"),
        ];
        assert!(Arc::ptr_eq(&kept[0], &kept[1]) && !Arc::ptr_eq(&kept[0], &kept[2]));
        assert!(Arc::ptr_eq(&kept[3], &caller("10.0.0.1")));
        for last in 0..=255 {
            let _ = callers.caller([10, 1, 0, last].into());
        }
        let known = callers.known.lock().expect("nobody panics here").callers.len();
        assert!(known <= LOOKED_THROUGH_AT, "{known}");
    }
}
