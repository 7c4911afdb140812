//! Elections over HTTP, against a server that keeps roles in memory and breaks its answers in every way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::fake::{Fake, Reply, Request, problem};
use crate::{
    Acquire, Backend, Client, Election, ElectionEvent, Error, Grant, Hold, Lock, Memory, Outcome, Renewal,
};

/// A fault that the server applies to a call.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// The call is refused and has no effect.
    Refused,
    CutBefore,
    /// The call takes effect, and the answer is lost.
    CutAfter,
    UnknownAfter,
}

const FAULTS: [Fault; 8] = [
    Fault::CutAfter,
    Fault::None,
    Fault::Refused,
    Fault::UnknownAfter,
    Fault::None,
    Fault::CutBefore,
    Fault::None,
    Fault::None,
];

/// A node that keeps roles in `memory`. The n-th call gets the n-th fault.
async fn node(memory: Memory, faults: &'static [Fault]) -> Fake {
    let calls = Arc::new(AtomicUsize::new(0));
    Fake::start(Arc::new(move |request| {
        let (memory, fault) = (memory.clone(), faults[calls.fetch_add(1, Ordering::SeqCst) % faults.len()]);
        Box::pin(async move {
            match fault {
                Fault::Refused => return problem(503, "no_leader", json!({})),
                Fault::CutBefore => return Reply::Cut,
                _ => {}
            }
            let reply = answer(&memory, &request).await;
            match fault {
                Fault::CutAfter => Reply::Cut,
                Fault::UnknownAfter => problem(504, "outcome_unknown", json!({})),
                _ => reply,
            }
        })
    }))
    .await
}

async fn answer(memory: &Memory, request: &Request) -> Reply {
    let order = request.path.rsplit('/').next().unwrap_or_default();
    let body = &request.body;
    let number = |name: &str| body[name].as_u64().unwrap_or_default();
    let ttl = Duration::from_millis(number("ttl_ms"));
    let instance_id = body["instance_id"].as_str().unwrap_or_default().to_string();
    let hold =
        Hold { role: "r".into(), instance_id: instance_id.clone(), token: number("token"), ttl, tie: None };
    match order {
        "acquire" => {
            let wait = Duration::from_millis(number("wait_ms"));
            let (address, metadata) = (None, None);
            let ask = Acquire { role: "r".into(), instance_id, ttl, priority: 0, address, metadata, wait };
            memory.acquire(&ask).await.map(granted).unwrap_or_else(refused)
        }
        "renew" => {
            let renewed =
                |Renewal { expires_in, .. }| json!({"expires_in_ms": expires_in.as_millis() as u64});
            memory.renew(&hold).await.map(|done| Reply::Json(200, renewed(done))).unwrap_or_else(refused)
        }
        "release" => {
            let released = Reply::Json(200, json!({"released": true}));
            memory.release(&hold).await.map(|()| released).unwrap_or_else(refused)
        }
        "r" => {
            let state = memory.holder("r").await.expect("memory answers");
            let leader = state.leader.map(|leader| json!({"instance_id": leader.instance_id}));
            Reply::Json(200, json!({"role": "r", "leader": leader, "token": state.token}))
        }
        // The feed: it has no events.
        _ => Reply::Lines(vec![json!({"id": "1", "kind": "bookmark"})]),
    }
}

fn granted(grant: Grant) -> Reply {
    let outcome = match grant.outcome {
        Outcome::Elected => "elected",
        Outcome::AlreadyLeader => "already_leader",
    };
    let left = grant.term.until.since(grant.term.sent).as_millis() as u64;
    let leader: Value = json!({"instance_id": grant.leader.instance_id, "address": null, "metadata": null});
    Reply::Json(
        200,
        json!({"outcome": outcome, "role": "r", "leader": leader, "token": grant.term.token, "expires_in_ms": left}),
    )
}

fn refused(error: Error) -> Reply {
    match error {
        Error::RoleHeld(held) => problem(
            409,
            "role_held",
            json!({"outcome": "other_leader", "role": "r", "token": held.token, "expires_in_ms": 1,
                "leader": {"instance_id": held.leader.instance_id, "address": null, "metadata": null}}),
        ),
        Error::LeaseLost { .. } => {
            problem(410, "lease_lost", json!({"role": "r", "leader": null, "token": null}))
        }
        error => panic!("{error}"),
    }
}

fn election(node: &Fake, id: &str) -> Election {
    let client = Client::new([node.url.clone()]).expect("a client");
    // The lease is long, so that it does not lapse while a busy machine does something else.
    let builder = Election::builder(client, "r").instance_id(id).ttl(Duration::from_secs(60));
    let builder = builder.renew_every(Duration::from_millis(100));
    builder.check_every(Duration::from_secs(1)).build().expect("good options")
}

