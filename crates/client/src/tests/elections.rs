//! Continuous elections, on the memory backend with a stopped clock.

use std::time::Duration;

use serde_json::json;
use tokio::time::{advance, sleep};

use crate::{
    Acquire, Backend, Clock, ELECTION_WAIT, Election, ElectionEvent, ElectionEvents, Error, Grant, Hold,
    Memory, Renewal, Role, RoleState, Status, Watch,
};

const S: Duration = Duration::from_secs(1);

fn election(memory: &Memory, id: &str) -> Election<Memory> {
    Election::builder(memory.clone(), "r").instance_id(id).build().expect("good options")
}

/// The events until now, as short words.
async fn told(events: &mut ElectionEvents) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(S / 100, events.next()).await {
        words.push(match event {
            ElectionEvent::LeaderAcquired { token } => format!("acquired {token}"),
            ElectionEvent::LeaderLost => "lost".into(),
            ElectionEvent::ElectionStarted => "started".into(),
            ElectionEvent::ElectionCompleted(won) => format!("completed {won}"),
            ElectionEvent::NewLeader(id) => format!("leader {id}"),
            ElectionEvent::NewState(Role::Leader) => "state leader".into(),
            ElectionEvent::NewState(Role::Follower) => "state follower".into(),
            ElectionEvent::Change(event) => format!("change {event}"),
            ElectionEvent::SubscribeStarted => "subscribed".into(),
            ElectionEvent::SubscribeError(_) => "subscribe error".into(),
            ElectionEvent::HeartbeatError(_) => "heartbeat error".into(),
            ElectionEvent::Error(_) => "error".into(),
            ElectionEvent::Missed(missed) => format!("missed {missed}"),
        });
    }
    words
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_the_second_takes_over_when_it_stops() {
    let memory = Memory::new();
    let (a, b) = (election(&memory, "a"), election(&memory, "b"));
    let (mut from_a, mut from_b) = (a.events(), b.events());
    assert_eq!(a.status(), Status::Stopped);
    a.start();
    assert_eq!(a.status(), Status::Starting);
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    assert_eq!((a.status(), a.token(), a.leader().as_deref()), (Status::Started, Some(1), Some("a")));
    b.start();
    assert!(!b.wait_for_election(ELECTION_WAIT).await);
    assert_eq!((b.status(), b.is_leader(), b.leader().as_deref()), (Status::Started, false, Some("a")));
    sleep(100 * S).await;
    assert!(a.is_leader() && !b.is_leader());

    let words = told(&mut from_a).await;
    assert!(words.contains(&"subscribed".to_string()), "{words:?}");
    let words: Vec<_> = words.into_iter().filter(|word| word != "subscribed").collect();
    assert_eq!(words, ["started", "acquired 1", "state leader", "leader a", "completed true"]);
    let words: Vec<_> = told(&mut from_b).await.into_iter().filter(|word| word != "subscribed").collect();
    assert_eq!(words, ["started", "leader a", "completed false"]);

    a.stop().await;
    assert_eq!((a.status(), a.is_leader()), (Status::Stopped, false));
    let words = told(&mut from_b).await;
    assert!(b.is_leader(), "it waited at the backend, so no time passes: {words:?}");
    assert_eq!(words, ["started", "acquired 2", "state leader", "leader b", "completed true"]);
    assert_eq!(told(&mut from_a).await, ["lost", "state follower"]);
    a.start();
    assert!(!a.wait_for_election(ELECTION_WAIT).await, "it may stand again");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_ends_before_the_next_one_leads() {
    let memory = Memory::new();
    let (a, b) = (election(&memory, "a"), election(&memory, "b"));
    let mut from_a = a.events();
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    b.start();
    b.wait_for_election(ELECTION_WAIT).await;
    memory.cut("a");
    while !b.is_leader() {
        assert!(!(a.is_leader() && b.is_leader()));
        sleep(S / 50).await;
    }
    assert!(!a.is_leader());
    let words = told(&mut from_a).await;
    let place = |word: &str| words.iter().position(|told| told == word);
    assert!(place("heartbeat error") < place("lost") && place("lost").is_some(), "{words:?}");
    memory.mend("a");
    sleep(100 * S).await;
    assert!(b.is_leader() && !a.is_leader() && a.leader().as_deref() == Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_fails_is_told_and_the_lead_goes_on() {
    let memory = Memory::new();
    let a = Election::builder(memory.clone(), "r").instance_id("a").ttl(3 * S).renew_every(S);
    let a = a.build().expect("good options");
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    let mut events = a.events();
    memory.cut("a");
    assert!(matches!(events.next().await, Some(ElectionEvent::HeartbeatError(_))));
    assert!(a.is_leader(), "its lease lasts");
    memory.mend("a");
    sleep(10 * S).await;
    let words = told(&mut events).await;
    assert!(a.is_leader() && words.iter().all(|word| word == "heartbeat error"), "{words:?}");
}

/// No task of this process runs while the time passes, as on a machine that was suspended.
#[tokio::test(start_paused = true)]
async fn is_leader_asks_the_clock_at_each_call() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    advance(Duration::from_millis(29_690)).await;
    assert_eq!((a.is_leader(), a.token()), (false, None));
}

#[tokio::test(start_paused = true)]
async fn each_listener_hears_what_happens_while_it_listens() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    let (mut first, gone) = (a.events(), a.events());
    drop(gone);
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    let mut late = a.events();
    a.stop().await;
    let words = told(&mut first).await;
    assert!(
        words.contains(&"acquired 1".to_string())
            && words.ends_with(&["lost".into(), "state follower".into()])
    );
    let words: Vec<_> = told(&mut late).await.into_iter().filter(|word| word != "subscribed").collect();
    assert_eq!(words, ["lost", "state follower"]);
    drop(a);
    assert!(late.next().await.is_none(), "nothing follows");
}

#[tokio::test(start_paused = true)]
async fn the_status_has_four_values() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    assert_eq!(a.status(), Status::Stopped);
    memory.cut("a");
    a.start();
    assert_eq!(a.status(), Status::Starting);
    memory.mend("a");
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    assert_eq!(a.status(), Status::Started);
    let mut stopping = Box::pin(a.stop());
    tokio::select! {
        biased;
        () = &mut stopping => panic!("the role is given back first"),
        () = async {} => assert_eq!(a.status(), Status::Stopping),
    }
    stopping.await;
    assert_eq!(a.status(), Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_stop_could_not_give_back_is_told() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    let mut events = a.events();
    memory.cut("a");
    a.stop().await;
    assert_eq!(told(&mut events).await, ["lost", "state follower", "error"]);
}

/// A stop after any number of steps of the start leaves no leader behind, and the election can start again.
#[tokio::test(start_paused = true)]
async fn a_stop_during_the_start_leaves_no_leader_behind() {
    for steps in 0..12 {
        let memory = Memory::new();
        let a = election(&memory, "a");
        a.start();
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        a.stop().await;
        assert_eq!((a.is_leader(), a.status()), (false, Status::Stopped), "after {steps} steps");
        assert!(memory.holder("r").await.expect("asked").leader.is_none(), "after {steps} steps");
        a.start();
        assert!(a.wait_for_election(ELECTION_WAIT).await, "after {steps} steps");
    }
}

/// A memory backend that completes a call whose caller has gone, and answers after `way`.
#[derive(Clone)]
struct Distant {
    memory: Memory,
    way: Duration,
}

impl Backend for Distant {
    fn clock(&self) -> Clock {
        self.memory.clock()
    }

    async fn acquire(&self, ask: &Acquire) -> Result<Grant, Error> {
        let (memory, ask, way) = (self.memory.clone(), ask.clone(), self.way);
        let granted = tokio::spawn(async move {
            sleep(S / 10).await;
            let grant = memory.acquire(&ask).await;
            sleep(way).await;
            grant
        });
        granted.await.expect("a grant")
    }

    async fn renew(&self, hold: &Hold) -> Result<Renewal, Error> {
        self.memory.renew(hold).await
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

/// The answer comes in time, or never: `stop` returns, and the role is free.
#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_its_caller_has_gone_is_given_back() {
    for way in [Duration::ZERO, 100 * S] {
        let memory = Memory::new();
        let distant = Distant { memory: memory.clone(), way };
        let a = Election::builder(distant, "r").instance_id("a").build().expect("good options");
        a.start();
        sleep(S / 20).await;
        a.stop().await;
        sleep(S).await;
        assert!(memory.holder("r").await.expect("asked").leader.is_none(), "{way:?}");
    }
}

/// Renewals take effect, but their answers are lost. Each answer that does arrive proves the lease again.
#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_cost_the_lead_only_when_time_is_up() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    memory.lose_answers("a");
    sleep(15 * S).await;
    assert!(a.is_leader(), "one renewal is missing");
    memory.mend("a");
    sleep(60 * S).await;
    assert_eq!(a.token(), Some(1), "nothing was lost");
    memory.lose_answers("a");
    a.lost().await;
    let state = memory.holder("r").await.expect("asked");
    assert_eq!(state.token, Some(1), "the lease was renewed, and nobody believes it");
}

#[tokio::test(start_paused = true)]
async fn somebody_else_is_named() {
    let memory = Memory::new();
    let (a, b) = (election(&memory, "a"), election(&memory, "b"));
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    b.start();
    b.wait_for_election(ELECTION_WAIT).await;
    let mut from_a = a.events();
    b.elect(None).await.expect("named itself");
    sleep(S).await;
    assert!(b.is_leader() && !a.is_leader(), "it heard of it by the watch");
    let words = told(&mut from_a).await;
    assert_eq!(words[..3], ["lost", "state follower", "leader b"], "{words:?}");
    b.elect(Some("a")).await.expect("named the other");
    assert!(!b.is_leader() || b.token() == Some(2), "it hears of it in a moment");
    sleep(S).await;
    assert!(a.is_leader() && !b.is_leader());
    b.stop().await;
    assert!(matches!(b.elect(None).await, Err(Error::NotRunning)));
}

#[tokio::test(start_paused = true)]
async fn changes_and_metadata_are_passed_on() {
    let memory = Memory::new();
    let a =
        Election::builder(memory.clone(), "r").metadata(json!({"zone": 1})).address("a:1").identifier("cms");
    let a = a.build().expect("good options");
    assert_eq!((a.identifier(), a.role()), ("cms", "r"));
    let mut events = a.events();
    a.set_metadata(json!({"zone": 2}));
    assert_eq!(a.metadata(), Some(json!({"zone": 2})));
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    let leader = memory.holder("r").await.expect("asked").leader.expect("held");
    assert_eq!((leader.address.as_deref(), leader.metadata), (Some("a:1"), Some(json!({"zone": 2}))));
    told(&mut events).await;
    memory.change("r", json!({"key": "r/x"}));
    assert_eq!(told(&mut events).await, ["change {\"key\":\"r/x\"}"]);
}

#[tokio::test(start_paused = true)]
async fn only_who_leads_works() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    assert_eq!(a.leader_only(async |token| token).await.expect("asked"), None);
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    assert_eq!(a.leader_only(async |token| token).await.expect("led"), Some(1));
    memory.cut("a");
    let lost = a.leader_only(async |_| std::future::pending::<()>().await).await;
    assert!(lost.expect_err("lost").is_lease_lost());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_election_ends_in_time() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    memory.cut("a");
    let mut events = a.events();
    a.start();
    assert!(!a.wait_for_election(3 * S).await);
    assert_eq!(a.status(), Status::Starting);
    assert!(told(&mut events).await.contains(&"error".to_string()));
    memory.mend("a");
    assert!(a.wait_for_election(ELECTION_WAIT).await, "it went on trying");
}

