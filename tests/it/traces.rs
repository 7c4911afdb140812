//! The spans that a collector of traces gets: one trace for all nodes that a call has passed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Call, Plan, wait_for};

type Told = Arc<Mutex<Vec<Value>>>;

async fn take(State(told): State<Told>, body: Bytes) {
    let body: Value = serde_json::from_slice(&body).expect("OTLP as JSON");
    told.lock().expect("nobody panicked").push(body);
}

/// The spans of writes, by the node that reported them.
fn writes(told: &Told) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for body in told.lock().expect("nobody panicked").iter() {
        for resource in body["resourceSpans"].as_array().expect("a list") {
            let attributes = resource["resource"]["attributes"].as_array().expect("a list");
            let node = attributes.iter().find(|one| one["key"] == "service.instance.id").expect("a node");
            let node = node["value"]["stringValue"].as_str().expect("its id").to_string();
            let spans = resource["scopeSpans"][0]["spans"].as_array().expect("a list");
            let writes = spans.iter().filter(|span| span["name"] == "PUT docs").cloned();
            found.entry(node).or_default().extend(writes);
        }
    }
    found
}

#[tokio::test]
async fn a_call_that_is_passed_on_is_one_trace() {
    let mut plan = Plan::new(4);
    let address = format!("{}:4318", plan.take_last());
    let told = Told::default();
    let listener = TcpListener::bind(&address).await.expect("an address of the test's own");
    let collector = Router::new().route("/v1/traces", post(take)).with_state(told.clone());
    tokio::spawn(async move { axum::serve(listener, collector).await });
    let cluster = plan.config(&format!("otlp_url = \"http://{address}\"")).start().await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];

    let write = |number: u32, traceparent: &str| {
        let call = Call::put(format!("/v1/docs/k{number}")).raw_json("1");
        call.header("traceparent", traceparent).header("x-request-id", format!("write-{number}"))
    };
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    // The caller does not sample this one.
    cluster.answer(follower, write(1, &format!("00-{trace}-{parent}-00"))).await.expect(201);
    cluster.answer(follower, write(2, &format!("00-{trace}-{parent}-01"))).await.expect(201);
    let (first, second) = wait_for("both nodes tell of the call", async || {
        let mut found = writes(&told);
        let mut of = |node: u32| found.remove(&node.to_string()).filter(|spans| !spans.is_empty());
        Some((of(follower)?, of(leader)?))
    })
    .await;
    assert_eq!((first.len(), second.len()), (1, 1), "{first:?} {second:?}");
    let (first, second) = (&first[0], &second[0]);
    assert_eq!((&first["traceId"], &second["traceId"]), (&json!(trace), &json!(trace)));
    assert_eq!(first["parentSpanId"], parent);
    assert_eq!(second["parentSpanId"], first["spanId"]);
    for span in [first, second] {
        let attributes = span["attributes"].as_array().expect("a list");
        let said =
            |key: &str| &attributes.iter().find(|one| one["key"] == key).expect("it is there")["value"];
        assert_eq!(said("eldest.request_id")["stringValue"], "write-2");
        assert_eq!(said("url.path")["stringValue"], "/v1/docs/k2");
        assert_eq!(said("http.response.status_code")["intValue"], "201");
    }
}

/// A missing collector costs spans and nothing else.
#[tokio::test]
async fn without_a_collector_spans_are_lost_and_counted() {
    let mut plan = Plan::new(2);
    let nobody = plan.take_last();
    let cluster = plan.config(&format!("otlp_url = \"http://{nobody}:4318\"")).start().await;
    cluster.write_doc("k", 1).await;
    wait_for("the loss is counted", async || {
        let page = cluster.ask(1, &Call::get("/metrics")).await.ok()?.text();
        let lost = page.lines().find_map(|line| line.strip_prefix("eldest_spans_lost_total "))?;
        (lost.parse::<f64>().ok()? > 0.0).then_some(())
    })
    .await;
}
