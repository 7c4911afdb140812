//! The client library against real nodes that die and freeze.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use eldest::client::{
    Acquire, Backend, Broker, BrokerTried, Client, ELECTION_WAIT, Election, Error, FeedOptions, Heard, If,
    Level, Lock, Registry, RegistryEvent, RegistryEvents, StateDoc, Until, With, leader_only,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::{Cluster, wait_for};

const S: Duration = Duration::from_secs(1);

/// A lease that must be renewed several times while a node is away. A busy machine still renews it in time.
const SHORT: Duration = Duration::from_secs(6);

/// Everything arrives long before that: it only makes a test fail, and is no measure.
const LONG: Duration = Duration::from_secs(60);

fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.ids().map(|id| cluster.node(id).url())).expect("a client")
}

fn election(cluster: &Cluster, id: &str) -> Election {
    lasting(cluster, id, 30 * S)
}

fn lasting(cluster: &Cluster, id: &str, ttl: Duration) -> Election {
    Election::builder(client(cluster), "r").instance_id(id).ttl(ttl).build().expect("good options")
}

#[tokio::test]
async fn the_lead_moves_when_the_leader_stops_and_the_token_rises() {
    let cluster = Cluster::of(3).await;
    let (a, b) = (election(&cluster, "a"), election(&cluster, "b"));
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    b.start();
    assert!(!b.wait_for_election(ELECTION_WAIT).await);
    assert_eq!(b.leader().as_deref(), Some("a"));
    let first = a.token().expect("it leads");
    let check = client(&cluster).check("r", first).await.expect("asked");
    assert!(check.valid && check.token == Some(first));
    a.stop().await;
    assert!(!a.is_leader());
    wait_for("the one that waits takes over", async || b.token().filter(|token| *token > first)).await;
    assert!(!client(&cluster).check("r", first).await.expect("asked").valid);
}

#[tokio::test]
async fn a_holder_that_another_is_named_for_learns_of_it() {
    let cluster = Cluster::of(3).await;
    let (a, b) = (election(&cluster, "a"), election(&cluster, "b"));
    a.start();
    assert!(a.wait_for_election(ELECTION_WAIT).await);
    b.start();
    b.wait_for_election(ELECTION_WAIT).await;
    b.elect(None).await.expect("an order");
    wait_for("it leads", async || b.is_leader().then_some(())).await;
    wait_for("it leads no more", async || (!a.is_leader()).then_some(())).await;
    wait_for("it knows who does", async || (a.leader().as_deref() == Some("b")).then_some(())).await;
}

#[tokio::test]
async fn a_lock_is_held_by_one_and_work_is_done_by_one() {
    let cluster = Cluster::of(3).await;
    let lock = |id: &str| Lock::new(client(&cluster), "r").instance_id(id).ttl(60 * S);
    let held = lock("a").try_acquire().await.expect("asked").expect("free");
    assert!(lock("b").try_acquire().await.expect("asked").is_none());
    let refused = lock("b").acquire_within(S / 2).await.map(drop);
    assert!(matches!(refused, Err(Error::RoleHeld(held)) if held.leader.instance_id == "a"));
    assert_eq!(leader_only(client(&cluster), "r", async |_| ()).await.expect("asked"), None);
    let token = held.token();
    let next = tokio::spawn(lock("b").acquire());
    held.release().await.expect("given back");
    let next = next.await.expect("no panic").expect("its turn");
    assert!(next.token() > token);
    next.release().await.expect("given back");
    let done = leader_only(client(&cluster), "r", async |token| token).await.expect("asked");
    assert!(done.is_some_and(|last| last > token));
}

/// The next event about a slave. An outage is reported on the same stream, and changes nothing.
async fn told(events: &mut RegistryEvents) -> RegistryEvent {
    loop {
        let event = timeout(LONG, events.next()).await.expect("something is told");
        match event.expect("the registry lives") {
            RegistryEvent::Error(_) => {}
            event => return event,
        }
    }
}

