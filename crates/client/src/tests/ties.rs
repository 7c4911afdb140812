//! A holder's belief when the connection breaks that its role is held by, and the numbers that renewals name.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::advance;

use crate::backend::{Acquire, Backend, Grant, Hold, Renewal, TieNews, Tied, Watch};
use crate::clock::Clock;
use crate::error::Error;
use crate::holder::RoleState;
use crate::lock::{Lock, LockGuard};
use crate::memory::Memory;
use crate::ties::HeldBy;

const TTL: Duration = Duration::from_secs(10);
const HALF_OF_THE_GRACE: Duration = Duration::from_millis(500);

/// A memory backend with connections, which the test can break.
#[derive(Clone, Debug)]
struct Wired {
    memory: Memory,
    seen: Arc<watch::Sender<Seen>>,
    lines: Arc<Mutex<Vec<mpsc::Sender<TieNews>>>>,
    refusals: Arc<Mutex<Vec<Error>>>,
    /// While this is `false`, calls that open a connection wait.
    arrives: Arc<watch::Sender<bool>>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    opened: Vec<u64>,
    renewed: Vec<Option<u64>>,
}

impl Wired {
    fn new() -> Wired {
        let (seen, lines, refusals) = (Arc::default(), Arc::default(), Arc::default());
        Wired { memory: Memory::new(), seen, lines, refusals, arrives: watch::Sender::new(true).into() }
    }

    async fn lock(&self, held_by: HeldBy) -> LockGuard<Wired> {
        let lock = Lock::new(self.clone(), "r").instance_id("a").ttl(TTL).held_by(held_by);
        lock.try_acquire().await.expect("asked").expect("free")
    }

    /// Waits until the condition holds.
    async fn sees(&self, what: impl Fn(&Seen) -> bool) -> Seen {
        self.seen.subscribe().wait_for(what).await.expect("the sender is this one's").clone()
    }

    /// Sends news on the newest connection, or breaks it.
    async fn say(&self, news: Option<TieNews>) {
        let Some(news) = news else {
            return self.lines.lock().expect("nobody panics").clear();
        };
        let line = self.lines.lock().expect("nobody panics").last().cloned().expect("one is open");
        line.send(news).await.expect("somebody listens");
    }
}

impl Backend for Wired {
    fn clock(&self) -> Clock {
        self.memory.clock()
    }

    async fn acquire(&self, ask: &Acquire) -> Result<Grant, Error> {
        self.memory.acquire(ask).await
    }

    async fn renew(&self, hold: &Hold) -> Result<Renewal, Error> {
        let renewal = self.memory.renew(hold).await?;
        self.seen.send_modify(|seen| seen.renewed.push(hold.tie));
        Ok(renewal)
    }

    async fn tie(&self, hold: &Hold, _: Duration) -> Result<Option<Tied>, Error> {
        if let Some(refusal) = self.refusals.lock().expect("nobody panics").pop() {
            return Err(refusal);
        }
        self.arrives.subscribe().wait_for(|arrives| *arrives).await.expect("the sender is this one's");
        let renewal = self.memory.renew(hold).await?;
        let (line, news) = mpsc::channel(8);
        self.lines.lock().expect("nobody panics").push(line);
        self.seen.send_modify(|seen| seen.opened.extend(hold.tie));
        Ok(Some(Tied { renewal, news }))
    }

    async fn release(&self, hold: &Hold) -> Result<(), Error> {
        self.memory.release(hold).await
    }

    async fn elect(&self, ask: &Acquire) -> Result<Grant, Error> {
        self.memory.elect(ask).await
    }

    async fn holder(&self, role: &str) -> Result<RoleState, Error> {
        self.memory.holder(role).await
    }

