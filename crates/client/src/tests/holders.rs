//! Documents written in the name of a role, and documents bound to leases, against a node with one role and one
//! document.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Reply, Request, problem};
use crate::{Backend, Broker, Client, Error, Hold, If, StateDoc, Until, With};

const ROLE: &str = "jobs/é; 1";
const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Debug, Default)]
struct State {
    /// The token of the role. Another grant raises it.
    token: u64,
    rev: u64,
    value: Option<Value>,
}

impl State {
    fn reply(&mut self, request: &Request) -> Reply {
        let verb = request.head.split(' ').next().unwrap_or_default();
        let path = request.path.split('?').next().unwrap_or_default();
        match (verb, path.rsplit('/').next().unwrap_or_default()) {
            ("POST", "acquire") => {
                self.token += 1;
                let leader = json!({"instance_id": request.body["instance_id"]});
                let grant = json!({"outcome": "elected", "role": ROLE, "leader": leader, "token": self.token,
                    "expires_in_ms": 3_600_000});
                Reply::Json(200, grant)
            }
            ("POST", "release") if request.body["token"] == self.token => Reply::Json(200, json!({})),
            ("POST", "release") => problem(410, "lease_lost", json!({"role": ROLE})),
            ("GET" | "PUT" | "DELETE", "k") => self.doc(verb, request),
            _ => problem(404, "not_found", json!({})),
        }
    }

    fn doc(&mut self, verb: &str, request: &Request) -> Reply {
        let named = format!("jobs%2F%C3%A9%3B%201; token={}", self.token);
        if request.header("if-role").is_some_and(|role| role != named) {
            return problem(412, "role_not_held", json!({"role": ROLE}));
        }
        self.rev += 1;
        match (verb, self.value.clone()) {
            ("GET", Some(value)) => Reply::Tagged(200, value, "7"),
            ("GET", None) => problem(404, "not_found", json!({})),
            (_, before) => {
                self.value = (verb == "PUT").then(|| request.body.clone());
                Reply::Json(200, json!({"key": "k", "rev": self.rev, "created": before.is_none()}))
            }
        }
    }
}

async fn node() -> (Fake, Arc<Mutex<State>>, Client) {
    let state = Arc::new(Mutex::new(State::default()));
    let known = state.clone();
    let node = Fake::start(Arc::new(move |request| {
        let reply = known.lock().expect("no panic").reply(&request);
        Box::pin(async move { reply })
    }))
    .await;
    let client = Client::new([&node.url]).expect("a client");
    (node, state, client)
}

fn writes(node: &Fake) -> usize {
    node.seen().iter().filter(|seen| seen.head.starts_with("PUT ")).count()
}

#[tokio::test]
async fn a_write_in_the_name_of_a_role_is_refused_once_another_has_it() {
    let (node, state, client) = node().await;
    state.lock().expect("no panic").token = 7;
    client.put_doc("k", &1, If::Absent.held(ROLE, 7)).await.expect("written");
    let until = Until { ttl: Some(HOUR), ..Until::default() };
    client.put_doc_until("k", &2, If::Always.held(ROLE, 7), until).await.expect("written");
    assert_eq!(node.seen()[0].header("if-none-match"), Some("*"));
    state.lock().expect("no panic").token = 8;
    let refused = |error: &Error| matches!(error, Error::RoleNotHeld { role } if role == ROLE);
    let former = If::Always.held(ROLE, 7);
    let put = client.put_doc("k", &3, former).await.expect_err("replaced");
    let put_until = client.put_doc_until("k", &3, former, until).await.expect_err("replaced");
    let delete = client.delete_doc("k", former).await.expect_err("replaced");
    assert!(refused(&put) && refused(&put_until) && refused(&delete), "{put}, {put_until}, {delete}");
    assert!(!put.is_outage(), "it is not to be tried again");
    assert_eq!(node.seen().len(), 5);
    assert_eq!(state.lock().expect("no panic").value, Some(json!(2)));
    client.delete_doc("k", If::Present.held(ROLE, 8)).await.expect("deleted");
}

#[tokio::test]
async fn a_broker_that_was_replaced_changes_nothing_and_has_lost() {
    let (node, state, client) = node().await;
    let mut broker = Broker::new(client.clone(), ROLE, "a:1").ttl(HOUR).heartbeat_every(HOUR / 3);
    let queue: StateDoc<Vec<u64>> = StateDoc::new(client, "k");
    let push = |job: u64| move |jobs: Option<Vec<u64>>| Some([jobs.unwrap_or_default(), vec![job]].concat());
    let refused = |told: Result<_, Error>| matches!(told, Err(Error::RoleNotHeld { role }) if role == ROLE);
    assert!(refused(broker.update(&queue, push(0)).await), "it does not lead yet");
    assert!(node.seen().is_empty());
    broker.try_elect().await.expect("asked");
    assert_eq!(broker.update(&queue, push(1)).await.expect("written"), Some(vec![1]));
    // The broker is frozen meanwhile, and another instance is granted the role.
    state.lock().expect("no panic").token += 1;
    assert!(broker.is_leader());
    assert!(refused(broker.update(&queue, push(2)).await));
    assert!(!broker.is_leader() && broker.token().is_none());
    broker.lost().await;
    assert!(refused(broker.update(&queue, push(3)).await));
    assert_eq!((writes(&node), state.lock().expect("no panic").value.clone()), (2, Some(json!([1]))));
    broker.stop().await.expect("what is lost need not be given back");
    broker.try_elect().await.expect("asked");
    assert_eq!(broker.update(&queue, push(4)).await.expect("written"), Some(vec![1, 4]));
}

/// This client's leases were granted under its own secret.
#[tokio::test]
async fn a_document_that_ends_with_a_lease_shows_its_secret() {
    let (node, _, client) = node().await;
    let put = async |with, secret| {
        client.put_doc_until("k", &1, If::Always, Until { with, secret, ttl: None }).await.expect("written");
    };
    put(Some(With::Role { name: ROLE, token: 7 }), None).await;
    put(Some(With::Process { id: "p" }), None).await;
    put(Some(With::Process { id: "p" }), Some("its own")).await;
    put(None, None).await;
    let hold = Hold { role: ROLE.into(), instance_id: "a".into(), token: 7, ttl: HOUR, tie: None };
    client.release(&hold).await.expect_err("nobody holds it");
    let seen = node.seen();
    let shown: Vec<Option<&str>> = seen.iter().map(|seen| seen.header("eldest-secret")).collect();
    let own = shown[4];
    assert!(own.is_some());
    assert_eq!(shown, [own, own, Some("its own"), None, own]);
}