#[tokio::test]
async fn processes_come_and_go() {
    let cluster = Cluster::of(3).await;
    let registered = |id: &str| Registry::builder(client(&cluster), "cms-backend").id(id);
    let about = json!({"maxSubscriptions": 100, "canProcessDetections": true});
    let first = registered("p1").role("master").register().await.expect("registered");
    let mut events = first.events();
    let second = registered("p2").capabilities(about.clone()).register().await.expect("registered");
    let RegistryEvent::SlaveRegistered(slave) = told(&mut events).await else {
        panic!("a slave has come");
    };
    assert_eq!((slave.id.as_str(), slave.channel.as_str()), ("p2", "worker:slave:p2"));
    assert_eq!(slave.capabilities, Some(about));
    assert_eq!(first.all().await.expect("asked").len(), 2);
    assert_eq!(first.slave_count().await.expect("asked"), 1);
    assert_eq!(first.master().await.expect("asked").expect("one").id, "p1");
    assert!(first.slave("p1").await.expect("asked").is_none(), "it is no slave");
    second.set_role("master").await.expect("written");
    assert_eq!(first.by_role("master").await.expect("asked").len(), 2);
    second.set_role("slave").await.expect("written");
    second.set_metadata(json!({"zone": 2})).await.expect("written");
    match (told(&mut events).await, told(&mut events).await, told(&mut events).await) {
        (
            RegistryEvent::SlaveRemoved { id },
            RegistryEvent::SlaveRegistered(came),
            RegistryEvent::SlaveChanged(changed),
        ) => {
            assert_eq!((id.as_str(), came.id.as_str(), changed.id.as_str()), ("p2", "p2", "p2"));
            assert_eq!(changed.metadata, Some(json!({"zone": 2})));
        }
        others => panic!("{others:?}"),
    }

    assert!(client(&cluster).remove_process("p2").await.expect("removed"));
    assert!(matches!(told(&mut events).await, RegistryEvent::SlaveRemoved { id } if id == "p2"));
    second.heartbeat().await.expect("who was forgotten registers anew");
    assert!(first.slave("p2").await.expect("asked").is_some());
    second.unregister().await.expect("removed");
    assert!(first.slave("p2").await.expect("asked").is_none());

    let lock = Lock::new(client(&cluster), "lead").instance_id("p1");
    let _held = lock.try_acquire().await.expect("asked").expect("free");
    assert_eq!(first.leader_of("lead").await.expect("asked").expect("registered").id, "p1");
}

/// The slave behaves like a process that died: nothing renews its entry.
#[tokio::test]
async fn a_slave_that_says_nothing_more_is_removed() {
    let cluster = Cluster::of(3).await;
    let master = Registry::builder(client(&cluster), "cms-backend").role("master").register().await;
    let master = master.expect("registered");
    let mut events = master.events();
    // The master hears of the slave and then reads its entry: the ttl outlasts that.
    let silent =
        Registry::builder(client(&cluster), "cms-backend").id("p2").ttl(10 * S).heartbeat_every(600 * S);
    let silent = silent.register().await.expect("registered");
    assert!(matches!(told(&mut events).await, RegistryEvent::SlaveRegistered(slave) if slave.id == "p2"));
    assert!(matches!(told(&mut events).await, RegistryEvent::SlaveRemoved { id } if id == "p2"));
    assert_eq!(master.slave_count().await.expect("asked"), 0);
    drop(silent);
}

#[tokio::test]
async fn brokers_take_turns_over_one_state() {
    let cluster = Cluster::of(3).await;
    let broker =
        |address: &str| Broker::new(client(&cluster), "queue", address).ttl(15 * S).heartbeat_every(S);
    let (mut first, mut second) = (broker("0.0.0.0:8080"), broker("0.0.0.0:8081"));
    assert!(matches!(first.try_elect().await.expect("asked"), BrokerTried::Elected { .. }));
    assert!(matches!(first.try_elect().await.expect("asked"), BrokerTried::AlreadyLeader { .. }));
    let told = second.try_elect().await.expect("asked");
    assert!(
        matches!(&told, BrokerTried::OtherLeader { leader } if leader.address.as_deref() == Some("0.0.0.0:8080"))
    );
    assert!(first.check_leadership().await.expect("asked"));

    let state: StateDoc<Vec<u64>> = StateDoc::new(client(&cluster), "queue");
    let pushed = (1..=8).map(|job| {
        let state = state.clone();
        tokio::spawn(async move {
            let push = |jobs: Option<Vec<u64>>| Some([jobs.unwrap_or_default(), vec![job]].concat());
            state.update(push).await.expect("written")
        })
    });
    for push in pushed.collect::<Vec<_>>() {
        push.await.expect("no panic");
    }
    let mut jobs = state.read().await.expect("asked").expect("written");
    jobs.sort_unstable();
    assert_eq!(jobs, (1..=8).collect::<Vec<_>>(), "no push is lost");

    // The broker behaves like one that died: nothing renews its lease.
    drop(first);
    wait_for("the second takes over", async || {
        matches!(second.try_elect().await.expect("asked"), BrokerTried::Elected { .. }).then_some(())
    })
    .await;
}

