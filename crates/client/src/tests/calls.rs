//! One call and its attempts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::fake::{Fake, Reply, Request, closed, problem};
use crate::{Acquire, Backend, Broker, BrokerTried, Client, Error, Hold, If, Level, StateDoc};

const SHORT: Duration = Duration::from_millis(600);

/// The reason of an attempt that got no answer.
const LATE: &str = "no answer in time";

fn client(urls: &[&str]) -> Client {
    Client::new(urls.iter().copied()).expect("a client")
}

/// A client with short limits, for calls that must fail.
fn hasty(urls: &[&str]) -> Client {
    let attempt = Duration::from_millis(150);
    Client::builder(urls.iter().copied()).deadline(SHORT).attempt_timeout(attempt).build().expect("a client")
}

fn done() -> Reply {
    Reply::Json(200, json!({"key": "k", "rev": 7, "created": true}))
}

#[tokio::test]
async fn a_node_that_is_not_there_is_passed_over_and_the_one_that_answers_is_kept() {
    let (dead, node) = (closed().await, Fake::script(vec![done()]).await);
    let client = client(&[&dead, &node.url]);
    for _ in 0..3 {
        assert_eq!(client.put_doc("k", &1, If::Always).await.expect("written"), "7");
    }
    assert_eq!(node.seen().len(), 3);
    assert_eq!(node.seen()[0].path, "/v1/docs/k");
}

#[tokio::test]
async fn the_leader_that_a_node_names_is_called_next() {
    let (leader, other) = (Fake::script(vec![done()]).await, Fake::script(vec![done()]).await);
    let named = json!({"leader_node": {"id": 3, "url": leader.url}});
    let node = Fake::script(vec![problem(421, "not_leader", named)]).await;
    let client = client(&[&node.url, &other.url, &leader.url]);
    client.put_doc("k", &1, If::Always).await.expect("written");
    client.put_doc("k", &1, If::Always).await.expect("written");
    assert_eq!((node.seen().len(), leader.seen().len()), (1, 2), "the leader is remembered");
    assert_eq!(other.seen().len(), 0);
}

/// The token must not be sent to an address that is not in the client's list of nodes.
#[tokio::test]
async fn a_leader_at_an_address_that_nobody_gave_is_not_called() {
    let stranger = Fake::script(vec![done()]).await;
    let named = json!({"leader_node": {"id": 2, "url": stranger.url}});
    let node = Fake::script(vec![problem(421, "not_leader", named), done()]).await;
    client(&[&node.url]).put_doc("k", &1, If::Always).await.expect("written");
    assert_eq!((node.seen().len(), stranger.seen().len()), (2, 0));
}

/// The node's machine is frozen: the client does not wait for it as long as an attempt may take.
#[tokio::test]
async fn a_node_that_does_not_even_say_that_it_lives_is_passed_over() {
    let (frozen, node) = (Fake::script(vec![Reply::Silence]).await, Fake::script(vec![done()]).await);
    let long = Duration::from_secs(60);
    let client = Client::builder([&frozen.url, &node.url]).attempt_timeout(long).deadline(long);
    let client = client.build().expect("a client");
    client.put_doc("k", &1, If::Always).await.expect("written, within the only attempt's time");
    let key = |seen: Vec<Request>| seen[0].header("idempotency-key").map(str::to_string);
    assert!(key(frozen.seen()).is_some() && key(frozen.seen()) == key(node.seen()), "the same call");
}

#[tokio::test]
async fn a_node_that_lives_is_waited_for() {
    let asked = Arc::new(Semaphore::new(0));
    let slow = Fake::start(Arc::new(move |request| {
        let asked = asked.clone();
        Box::pin(async move {
            if request.path == "/livez" {
                asked.add_permits(1);
            } else {
                let twice = asked.acquire_many(2).await;
                twice.expect("open").forget();
            }
            done()
        })
    }))
    .await;
    let other = Fake::script(vec![done()]).await;
    client(&[&slow.url, &other.url]).put_doc("k", &1, If::Always).await.expect("written");
    assert_eq!((slow.seen().len(), other.seen().len()), (3, 0));
}

/// After an attempt without an answer, the next attempt is the same call under the same key. Another call has another
/// key.
#[tokio::test]
async fn one_call_has_one_key() {
    let unknown = || problem(504, "outcome_unknown", json!({}));
    let busy = || problem(503, "no_leader", json!({}));
    let node = Fake::script(vec![Reply::Cut, unknown(), busy(), done()]).await;
    let client = client(&[&node.url]);
    client.put_doc("k", &1, If::Absent).await.expect("written");
    client.put_doc("k", &1, If::Absent).await.expect("written");
    let keys: Vec<String> =
        node.seen().iter().map(|seen| seen.header("idempotency-key").expect("a key").to_string()).collect();
    assert_eq!(keys.len(), 5, "four attempts, and a call");
    assert!(keys[..4].iter().all(|key| *key == keys[0]) && keys[4] != keys[0], "{keys:?}");
    assert!(node.seen().iter().all(|seen| seen.header("if-none-match") == Some("*")));
}