/// The tasks of the election end with it, and the role lapses.
#[tokio::test(start_paused = true)]
async fn an_election_that_is_dropped_renews_no_more() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    drop(a);
    sleep(31 * S).await;
    assert!(memory.holder("r").await.expect("asked").leader.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_too_slow_is_told_so() {
    let memory = Memory::new();
    let a = election(&memory, "a");
    let mut events = a.events();
    a.start();
    a.wait_for_election(ELECTION_WAIT).await;
    for _ in 0..10 {
        for change in 0..40 {
            memory.change("r", json!(change));
        }
        sleep(S / 10).await;
    }
    let words = told(&mut events).await;
    assert!(words[0].starts_with("missed "), "{}", words[0]);
    assert_eq!(words.len(), 257);
}

#[tokio::test(start_paused = true)]
async fn bad_options_are_refused() {
    let memory = Memory::new();
    let builder = || Election::builder(memory.clone(), "r");
    for (builder, name) in [
        (builder().ttl(S / 2), "ttl"),
        (builder().check_every(31 * S), "check_every"),
        (builder().check_every(Duration::ZERO), "check_every"),
        (builder().renew_every(20 * S), "renew_every"),
    ] {
        let refused = builder.build().map(drop);
        assert!(matches!(refused, Err(Error::BadOption { name: told, .. }) if told == name), "{name}");
    }
}