/// The broker sends no heartbeats, like a stopped process, so it does not know that it was replaced.
#[tokio::test]
async fn a_broker_that_was_replaced_and_believes_that_it_leads_changes_no_state() {
    let cluster = Cluster::of(3).await;
    let still = |address: &str| {
        Broker::new(client(&cluster), "queue/é", address).ttl(3_600 * S).heartbeat_every(1_700 * S)
    };
    let (mut first, mut second) = (still("0.0.0.0:8080"), still("0.0.0.0:8081"));
    let state: StateDoc<Vec<u64>> = StateDoc::new(client(&cluster), "queue");
    let push = |job: u64| move |jobs: Option<Vec<u64>>| Some([jobs.unwrap_or_default(), vec![job]].concat());
    first.try_elect().await.expect("asked");
    first.update(&state, push(1)).await.expect("written");
    let next = Acquire {
        role: "queue/é".to_string(),
        instance_id: second.id().to_string(),
        ttl: 3_600 * S,
        priority: 0,
        address: None,
        metadata: None,
        wait: Duration::ZERO,
    };
    client(&cluster).elect(&next).await.expect("an order");
    assert!(first.is_leader());
    let refused = first.update(&state, push(2)).await;
    assert!(matches!(refused, Err(Error::RoleNotHeld { role }) if role == "queue/é"));
    first.lost().await;
    assert!(!first.is_leader());
    second.try_elect().await.expect("asked");
    assert_eq!(second.update(&state, push(3)).await.expect("written"), Some(vec![1, 3]));
    first.stop().await.expect("it has nothing");
}

#[tokio::test]
async fn who_holds_a_lease_binds_documents_to_it() {
    let cluster = Cluster::of(3).await;
    let (holder, other) = (client(&cluster), client(&cluster));
    let lock = Lock::new(holder.clone(), "r").try_acquire().await.expect("asked").expect("free");
    let with_role = Until { with: Some(With::Role { name: "r", token: lock.token() }), ..Until::default() };
    holder.put_doc_until("role", &1, If::Always, with_role).await.expect("its own lease");
    let registry = Registry::builder(holder.clone(), "x").register().await.expect("registered");
    let with_process = Until { with: Some(With::Process { id: registry.id() }), ..Until::default() };
    holder.put_doc_until("process", &1, If::Always, with_process).await.expect("its own process");
    for until in [with_role, with_process, Until { secret: Some("guessed"), ..with_role }] {
        let refused = other.put_doc_until("other", &1, If::Always, until).await;
        assert!(matches!(refused, Err(Error::Problem(problem)) if problem.code == "forbidden"));
    }
    let urls = cluster.ids().map(|id| cluster.node(id).url());
    let named = Client::builder(urls).secret("s").build().expect("a client");
    let guarded = Lock::new(named, "s").try_acquire().await.expect("asked").expect("free");
    let with_other = Until {
        with: Some(With::Role { name: "s", token: guarded.token() }),
        secret: Some("s"),
        ..Until::default()
    };
    other.put_doc_until("other", &1, If::Always, with_other).await.expect("it knows the secret");
    lock.release().await.expect("given back");
    assert_eq!(holder.get_doc::<Value>("role", Level::Linear).await.expect("asked"), None);
}

#[tokio::test]
async fn documents_and_messages_and_the_feed_survive_a_node() {
    let cluster = Cluster::of(3).await;
    let client = client(&cluster);
    let mut feed = client
        .feed(FeedOptions { kinds: vec!["change".into()], prefix: Some("app/".into()), since: None })
        .await
        .expect("a node tells");
    let rev = client.put_doc("app/a", &json!({"n": 1}), If::Absent).await.expect("written");
    let stale = client.put_doc("app/a", &2, If::Absent).await;
    assert!(matches!(stale, Err(Error::PreconditionFailed { current_rev: Some(current) }) if current == rev));
    let read = client.get_doc::<Value>("app/a", Level::Linear).await.expect("asked").expect("written");
    assert_eq!((read.value, read.rev.as_str()), (json!({"n": 1}), rev.as_str()));
    let mut news = async || timeout(LONG, feed.next()).await.expect("it goes on").expect("told");
    assert_eq!(news().await.text("key"), Some("app/a"));

    let mut heard = client.subscribe("worker:slave:7").await.expect("a node passes on");
    assert_eq!(client.publish("worker:slave:7", &json!({"job": 1})).await.expect("sent"), 1);
    let mut hears = async || timeout(LONG, heard.next()).await.expect("it goes on").expect("heard");
    assert_eq!(hears().await, Heard::Message(json!({"job": 1})));

    // Both streams come from the first node in the list.
    cluster.kill9(1);
    client.put_doc("app/b", &2, If::Always).await.expect("written, by whoever leads now");
    client.delete_doc("app/a", If::Rev(&rev)).await.expect("deleted");
    assert_eq!(news().await.text("key"), Some("app/b"));
    assert_eq!(news().await.text("op"), Some("delete"));
    assert_eq!(hears().await, Heard::Gap);
    assert_eq!(client.get_doc::<Value>("app/a", Level::Linear).await.expect("asked"), None);
}