#[tokio::test]
async fn in_vain_and_surely_not_done() {
    let refusing = Fake::script(vec![problem(503, "no_quorum", json!({"detail": "one of three"}))]).await;
    let dead = closed().await;
    let long = Duration::from_secs(2);
    let client = Client::builder([&refusing.url, &dead]).deadline(long).attempt_timeout(long).build();
    let client = client.expect("a client");
    // An attempt that begins when the time is nearly over may be late, and is then rightly in doubt.
    for _ in 0..20 {
        let error = client.put_doc("k", &1, If::Always).await.expect_err("in vain");
        match &error {
            Error::Indeterminate { tried } if tried.last().is_some_and(|tried| tried.why == LATE) => continue,
            Error::Unavailable { .. } => assert!(error.to_string().contains("one of three"), "{error}"),
            _ => panic!("{error}"),
        }
        return;
    }
    panic!("the last attempt was late each time");
}

/// The last attempt says nothing about the earlier ones.
#[tokio::test]
async fn in_vain_and_nobody_knows() {
    for doubt in [Reply::Cut, Reply::Silence, problem(504, "outcome_unknown", json!({}))] {
        let refusal = problem(503, "no_leader", json!({}));
        let node = Fake::script(vec![doubt.clone(), refusal]).await;
        let error = hasty(&[&node.url]).put_doc("k", &1, If::Always).await.expect_err("in vain");
        assert!(matches!(error, Error::Indeterminate { .. }), "{doubt:?}: {error}");
        // A read leaves nothing in doubt.
        let node = Fake::script(vec![doubt, problem(503, "no_leader", json!({}))]).await;
        let read = hasty(&[&node.url]).get_doc::<Value>("k", Level::Linear).await.expect_err("in vain");
        assert!(matches!(read, Error::Unavailable { .. }), "{read}");
    }
}

#[tokio::test]
async fn a_message_is_never_sent_twice() {
    let node = Fake::script(vec![Reply::Cut]).await;
    let error = client(&[&node.url]).publish("c", &1).await.expect_err("nobody knows");
    assert!(matches!(error, Error::Indeterminate { .. }), "{error}");
    assert_eq!(node.seen().len(), 1);
    // A call that was certainly not sent may be sent again.
    let delivered = Reply::Json(200, json!({"delivered": 2}));
    let node = Fake::script(vec![problem(503, "no_leader", json!({})), delivered]).await;
    assert_eq!(client(&[&node.url]).publish("c", &1).await.expect("sent"), 2);
}

fn hold() -> Hold {
    Hold { role: "r".into(), instance_id: "me".into(), token: 7, ttl: Duration::from_secs(30), tie: None }
}

#[tokio::test]
async fn a_release_that_was_lost_on_the_way_back_has_been_done() {
    let gone = || problem(410, "lease_lost", json!({"role": "r", "leader": null, "token": null}));
    let node = Fake::script(vec![Reply::Cut, gone()]).await;
    client(&[&node.url]).release(&hold()).await.expect("released");
    let node = Fake::script(vec![gone()]).await;
    let error = client(&[&node.url]).release(&hold()).await.expect_err("it was lost before");
    assert!(error.is_lease_lost(), "{error}");
}

/// A replayed answer would grant more time than there is.
#[tokio::test]
async fn a_renewal_has_no_key_and_counts_from_its_last_attempt() {
    let renewed = Reply::Json(200, json!({"role": "r", "token": 7, "expires_in_ms": 30_000}));
    let node = Fake::script(vec![Reply::Cut, renewed]).await;
    let client = client(&[&node.url]);
    let before = client.clock().now();
    let renewal = client.renew(&hold()).await.expect("renewed");
    assert!(node.seen().iter().all(|seen| seen.header("idempotency-key").is_none()));
    let answered = client.clock().now();
    assert!(renewal.sent > before && renewal.sent <= answered);
}

#[tokio::test]
async fn a_grant_counts_from_when_it_was_asked_for() {
    let granted = json!({"outcome": "elected", "role": "r", "token": 7, "expires_in_ms": 20_000,
        "leader": {"instance_id": "me", "address": null, "metadata": null}});
    let node = Fake::script(vec![Reply::Json(200, granted)]).await;
    let client = client(&[&node.url]);
    let ask = Acquire {
        role: "r".into(),
        instance_id: "me".into(),
        ttl: Duration::from_secs(30),
        priority: 3,
        address: None,
        metadata: Some(json!({"a": 1})),
        wait: Duration::ZERO,
    };
    let before = client.clock().now();
    let grant = client.acquire(&ask).await.expect("granted");
    // The remaining time counts, less one percent and 10 ms.
    assert_eq!(grant.term.until.since(grant.term.sent), Duration::from_millis(19_790));
    assert!(grant.term.sent >= before);
    let expected =
        json!({"instance_id": "me", "ttl_ms": 30_000, "metadata": {"a": 1}, "priority": 3, "wait_ms": 0});
    assert_eq!(node.seen()[0].body, expected);
}

