//! Seats bound the number of open client calls, each class by itself: a client that fills the seats of reads, or waits for roles by the
//! thousands, takes no seat from clients that renew their leases. One address has at most a share of each class, and so has one principal.
//!
//! | class | share of `limits.requests` | calls |
//! |---|---|---|
//! | renewals | 8/32 | `renew`, `release`, `tie`, `untie`, a process's heartbeats and its end; a document's `renew` |
//! | orders | 1/32 | operators' routes |
//! | writes | 11/32 | changes of data, and acquiring a role |
//! | reads | 12/32 | all other reads |
//! | lists | 64 | pages of many items, until the last byte of the response was sent to the client |
//! | waits | as many again as `limits.requests`, but no more than the leader lets wait | callers that wait for a role |
//!
//! The parts of 32 add up to 32: renewals, orders, writes and reads together are `limits.requests`, and lists
//! and waits come on top. Renewals have a part that no other call can take, because a holder whose renewals
//! are refused stops believing in its lease. Orders have one, because an operator has to get through when
//! clients fill the node.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;

use axum::http::Method;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use super::places::{Origin, Place, Places, Sharers, Shares};
use crate::http::answer::Problem;
use crate::types::WAITERS_MOST;

/// Each holds a page of up to 4 MiB, and the text around it.
/// So all of them together hold little more than 256 MiB.
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

/// The sharers of a call, and its seat.
/// The seat is referred to weakly: the front keeps it, and gives it back when the response exists, even if
/// the request's head is kept for longer, as streams do.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    pub sharers: Sharers,
    seat: Weak<Seat>,
}

#[derive(Debug)]
pub struct Seats([Arc<Places>; CLASSES]);

/// One seat, given back when dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    /// It is exchanged when the call begins to wait.
    place: Mutex<Place>,
}

