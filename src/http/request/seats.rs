//! Seats bound how many client calls are under way, each class by itself: whoever fills the seats of reads, or waits for roles by the
//! thousands, takes no seat from those who renew what they hold. Of each class one address has a share at most.
//!
//! | class | share of `limits.requests` | what |
//! |---|---|---|
//! | renewals | 8/32 | `renew`, `release`, `tie`, `untie`, a process's heartbeats and its end; a document's `renew` |
//! | orders | 1/32 | operators' routes |
//! | writes | 11/32 | what changes data, and who wants a role |
//! | reads | 12/32 | all other reads |
//! | lists | 64 | pages of many items, until the last byte of the answer is with the client |
//! | waits | as many as `limits.requests`, besides | who wants a role and waits for it |
//!
//! It is a plain count: a semaphore would queue, and a queue of calls that time out one after the other serves nobody.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use axum::http::Method;

use crate::http::answer::{Code, Problem};

/// Each holds a page of up to 4 MiB, and what is written around it.
const LISTS_MOST: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Renewals,
    Orders,
    Writes,
    Reads,
    Lists,
    Waits,
}

const CLASSES: usize = 6;

/// Whom a call comes from: an address, or the network of one household where addresses are plenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin(IpAddr);

/// Who calls, and where it sits: among what a request carries along.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub origin: Option<Origin>,
    seat: Weak<Seat>,
}

#[derive(Debug)]
pub struct Seats {
    most: [usize; CLASSES],
    /// Of one origin.
    most_each: [usize; CLASSES],
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: [usize; CLASSES],
    by_origin: HashMap<Origin, [usize; CLASSES]>,
}

/// One of them, given back when dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    origin: Option<Origin>,
    class: Mutex<Class>,
}

impl Class {
    /// None for who asks where to send clients: that is answered even when there is no room for clients.
    pub fn of(method: &Method, path: &str) -> Option<Class> {
        if matches!(path, "/livez" | "/readyz" | "/leader") {
            return None;
        }
        Some(match (method, path) {
            (_, "/v1/backup" | "/v1/restore") => Class::Orders,
            // It asks all other nodes, and its answer may be large.
            (&Method::GET | &Method::HEAD, "/v1/explain/leader") => Class::Lists,
            (&Method::GET | &Method::HEAD, _) if is_list(path) => Class::Lists,
            (&Method::GET | &Method::HEAD, _) => Class::Reads,
            (&Method::POST, "/heartbeat" | "/hearbeat" | "/declare_capability" | "/is_leader") => {
                Class::Reads
            }
            (&Method::POST, "/writesync" | "/v1/commands") => Class::Writes,
            (&Method::POST, _) => Class::of_post(path),
            (&Method::DELETE, _) if path.starts_with("/v1/processes/") => Class::Renewals,
            _ => Class::Writes,
        })
    }

    fn of_post(path: &str) -> Class {
        let operation = path.rsplit_once('/').map_or("", |(_, operation)| operation);
        match operation {
            "renew" | "release" | "tie" | "untie" if path.starts_with("/v1/roles/") => Class::Renewals,
            "heartbeat" if path.starts_with("/v1/processes/") => Class::Renewals,
            "remove" if path.starts_with("/v1/processes/") => Class::Orders,
            // Whatever else is posted there is told that it is no way to write.
            _ if path.starts_with("/v1/docs/") => Class::Renewals,
            "elect" if path.starts_with("/v1/roles/") => Class::Orders,
            _ if path.starts_with("/v1/") && !matches!(path, "/v1/members" | "/v1/tokens") => Class::Writes,
            _ => Class::Orders,
        }
    }

    fn most(self, requests: usize) -> usize {
        let of_32 = |parts: usize| (requests * parts / 32).max(1);
        match self {
            Class::Renewals => of_32(8),
            Class::Orders => of_32(1),
            Class::Writes => of_32(11),
            Class::Reads => of_32(12),
            Class::Lists => requests.min(LISTS_MOST),
            Class::Waits => requests,
        }
    }