/// A call ends with an error, and the program goes on, whatever a server sends.
#[tokio::test]
async fn nonsense_is_an_error() {
    let raw = |text: &str| Reply::Raw(text.to_string());
    let nonsense = [
        Reply::Json(200, json!([1, 2])),
        Reply::Json(
            200,
            json!({"outcome": "perhaps", "leader": {"instance_id": "x"}, "token": 1, "expires_in_ms": 1}),
        ),
        Reply::Json(200, json!({"outcome": "elected", "leader": null, "token": -1, "expires_in_ms": 1e300})),
        Reply::Json(409, json!({"code": "role_held", "leader": 7})),
        Reply::Json(418, json!("teapot")),
        raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc"),
        raw("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\u{0}\u{1}{"),
        raw("SSH-2.0-nonsense\r\n"),
        raw("HTTP/1.1 999 \r\ncontent-length: 0\r\n\r\n"),
    ];
    for reply in nonsense {
        let node = Fake::script(vec![reply.clone()]).await;
        let client = hasty(&[&node.url]);
        let ask = Acquire {
            role: "r".into(),
            instance_id: "me".into(),
            ttl: Duration::from_secs(30),
            priority: 0,
            address: None,
            metadata: None,
            wait: Duration::ZERO,
        };
        client.acquire(&ask).await.map(|grant| panic!("{reply:?} granted {grant:?}")).expect_err("nonsense");
    }
}

#[tokio::test]
async fn a_state_is_read_again_when_somebody_was_faster() {
    let stale = problem(412, "precondition_failed", json!({"current_rev": "9"}));
    let node = Fake::script(vec![
        Reply::Tagged(200, json!(1), "7"),
        stale,
        Reply::Tagged(200, json!(10), "9"),
        Reply::Json(200, json!({"key": "k", "rev": "11", "created": false})),
    ])
    .await;
    let state: StateDoc<u64> = StateDoc::new(client(&[&node.url]), "k");
    let now = state.update(|value| Some(value.unwrap_or_default() + 1)).await.expect("written");
    assert_eq!(now, Some(11));
    let seen = node.seen();
    assert_eq!(seen[3].body, json!(11));
    let revisions: Vec<_> = seen.iter().filter_map(|seen| seen.header("if-match")).collect();
    assert_eq!(revisions, ["\"7\"", "\"9\""]);
}

/// Two clients find no document. One creates it, and the other changes what the first one has written.
#[tokio::test]
async fn a_state_that_is_not_there_is_created_once() {
    let missing = || problem(404, "not_found", json!({}));
    let written = |rev: &str, created| Reply::Json(200, json!({"key": "k", "rev": rev, "created": created}));
    let node = Fake::script(vec![
        missing(),
        written("7", true),
        missing(),
        problem(412, "precondition_failed", json!({"current_rev": "7"})),
        Reply::Tagged(200, json!(1), "7"),
        written("9", false),
    ])
    .await;
    let state: StateDoc<u64> = StateDoc::new(client(&[&node.url]), "k");
    let add = |value: Option<u64>| Some(value.unwrap_or_default() + 1);
    assert_eq!(state.update(add).await.expect("created"), Some(1));
    assert_eq!(state.update(add).await.expect("changed"), Some(2));
    let seen = node.seen();
    let conditions: Vec<_> =
        seen.iter().map(|seen| (seen.header("if-none-match"), seen.header("if-match"))).collect();
    let (read, create, change) = ((None, None), (Some("*"), None), (None, Some("\"7\"")));
    assert_eq!(conditions, [read, create, read, create, read, change]);
}

/// The role was free when the call arrived, and was granted to another instance before the call was applied.
#[tokio::test]
async fn a_broker_is_told_of_a_conflict() {
    let other = json!({"instance_id": "b", "address": "0.0.0.0:8081", "metadata": null});
    let members =
        json!({"outcome": "conflict", "role": "queue", "leader": other, "token": 7, "expires_in_ms": 10_000});
    let node = Fake::script(vec![problem(409, "role_held", members)]).await;
    let mut broker = Broker::new(client(&[&node.url]), "queue", "0.0.0.0:8080");
    match broker.try_elect().await.expect("asked") {
        BrokerTried::Conflict { leader } => assert_eq!(leader.address.as_deref(), Some("0.0.0.0:8081")),
        tried => panic!("{tried:?}"),
    }
    assert!(!broker.is_leader());
}

#[tokio::test]
async fn a_state_that_others_write_all_the_time_is_given_up() {
    let replies = (0..20).flat_map(|_| {
        [Reply::Tagged(200, json!(1), "7"), problem(412, "precondition_failed", json!({"current_rev": "9"}))]
    });
    let node = Fake::script(replies.collect()).await;
    let state: StateDoc<u64> = StateDoc::new(client(&[&node.url]), "k");
    let error = state.update(|_| Some(1)).await.expect_err("in vain");
    assert!(matches!(error, Error::Contended { tries: 16, .. }), "{error}");
}
