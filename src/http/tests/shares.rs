//! One address, or one token, uses up its share of a bound: its next call is refused, and calls of others are answered.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::Value;

use super::meeting::{Node, free_ports, start_in, temp_dir, wait};
use super::node::{self, limits};
use super::request;
use crate::driver::handle::Denied;
use crate::http::admission::{Callers, Class, ConnectionTimeouts, Origin, Place, Places, Sharer, Sharers};
use crate::http::request::{Connection, Context};
use crate::protocol::Mode;
use crate::store::TokenId;

const ATTACKER: u32 = 0x0a00_0001;
const OTHER: u32 = 0x0a00_0002;

/// A bound with shares, and a call that needs a place of it.
struct Bound {
    of: fn(&Context, Sharers) -> Option<Held>,
    line: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

/// A value that keeps a place.
type Held = Box<dyn Send>;

fn place(places: &Arc<Places>, sharers: Sharers) -> Option<Held> {
    places.take(sharers).ok().map(|place: Place| Box::new(place) as Held)
}

fn seat(context: &Context, class: Class, sharers: Sharers) -> Option<Held> {
    context.seats.take(class, sharers).ok().map(|seat| Box::new(seat) as Held)
}

const fn bound(of: fn(&Context, Sharers) -> Option<Held>, line: &'static str, body: &'static str) -> Bound {
    Bound { of, line, headers: &[], body }
}

const NDJSON: &[(&str, &str)] = &[("content-type", "application/x-ndjson")];
const HOLD: &str = "POST /v1/roles/r/hold?instance_id=a";
const TIE: &str = "POST /v1/roles/r/tie?instance_id=a&token=1&tie=7";
const ACQUIRE: &str = "POST /v1/roles/r/acquire";
const WAIT: &str = "{\"instance_id\":\"a\",\"wait_ms\":1}";

const BOUNDS: [Bound; 13] = [
    bound(|context, by| place(&context.readers, by), "GET /v1/feed", ""),
    bound(|context, by| place(&context.examinations, by), "GET /v1/explain/health", ""),
    bound(|context, by| place(&context.listeners, by), "GET /v1/channels/a", ""),
    bound(|context, by| place(&context.holds, by), HOLD, ""),
    bound(|context, by| place(&context.holds, by), TIE, ""),
    Bound {
        of: |context, by| place(&context.streams, by),
        line: "POST /v1/commands",
        headers: NDJSON,
        body: "",
    },
    bound(
        |context, by| context.lines.take(&"r".into(), by).ok().map(|place| Box::new(place) as Held),
        ACQUIRE,
        WAIT,
    ),
    bound(|context, by| seat(context, Class::Renewals, by), "POST /v1/roles/r/renew", "{}"),
    bound(|context, by| seat(context, Class::Orders, by), "POST /service_up", ""),
    bound(|context, by| seat(context, Class::Writes, by), "PUT /v1/docs/a", "1"),
    bound(|context, by| seat(context, Class::Reads, by), "GET /v1/docs/a?level=local", ""),
    bound(|context, by| seat(context, Class::Lists, by), "GET /v1/docs?level=local", ""),
    bound(|context, by| seat(context, Class::Waits, by), ACQUIRE, WAIT),
];

fn origin(address: u32) -> Origin {
    Origin::of(IpAddr::from(Ipv4Addr::from(address)))
}

/// A connection from this address.
fn from(address: u32) -> Option<Arc<Connection>> {
    let place = Callers::new(&limits()).place(IpAddr::from(Ipv4Addr::from(address)), false, 0);
    let caller = place.expect("there is room").caller.clone();
    let timeouts = ConnectionTimeouts::new(Duration::MAX, Duration::MAX, Duration::MAX).into();
    Some(Arc::new(Connection { timeouts, caller, certified: None, is_reserve: false }))
}

/// Returns the status of a response, and the bound that a refusal names. The body of a stream is not read.
async fn told(node: &Node, bound: &Bound, address: u32, token: &str) -> (u16, String) {
    let bearer = format!("Bearer {token}");
    let mut headers = bound.headers.to_vec();
    if !token.is_empty() {
        headers.push(("authorization", &bearer));
    }
    let response = node.front.answer(from(address), request(bound.line, &headers, bound.body)).await;
    let status = response.status().as_u16();
    if status != 429 {
        return (status, String::new());
    }
    let bytes = response.into_body().collect().await.expect("a problem is at hand").to_bytes();
    let problem: Value = serde_json::from_slice(&bytes).expect("JSON");
    (status, problem["bound"].as_str().unwrap_or_default().to_string())
}

async fn token(node: &Node, name: &str) -> (TokenId, String) {
    let body = format!("{{\"name\":\"{name}\",\"grants\":[\"read,write,watch *\",\"order\"]}}");
    let made = node.call("POST /v1/tokens", &body).await.json();
    let text = |member: &str| made[member].as_str().expect("it is made").to_string();
    (text("id").parse().expect("an id"), text("token"))
}

/// Takes places until the share is full.
fn fill(context: &Context, bound: &Bound, mut by: impl FnMut(u32) -> Sharers) -> Vec<Held> {
    (0..).map_while(|number| (bound.of)(context, by(number))).collect()
}

/// Takes all places of a share, including those that earlier calls give back late, until this call of the same share is refused.
async fn take_all(
    node: &Node,
    bound: &Bound,
    by: impl Fn(u32) -> Sharers,
    (address, token): (u32, &str),
    whose: &str,
) -> Vec<Held> {
    let mut taken = Vec::new();
    wait(async || {
        taken.extend(fill(&node.front.context, bound, &by));
        let (status, full) = told(node, bound, address, token).await;
        assert!(status != 429 || full.ends_with(whose), "{}: {full}", bound.line);
        status == 429
    })
    .await;
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_or_one_token_leaves_room_to_others() {
    let dir = temp_dir();
    let node = start_in(Mode::Safe, 1, &free_ports(1), &dir).await;
    node.put("a").await;
    let ((id, mine), (_, another)) = (token(&node, "mine").await, token(&node, "another").await);
    for bound in &BOUNDS {
        let line = bound.line;
        let by_address = |_| Sharers::at(origin(ATTACKER));
        let taken = take_all(&node, bound, by_address, (ATTACKER, &mine), ", of one address").await;
        let (status, whose) = told(&node, bound, OTHER, &mine).await;
        assert_ne!(status, 429, "{line}: {whose}, of another address");
        drop(taken);

        let by_token = |number| Sharers { principal: Some(Sharer::Token(id)), ..Sharers::at(origin(number)) };
        let taken = take_all(&node, bound, by_token, (OTHER, &mine), ", of one token").await;
        for other in [another.as_str(), ""] {
            let (status, whose) = told(&node, bound, OTHER, other).await;
            assert_ne!(status, 429, "{line}: {whose}, of another principal {other:?}");
        }
        drop(taken);
    }
    node.end().await;
    std::fs::remove_dir_all(dir).expect("it is there");
}

/// Calls that wait for a leader: an address with a full share learns at once that there is no leader, and calls of others still wait.
#[tokio::test]
async fn one_address_leaves_room_to_wait_for_a_leader() {
    let node = node::Node::leader().await;
    let _taken: Vec<Place> =
        std::iter::from_fn(|| node.context.waiting.take(Sharers::at(origin(ATTACKER))).ok()).collect();
    let put = |address| node.send_over(from(address), request("PUT /v1/docs/a", &[], "1"));
    node.deny([Denied::NoLeader]).await;
    assert_eq!(put(ATTACKER).await.problem(), (503, "no_leader".to_string()));
    node.deny([Denied::NoLeader]).await;
    assert_eq!(put(OTHER).await.status.as_u16(), 201, "by the time that it looks again, there is a leader");
}

/// A call that a node makes to others on behalf of a caller counts for the caller's address. So a full share of that node's own address
/// does not shut its callers out.
#[tokio::test]
async fn a_message_through_another_node_counts_for_its_sender() {
    let mut nodes = node::Node::several(2, node::Options::default()).await;
    let _serving = nodes[0].serve();
    let by_nodes = Sharers::at(Origin::of(IpAddr::from(Ipv4Addr::LOCALHOST)));
    let _taken =
        fill(&nodes[0].context, &bound(|context, by| seat(context, Class::Writes, by), "", ""), |_| by_nodes);
    let _listener = nodes[0].context.handle.channels().listen("a").expect("the node goes on");
    let publish = async || {
        let call = request("POST /v1/channels/a", &[], "1");
        nodes[1].send_over(from(OTHER), call).await.text == "{\"delivered\":1}"
    };
    // A busy machine may leave a node no time to answer another one.
    wait(publish).await;
}