impl Class {
    /// Returns None for a call that asks where to send clients: it is answered even without room for clients.
    /// The class follows from method and path alone, so that a call can be refused before its grants are
    /// judged and its body is read. A path that is no route gets a class, too.
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
            // The answer to any other POST there is that it is not a way to write.
            _ if path.starts_with("/v1/docs/") => Class::Renewals,
            "elect" if path.starts_with("/v1/roles/") => Class::Orders,
            _ if path.starts_with("/v1/") && !matches!(path, "/v1/members" | "/v1/tokens") => Class::Writes,
            _ => Class::Orders,
        }
    }

    /// At least one, so that no class is closed on a node with a small limit.
    fn most(self, requests: usize) -> usize {
        let of_32 = |parts: usize| (requests * parts / 32).max(1);
        match self {
            Class::Renewals => of_32(8),
            Class::Orders => of_32(1),
            Class::Writes => of_32(11),
            Class::Reads => of_32(12),
            Class::Lists => requests.min(LISTS_MOST),
            // The leader takes no more waiters in all: a share of a larger number could be everything that it takes.
            Class::Waits => requests.min(WAITERS_MOST),
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

impl Seats {
    pub fn new(requests: usize, shares: Shares) -> Seats {
        Seats(Class::ALL.map(|class| Places::new(class.bound(), class.most(requests), shares)))
    }

    pub fn take(self: &Arc<Seats>, class: Class, sharers: Sharers) -> Result<Arc<Seat>, Problem> {
        let place = self.of(class).take(sharers)?;
        Ok(Arc::new(Seat { seats: self.clone(), place: Mutex::new(place) }))
    }

    /// Returns the number of open calls of each class, and its limit.
    pub fn in_use(&self) -> [(Class, usize, usize); CLASSES] {
        Class::ALL.map(|class| {
            let (taken, most) = self.of(class).in_use();
            (class, taken, most)
        })
    }

    fn of(&self, class: Class) -> &Arc<Places> {
        &self.0[class as usize]
    }
}

impl Seat {
    pub fn admitted(self: &Arc<Seat>) -> Admitted {
        let sharers = self.place.lock().unwrap_or_else(PoisonError::into_inner).sharers();
        Admitted { sharers, seat: Arc::downgrade(self) }
    }

    /// The call waits from here on, so its seat becomes free.
    /// The place for waiting is taken before the other one is given back. If there is none, the call keeps
    /// its seat, and is refused.
    fn wait(&self) -> Result<(), Problem> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = self.seats.of(Class::Waits);
        if !place.is_of(waits) {
            *place = waits.take(place.sharers())?;
        }
        Ok(())
    }
}

impl Admitted {
    pub fn origin(&self) -> Option<Origin> {
        self.sharers.origin
    }

    /// Work that a node does for a caller after the call has ended has no seat.
    pub fn wait(&self) -> Result<(), Problem> {
        self.seat.upgrade().map_or(Ok(()), |seat| seat.wait())
    }
}

// Long reads go through many rows: they take turns, and leave threads for the connections.

/// A read of many rows takes milliseconds, and a thread that runs it serves no connection meanwhile.
#[derive(Debug)]
pub struct LongReads {
    turns: Semaphore,
}

impl LongReads {
    /// One core stays free for all other work, if there are several. A call that waits for its turn has a seat among the lists.
    pub fn new() -> LongReads {
        let cores = available_parallelism().map_or(1, usize::from);
        LongReads { turns: Semaphore::new(cores.saturating_sub(1).max(1)) }
    }

    /// Another thread serves this thread's connections meanwhile.
    pub async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        match Handle::current().runtime_flavor() {
            // `block_in_place` panics there, because no other thread could take over. Tests run in this way; the loop's thread, whose
            // runtime is like that as well, answers no client (`server/sort.rs`).
            RuntimeFlavor::CurrentThread => work(),
            _ => block_in_place(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "10.0.0.1";
    const NOBODY: Sharers = Sharers { origin: None, principal: None };

    fn seats() -> Arc<Seats> {
        Seats::new(64, Shares { address_percent: 50, no_token_is_one: false }).into()
    }

    fn at(text: &str) -> Sharers {
        Sharers::at(Origin::of(text.parse().expect("an address")))
    }

    fn fill(seats: &Arc<Seats>, class: Class, sharers: Sharers) -> Vec<Arc<Seat>> {
        std::iter::from_fn(|| seats.take(class, sharers).ok()).collect()
    }

    #[test]
    fn no_class_takes_the_seats_of_another() {
        let seats = seats();
        for class in Class::ALL {
            let taken = fill(&seats, class, NOBODY);
            assert_eq!(taken.len(), class.most(64), "{class:?}");
            for other in Class::ALL.into_iter().filter(|other| *other != class) {
                assert!(seats.take(other, NOBODY).is_ok(), "{class:?} is full, and {other:?} is not");
            }
            drop(taken);
            assert!(seats.take(class, NOBODY).is_ok(), "they are given back");
        }
    }

    #[test]
    fn one_address_has_a_share() {
        let seats = seats();
        let taken = fill(&seats, Class::Writes, at(ONE));
        assert_eq!(taken.len(), 11);
        assert!(seats.take(Class::Writes, at("10.0.0.2")).is_ok());
        let (own, neighbour) = ("2001:db8::1", "2001:db8::2:1");
        let taken = fill(&seats, Class::Reads, at(own));
        assert!(seats.take(Class::Reads, at(neighbour)).is_err(), "it is the same network");
        drop(taken);
        assert!(seats.take(Class::Reads, at(neighbour)).is_ok());
    }

    #[test]
    fn who_waits_gives_its_seat_to_others() {
        let seats = seats();
        let waiting: Vec<_> = (0..30)
            .map(|_| {
                let seat = seats.take(Class::Writes, at(ONE)).expect("those before it wait elsewhere");
                seat.admitted().wait().expect("there is room to wait");
                seat
            })
            .collect();
        assert_eq!(seats.in_use()[Class::Waits as usize], (Class::Waits, 30, 64));
        drop(waiting);
        assert!(seats.in_use().iter().all(|(_, taken, _)| *taken == 0));
    }

    /// The leader's limit on waiters counts all callers together.
    #[test]
    fn no_share_of_those_who_wait_is_all_that_the_leader_takes() {
        for requests in [64, 13_334, 16_384, 1_000_000] {
            let seats = Arc::new(Seats::new(requests, Shares::default()));
            let one = fill(&seats, Class::Waits, at(ONE));
            assert!(one.len() < requests.min(WAITERS_MOST), "{requests}");
            assert!(seats.take(Class::Waits, at("10.0.0.2")).is_ok(), "{requests}");
        }
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