    async fn watch(&self, role: &str) -> Result<Watch, Error> {
        self.memory.watch(role).await
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_breaks_is_followed_by_the_next_number_and_the_next_connection() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Connection).await;
    let first = wired.sees(|seen| seen.opened.len() == 1).await.opened[0];
    wired.say(None).await;
    let seen = wired.sees(|seen| seen.opened.len() == 2).await;
    assert_eq!((seen.opened[1], seen.renewed), (first + 1, vec![Some(first + 1)]));
    advance(HALF_OF_THE_GRACE * 2).await;
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn without_a_proof_half_of_the_grace_is_believed() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Connection).await;
    wired.sees(|seen| seen.opened.len() == 1).await;
    wired.memory.cut("a");
    let clock = wired.clock();
    let broken = clock.now();
    wired.say(None).await;
    guard.lost().await;
    assert_eq!(clock.now().since(broken), HALF_OF_THE_GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_about_to_end_lets_go() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Connection).await;
    wired.sees(|seen| seen.opened.len() == 1).await;
    wired.memory.cut("a");
    let clock = wired.clock();
    let told = clock.now();
    wired.say(Some(TieNews::Let)).await;
    guard.lost().await;
    assert!(clock.now().since(told) > HALF_OF_THE_GRACE * 4, "the lease is believed to its end");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_is_told_at_once() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Connection).await;
    let first = wired.sees(|seen| seen.opened.len() == 1).await.opened[0];
    let begun = wired.clock().now();
    wired.say(Some(TieNews::Renew)).await;
    let seen = wired.sees(|seen| !seen.renewed.is_empty()).await;
    assert!(seen.renewed[0] >= Some(first));
    assert!(wired.clock().now().since(begun) < TTL / 3, "before it was due");
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn doubt_about_an_attempt_is_cleared_away_first() {
    let wired = Wired::new();
    let unclear = Error::Indeterminate { tried: Vec::new() };
    wired.refusals.lock().expect("nobody panics").extend([Error::Unavailable { tried: Vec::new() }, unclear]);
    let guard = wired.lock(HeldBy::Connection).await;
    let seen = wired.sees(|seen| seen.opened.len() == 1).await;
    assert_eq!(
        seen.renewed,
        [Some(seen.opened[0])],
        "what may be open is worth nothing, what is surely not needs no proof"
    );
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn held_by_the_lease_alone() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Lease).await;
    let seen = wired.sees(|seen| seen.renewed.len() == 2).await;
    assert_eq!((seen.opened, seen.renewed), (Vec::new(), vec![None, None]));
    assert!(guard.is_held());
}

/// The leader ties a lease again only to a greater number.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_named_late_does_not_tie_what_is_to_lapse() {
    let wired = Wired::new();
    wired.arrives.send_replace(false);
    let guard = wired.lock(HeldBy::Connection).await;
    // The guard, and with it the renewal that it has sent, exists until the renewal has come through.
    let renewed = wired.sees(|seen| !seen.renewed.is_empty());
    let lapsing = async {
        guard.lapse().await.expect("it is held");
    };
    let (seen, ()) = tokio::join!(renewed, lapsing);
    let opened = number_of_the_next(&wired).await;
    assert!(seen.renewed[0] > Some(opened), "{seen:?} does not outdo {opened}");
    assert!(seen.opened.is_empty(), "it was on its way");
}

/// The number that the connection of a guard would have that is acquired now.
async fn number_of_the_next(wired: &Wired) -> u64 {
    wired.arrives.send_replace(true);
    let lock = Lock::new(wired.clone(), "another").instance_id("a").ttl(TTL);
    let _guard = lock.try_acquire().await.expect("asked").expect("free");
    wired.sees(|seen| !seen.opened.is_empty()).await.opened[0]
}

#[tokio::test(start_paused = true)]
async fn what_no_connection_holds_lapses_without_a_number() {
    let wired = Wired::new();
    let guard = wired.lock(HeldBy::Lease).await;
    guard.lapse().await.expect("it is held");
    assert_eq!(wired.sees(|seen| !seen.renewed.is_empty()).await.renewed, [None]);
}
