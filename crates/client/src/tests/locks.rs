//! Locks, scopes and brokers, on the memory backend with a stopped clock.

use std::time::Duration;

use tokio::time::{advance, sleep};

use crate::{Backend, Broker, BrokerTried, Error, Lock, Memory, Scope, leader_only};

const S: Duration = Duration::from_secs(1);

fn lock(memory: &Memory, id: &str) -> Lock<Memory> {
    Lock::new(memory.clone(), "r").instance_id(id)
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_renewed_and_given_back() {
    let memory = Memory::new();
    let guard = lock(&memory, "a").try_acquire().await.expect("asked").expect("free");
    assert!(lock(&memory, "b").try_acquire().await.expect("asked").is_none());
    sleep(600 * S).await;
    assert!(guard.is_held(), "ten minutes are twenty leases");
    guard.release().await.expect("given back");
    let next = lock(&memory, "b").try_acquire().await.expect("asked").expect("free again");
    assert_eq!(next.token(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_dropped_lapses() {
    let memory = Memory::new();
    drop(lock(&memory, "a").try_acquire().await.expect("asked").expect("free"));
    let waiting = lock(&memory, "b").acquire_within(29 * S).await;
    assert!(matches!(waiting, Err(Error::RoleHeld(held)) if held.leader.instance_id == "a"));
    lock(&memory, "b").acquire_within(2 * S).await.expect("it has lapsed");
}

#[tokio::test(start_paused = true)]
async fn who_waits_takes_over_at_once_and_the_higher_goes_first() {
    let memory = Memory::new();
    let first = lock(&memory, "a").try_acquire().await.expect("asked").expect("free");
    let spawn = |id: &'static str, priority| {
        let lock = lock(&memory, id).priority(priority);
        tokio::spawn(async move { lock.acquire().await.expect("its turn") })
    };
    let (low, high) = (spawn("low", 0), spawn("high", 5));
    sleep(3 * S).await;
    first.release().await.expect("given back");
    let high = high.await.expect("no panic");
    assert_eq!(high.token(), 2);
    high.release().await.expect("given back");
    assert_eq!(low.await.expect("no panic").token(), 3);
}

/// The belief ends by itself, before another instance may have the role.
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_cut_off_ends_before_the_next_begins() {
    let memory = Memory::new();
    let guard = lock(&memory, "a").try_acquire().await.expect("asked").expect("free");
    memory.cut("a");
    let next = tokio::spawn(lock(&memory, "b").acquire());
    guard.lost().await;
    assert!(!guard.is_held());
    let holder = memory.holder("r").await.expect("asked").leader.expect("held");
    assert_eq!(holder.instance_id, "a", "the lease is still there when the belief has ended");
    assert_eq!(next.await.expect("no panic").expect("its turn").token(), 2);
}

/// No task of this process runs while the time passes, as on a machine that was suspended.
#[tokio::test(start_paused = true)]
async fn belief_needs_no_task_to_end() {
    let memory = Memory::new();
    let guard = lock(&memory, "a").try_acquire().await.expect("asked").expect("free");
    advance(Duration::from_millis(29_690)).await;
    assert!(!guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn options_that_keep_no_lock_are_refused() {
    let memory = Memory::new();
    for ttl in [Duration::from_millis(999), 3_601 * S] {
        let refused = lock(&memory, "a").ttl(ttl).try_acquire().await;
        assert!(matches!(refused, Err(Error::BadOption { name: "ttl", .. })));
    }
    let refused = lock(&memory, "a").renew_every(16 * S).try_acquire().await;
    assert!(matches!(refused, Err(Error::BadOption { name: "renew_every", .. })));
}

#[tokio::test(start_paused = true)]
async fn a_scope_tries_once() {
    let memory = Memory::new();
    let first = Scope::enter(lock(&memory, "a")).await.expect("asked");
    let second = Scope::enter(lock(&memory, "b")).await.expect("asked");
    assert!(first.is_leader() && !second.is_leader());
    assert_eq!((first.token(), second.token()), (Some(1), None));
    second.leave().await.expect("nothing to give back");
    first.leave().await.expect("given back");
    assert!(Scope::enter(lock(&memory, "b")).await.expect("asked").is_leader());
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_works() {
    let memory = Memory::new();
    let done = leader_only(memory.clone(), "r", async |token| token * 10).await;
    assert_eq!(done.expect("led"), Some(10));
    let _held = lock(&memory, "a").try_acquire().await.expect("asked").expect("free: it was given back");
    let skipped = leader_only(memory.clone(), "r", async |_| panic!("somebody else leads")).await;
    assert_eq!(skipped.expect("asked"), None::<()>);
}

#[tokio::test(start_paused = true)]
async fn work_under_way_ends_with_the_lease() {
    let memory = Memory::new();
    let other = memory.clone();
    let lost = leader_only(memory.clone(), "r", async move |_| {
        // An `elect` call names another holder.
        let ask = crate::Acquire {
            role: "r".into(),
            instance_id: "b".into(),
            ttl: 30 * S,
            priority: 0,
            address: None,
            metadata: None,
            wait: Duration::ZERO,
        };
        other.elect(&ask).await.expect("named");
        std::future::pending::<()>().await;
    })
    .await;
    assert!(lost.expect_err("lost").is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn brokers_are_told_one_of_four_things() {
    let memory = Memory::new();
    let broker = |port: u16| Broker::new(memory.clone(), "queue", format!("0.0.0.0:{port}"));
    let (mut first, mut second) = (broker(8080), broker(8081));
    assert_eq!(first.try_elect().await.expect("asked"), BrokerTried::Elected { token: 1 });
    assert_eq!(first.try_elect().await.expect("asked"), BrokerTried::AlreadyLeader { token: 1 });
    let BrokerTried::OtherLeader { leader } = second.try_elect().await.expect("asked") else {
        panic!("there is one already");
    };
    assert_eq!(leader.address.as_deref(), Some("0.0.0.0:8080"));
    sleep(60 * S).await;
    assert!(first.check_leadership().await.expect("asked"), "its heartbeats go on by themselves");

    memory.cut(first.id());
    sleep(11 * S).await;
    assert_eq!(second.try_elect().await.expect("asked"), BrokerTried::Elected { token: 2 });
    assert!(!first.is_leader());
    memory.mend(first.id());
    assert!(!first.check_leadership().await.expect("asked"), "another one has taken over");
    second.stop().await.expect("given back");
    assert_eq!(first.try_elect().await.expect("asked"), BrokerTried::Elected { token: 3 });
}

/// The lease is all that is left of the earlier life. The cluster ends it a second after the connection has
/// closed.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_back_at_its_address_is_already_the_leader() {
    let memory = Memory::new();
    let broker =
        |id: &str, port: u16| Broker::new(memory.clone(), "queue", format!("n1:{port}")).instance_id(id);
    let (mut before, mut after) = (broker("before", 8080), broker("after", 8080));
    before.try_elect().await.expect("asked");
    let (tried, ()) = tokio::join!(after.try_elect(), async {
        sleep(S).await;
        before.stop().await.expect("given back");
    });
    assert_eq!(tried.expect("asked"), BrokerTried::AlreadyLeader { token: 2 });
    assert!(after.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_stops_gives_back_what_it_was_never_told_of() {
    let memory = Memory::new();
    let mut broker = Broker::new(memory.clone(), "queue", "n1:8080").instance_id("a");
    memory.lose_answers("a");
    assert!(matches!(broker.try_elect().await, Err(Error::Indeterminate { .. })));
    memory.mend("a");
    assert!(memory.holder("queue").await.expect("asked").leader.is_some());
    broker.stop().await.expect("given back");
    assert!(memory.holder("queue").await.expect("asked").leader.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_lives_at_the_same_address_keeps_the_role() {
    let memory = Memory::new();
    let broker = |id: &str| Broker::new(memory.clone(), "queue", "n1:8080").instance_id(id);
    let (mut one, mut twin) = (broker("one"), broker("twin"));
    one.try_elect().await.expect("asked");
    let began = tokio::time::Instant::now();
    let tried = twin.try_elect().await.expect("asked");
    assert!(matches!(tried, BrokerTried::OtherLeader { leader } if leader.instance_id == "one"));
    assert!(began.elapsed() <= 3 * S && one.is_leader());
}

/// No other instance has taken the role, and the lease has ended all the same.
#[tokio::test(start_paused = true)]
async fn a_broker_whose_own_heartbeat_is_stale_is_elected_anew() {
    let memory = Memory::new();
    let mut broker = Broker::new(memory.clone(), "queue", "0.0.0.0:8080");
    assert_eq!(broker.try_elect().await.expect("asked"), BrokerTried::Elected { token: 1 });
    memory.cut(broker.id());
    sleep(11 * S).await;
    assert!(!broker.is_leader());
    memory.mend(broker.id());
    assert_eq!(broker.try_elect().await.expect("asked"), BrokerTried::Elected { token: 2 });
}