/// Waits until the condition holds. The bound is long enough for a busy machine; only a hang reaches it.
async fn until(mut so: impl FnMut() -> bool) {
    let looking = async {
        while !so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(120), looking).await.expect("it comes about");
}

#[tokio::test]
async fn a_leader_survives_answers_that_break() {
    let memory = Memory::new();
    let node = node(memory.clone(), &FAULTS).await;
    let a = election(&node, "a");
    a.start();
    until(|| a.is_leader()).await;
    // Twice as many calls as there are faults.
    until(|| node.seen().len() > 2 * FAULTS.len()).await;
    assert_eq!(a.token(), Some(1), "nothing was lost on the way");
    a.stop().await;
    assert!(memory.holder("r").await.expect("asked").leader.is_none(), "given back");
}

/// The role moves each time a holder stops, and there are never two holders.
#[tokio::test]
async fn never_two_at_one_time() {
    let memory = Memory::new();
    let node = node(memory.clone(), &FAULTS).await;
    let all: Vec<Election> = ["a", "b", "c"].iter().map(|id| election(&node, id)).collect();
    all.iter().for_each(Election::start);
    for round in 0..3 {
        let mut leads = None;
        until(|| {
            let leading: Vec<usize> = (0..all.len()).filter(|at| all[*at].is_leader()).collect();
            assert!(leading.len() < 2, "round {round}: {leading:?}");
            leads = leading.first().copied();
            leads.is_some()
        })
        .await;
        let leader = &all[leads.expect("one leads")];
        leader.stop().await;
        assert!(!leader.is_leader());
        leader.start();
    }
}

/// A grant that was waited for counts only from a renewal on.
#[tokio::test]
async fn a_grant_that_was_waited_for_is_proved_first() {
    let memory = Memory::new();
    let node = node(memory.clone(), &[Fault::None]).await;
    let client = Client::new([node.url.clone()]).expect("a client");
    let lock = |id: &str| Lock::new(client.clone(), "r").instance_id(id);
    let first = lock("a").try_acquire().await.expect("asked").expect("free");
    let waiting = tokio::spawn(lock("b").acquire());
    let orders = |name: &str| node.seen().iter().filter(|seen| seen.path.ends_with(name)).count();
    until(|| orders("/acquire") >= 3).await;
    first.release().await.expect("given back");
    let second = waiting.await.expect("no panic").expect("its turn");
    assert!(second.is_held());
    let last = node.seen().last().cloned().expect("calls");
    assert!(last.path.ends_with("/renew") && last.body["token"] == json!(second.token()), "{last:?}");
}

/// The role was granted, and the election is stopped before it learns that. The stop reads the holder, and releases
/// the role.
#[tokio::test]
async fn a_stop_while_a_grant_is_on_its_way_leaves_no_leader_behind() {
    let memory = Memory::new();
    let kept = memory.clone();
    let node = Fake::start(Arc::new(move |request| {
        let memory = kept.clone();
        Box::pin(async move {
            let reply = answer(&memory, &request).await;
            if request.path.ends_with("/acquire") { Reply::Silence } else { reply }
        })
    }))
    .await;
    let a = election(&node, "a");
    a.start();
    until(|| node.seen().iter().any(|seen| seen.path.ends_with("/acquire"))).await;
    while memory.holder("r").await.expect("asked").leader.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    a.stop().await;
    assert!(!a.is_leader());
    assert!(memory.holder("r").await.expect("asked").leader.is_none(), "given back");
}

/// The feed breaks off. The lease goes on, and the feed is opened again.
#[tokio::test]
async fn a_feed_that_breaks_is_told_and_taken_up_again() {
    let memory = Memory::new();
    let opened = Arc::new(AtomicUsize::new(0));
    let node = Fake::start(Arc::new(move |request| {
        let (memory, opened) = (memory.clone(), opened.clone());
        Box::pin(async move {
            if !request.path.starts_with("/v1/feed") {
                return answer(&memory, &request).await;
            }
            match opened.fetch_add(1, Ordering::SeqCst) {
                // A line that is no event ends the subscription.
                0 => Reply::Lines(vec![json!("nonsense")]),
                _ => Reply::Lines(vec![json!({"id": "1", "kind": "bookmark"})]),
            }
        })
    }))
    .await;
    let a = election(&node, "a");
    let mut events = a.events();
    a.start();
    for wanted in ["started", "error", "started"] {
        loop {
            match events.next().await.expect("it goes on") {
                ElectionEvent::SubscribeStarted if wanted == "started" => break,
                ElectionEvent::SubscribeError(_) if wanted == "error" => break,
                ElectionEvent::LeaderLost => panic!("nothing was lost"),
                _ => {}
            }
        }
    }
    assert!(a.wait_for_election(crate::ELECTION_WAIT).await);
    a.stop().await;
}