#[tokio::test]
async fn nobody_to_ask_is_an_error_that_says_so() {
    let cluster = Cluster::of(3).await;
    let urls = cluster.ids().map(|id| cluster.node(id).url());
    let client = Client::builder(urls).deadline(S).build().expect("a client");
    cluster.ids().for_each(|id| cluster.kill9(id));
    let error = client.put_doc("k", &1, If::Always).await.expect_err("nobody is there");
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let held = Lock::new(client, "r").acquire().await.map(drop);
    assert!(matches!(held, Err(Error::Unavailable { .. })));
}

/// The resource that contenders write to: it refuses a token smaller than one it has seen.
#[derive(Debug, Default)]
struct Resource {
    newest: u64,
    refused: u64,
    writes: u64,
    /// The writers under each token.
    writers: BTreeMap<u64, BTreeSet<String>>,
}

impl Resource {
    fn write(&mut self, token: u64, who: &str) {
        if token < self.newest {
            self.refused += 1;
            return;
        }
        self.newest = token;
        self.writes += 1;
        self.writers.entry(token).or_default().insert(who.to_string());
    }
}

/// Asserts that no two contenders believe that they hold the role at the same time.
fn never_two(all: &[Election]) {
    for (place, one) in all.iter().enumerate() {
        let Some(token) = one.token() else { continue };
        let others: Vec<(&str, u64)> = all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place)
            .filter_map(|(_, other)| Some((other.id(), other.token()?)))
            .collect();
        assert!(others.is_empty() || one.token() != Some(token), "{} has {token}, and {others:?}", one.id());
    }
}

/// No other task runs between the look at the clock and the write: this runtime has one thread.
fn work(all: &Arc<Vec<Election>>, resource: &Arc<Mutex<Resource>>) -> JoinHandle<()> {
    let (all, resource) = (all.clone(), resource.clone());
    tokio::spawn(async move {
        loop {
            never_two(&all);
            for one in all.iter() {
                if let Some(token) = one.token() {
                    resource.lock().expect("no panic").write(token, one.id());
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
}

/// Waits for a write under a lease that was renewed after this call: no lease from before lasts as long.
async fn somebody_writes(resource: &Mutex<Resource>, working: &JoinHandle<()>) {
    let (began, mut seen) = (Instant::now(), None);
    wait_for("somebody leads, and writes", async || {
        assert!(!working.is_finished(), "two have believed at one time");
        if began.elapsed() > SHORT {
            let writes = resource.lock().expect("no panic").writes;
            return (writes > *seen.get_or_insert(writes)).then_some(());
        }
        None
    })
    .await;
}

#[tokio::test]
async fn twenty_contenders_and_nodes_that_die_and_freeze() {
    let cluster = Cluster::brisk(3).await;
    let all: Arc<Vec<Election>> =
        Arc::new((0..20).map(|n| lasting(&cluster, &format!("c{n}"), SHORT)).collect());
    all.iter().for_each(Election::start);
    let resource = Arc::new(Mutex::new(Resource::default()));
    let working = work(&all, &resource);
    somebody_writes(&resource, &working).await;
    let mut faults = 0;
    for round in 0..4 {
        let leader = cluster.leader().await;
        let hit = if round < 2 { leader } else { cluster.others(leader)[0] };
        if round % 2 == 0 {
            cluster.kill9(hit);
            somebody_writes(&resource, &working).await;
            cluster.start(hit);
        } else {
            cluster.stop(hit);
            somebody_writes(&resource, &working).await;
            cluster.cont(hit);
        }
        cluster.is_ready(hit).await;
        somebody_writes(&resource, &working).await;
        faults += 1;
    }
    // The role moves on when its holder leaves, however many wait.
    let holder = all.iter().find(|one| one.is_leader());
    if let Some(holder) = holder {
        holder.stop().await;
        faults += 1;
    }
    somebody_writes(&resource, &working).await;
    working.abort();
    let known = newest_token(&cluster).await;
    let resource = resource.lock().expect("no panic");
    println!("{} writes under {} tokens", resource.writes, resource.writers.len());
    assert_eq!(resource.refused, 0, "somebody believed longer than it held");
    assert!(
        resource.writers.values().all(|who| who.len() == 1),
        "one token, one holder: {:?}",
        resource.writers
    );
    assert!(
        resource.writers.len() <= faults + 1,
        "the holder changed without a reason: {:?}",
        resource.writers
    );
    assert!(known >= resource.newest);
}

/// The newest token that the cluster knows.
async fn newest_token(cluster: &Cluster) -> u64 {
    wait_for("the role is held", async || client(cluster).holder("r").await.ok()?.token).await
}