    const ALL: [Class; CLASSES] =
        [Class::Renewals, Class::Orders, Class::Writes, Class::Reads, Class::Lists, Class::Waits];

    pub fn name(self) -> &'static str {
        match self {
            Class::Renewals => "renewals",
            Class::Orders => "orders",
            Class::Writes => "writes",
            Class::Reads => "reads",
            Class::Lists => "lists",
            Class::Waits => "waits",
        }
    }

    fn bound(self) -> &'static str {
        match self {
            Class::Renewals => "calls under way on this node: renewals",
            Class::Orders => "calls under way on this node: orders",
            Class::Writes => "calls under way on this node: writes",
            Class::Reads => "calls under way on this node: reads",
            Class::Lists => "calls under way on this node: lists",
            Class::Waits => "calls that wait on this node",
        }
    }
}

fn is_list(path: &str) -> bool {
    matches!(
        path.trim_end_matches('/'),
        "/v1/docs" | "/v1/users" | "/v1/elections" | "/v1/roles" | "/v1/processes" | "/v1/conflicts"
    )
}

impl Origin {
    /// Who has an IPv6 address has 2^64 of them.
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

impl Seats {
    /// `percent` is what one origin may have of each class.
    pub fn new(requests: usize, percent: usize) -> Seats {
        let most = Class::ALL.map(|class| class.most(requests));
        let most_each = most.map(|most| (most * percent / 100).max(1));
        Seats { most, most_each, taken: Mutex::default() }
    }

    pub fn take(self: &Arc<Seats>, class: Class, origin: Option<Origin>) -> Result<Arc<Seat>, Problem> {
        self.count_in(class, origin)?;
        Ok(Arc::new(Seat { seats: self.clone(), origin, class: Mutex::new(class) }))
    }

    fn count_in(&self, class: Class, origin: Option<Origin>) -> Result<(), Problem> {
        let (mut taken, at) = (self.taken(), class as usize);
        if taken.all[at] >= self.most[at] {
            return Err(full(class.bound(), ""));
        }
        if let Some(origin) = origin {
            let own = taken.by_origin.entry(origin).or_default();
            if own[at] >= self.most_each[at] {
                return Err(full(class.bound(), ", of one address"));
            }
            own[at] += 1;
        }
        taken.all[at] += 1;
        Ok(())
    }

    fn count_out(&self, class: Class, origin: Option<Origin>) {
        let mut taken = self.taken();
        taken.all[class as usize] -= 1;
        if let Some(origin) = origin
            && let Some(own) = taken.by_origin.get_mut(&origin)
        {
            own[class as usize] -= 1;
            if own.iter().all(|count| *count == 0) {
                taken.by_origin.remove(&origin);
            }
        }
    }

    /// How many of each class are under way, and how many may be.
    pub fn in_use(&self) -> [(Class, usize, usize); CLASSES] {
        let taken = self.taken().all;
        Class::ALL.map(|class| (class, taken[class as usize], self.most[class as usize]))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full(bound: &str, whose: &str) -> Problem {
    let bound = format!("{bound}{whose}");
    Problem::new(Code::TooManyRequests, format!("a bound is reached: {bound}")).with("bound", bound)
}

impl Seat {
    pub fn admitted(self: &Arc<Seat>) -> Admitted {
        Admitted { origin: self.origin, seat: Arc::downgrade(self) }
    }

    /// From here on the call waits: its seat is another's.
    fn wait(&self) -> Result<(), Problem> {
        let mut class = self.class.lock().unwrap_or_else(PoisonError::into_inner);
        if *class != Class::Waits {
            self.seats.count_in(Class::Waits, self.origin)?;
            self.seats.count_out(std::mem::replace(&mut class, Class::Waits), self.origin);
        }
        Ok(())
    }
}

impl Admitted {
    /// What a node does for a caller whose call is over has no seat.
    pub fn wait(&self) -> Result<(), Problem> {
        self.seat.upgrade().map_or(Ok(()), |seat| seat.wait())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let class = *self.class.lock().unwrap_or_else(PoisonError::into_inner);
        self.seats.count_out(class, self.origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "10.0.0.1";

    fn seats() -> Arc<Seats> {
        Seats::new(64, 50).into()
    }

    fn origin(text: &str) -> Option<Origin> {
        Some(Origin::of(text.parse().expect("an address")))
    }

    fn fill(seats: &Arc<Seats>, class: Class, origin: Option<Origin>) -> Vec<Arc<Seat>> {
        std::iter::from_fn(|| seats.take(class, origin).ok()).collect()
    }

    #[test]
    fn no_class_takes_the_seats_of_another() {
        let seats = seats();
        for class in Class::ALL {
            let taken = fill(&seats, class, None);
            assert_eq!(taken.len(), class.most(64), "{class:?}");
            for other in Class::ALL.into_iter().filter(|other| *other != class) {
                assert!(seats.take(other, None).is_ok(), "{class:?} is full, and {other:?} is not");
            }
            drop(taken);
            assert!(seats.take(class, None).is_ok(), "they are given back");
        }
    }

    #[test]
    fn one_address_has_a_share() {
        let seats = seats();
        let taken = fill(&seats, Class::Writes, origin(ONE));
        assert_eq!(taken.len(), 11);
        assert!(seats.take(Class::Writes, origin("10.0.0.2")).is_ok());
        let (own, neighbour) = ("2001:db8::1", "2001:db8::2:1");
        let taken = fill(&seats, Class::Reads, origin(own));
        assert!(seats.take(Class::Reads, origin(neighbour)).is_err(), "it is the same network");
        drop(taken);
        assert!(seats.take(Class::Reads, origin(neighbour)).is_ok());
    }

    #[test]
    fn who_waits_gives_its_seat_to_others() {
        let seats = seats();
        let waiting: Vec<_> = (0..30)
            .map(|_| {
                let seat = seats.take(Class::Writes, origin(ONE)).expect("those before it wait elsewhere");
                seat.admitted().wait().expect("there is room to wait");
                seat
            })
            .collect();
        assert_eq!(seats.in_use()[Class::Waits as usize], (Class::Waits, 30, 64));
        drop(waiting);
        let taken = seats.taken();
        assert_eq!((taken.all, taken.by_origin.len()), ([0; CLASSES], 0));
    }

    #[test]
    fn calls_are_told_apart() {
        for (method, path, class) in [
            ("GET", "/v1/docs", Some(Class::Lists)),
            ("GET", "/v1/docs/", Some(Class::Lists)),
            ("GET", "/v1/docs/a", Some(Class::Reads)),
            ("POST", "/v1/roles/a/renew", Some(Class::Renewals)),
            ("POST", "/v1/roles/a/acquire", Some(Class::Writes)),
            ("POST", "/v1/roles/a/elect", Some(Class::Orders)),
            ("POST", "/v1/processes/a/heartbeat", Some(Class::Renewals)),
            ("DELETE", "/v1/processes/a", Some(Class::Renewals)),
            ("DELETE", "/v1/docs/a", Some(Class::Writes)),
            ("POST", "/v1/docs/a", Some(Class::Renewals)),
            ("POST", "/service_down", Some(Class::Orders)),
            ("POST", "/v1/members", Some(Class::Orders)),
            ("POST", "/v1/channels/renew", Some(Class::Writes)),
            ("POST", "/v1/commands", Some(Class::Writes)),
            ("POST", "/catch_up", Some(Class::Orders)),
            ("GET", "/v1/backup", Some(Class::Orders)),
            ("POST", "/v1/restore", Some(Class::Orders)),
            ("POST", "/is_leader", Some(Class::Reads)),
            ("GET", "/readyz", None),
        ] {
            assert_eq!(Class::of(&method.parse().expect("a method"), path), class, "{method} {path}");
        }
    }
}
