//! The cluster's secret: a caller without it is not accepted as a peer, even if it repeats overheard calls.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Call, Cluster, Plan, Raw, wait_for};

const SECRET: &str = "cluster_secret = \"the secret of these tests, long enough to pass\"";
const ANOTHER: &str = "cluster_secret = \"another secret of these tests, long enough as well\"";

#[tokio::test]
async fn who_shares_the_secret_forms_a_cluster() {
    let cluster = Plan::new(3).config(SECRET).start().await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(cluster.leader().await);
    cluster.write_doc("k", 2).await;
    cluster.ids().filter(|id| !cluster.node(*id).runs()).for_each(|id| cluster.start(id));
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        let log = std::fs::read_to_string(cluster.node(id).stderr_path()).expect("a log");
        assert!(!log.contains("the secret of these tests"), "the secret is in the log of n{id}");
    }
}

#[tokio::test]
async fn who_has_another_secret_does_not_count() {
    let cluster = Plan::new(3).brisk().config(SECRET).start().await;
    cluster.write_doc("k", 1).await;
    for odd in [ANOTHER, ""] {
        cluster.kill9(3);
        cluster.configure(3, odd);
        cluster.start(3);
        cluster.kill9(2);
        wait_for("n3 is up", async || cluster.status(3).await).await;
        wait_for("n1 and n3 are no majority", async || {
            let answer = cluster.answer(1, Call::put("/v1/docs/refused").raw_json("9")).await;
            assert!(!answer.ok(), "counted without the secret: {}", answer.show());
            (answer.status == 503).then_some(())
        })
        .await;
        assert!(!cluster.says_it_leads(3).await);
        cluster.start(2);
        cluster.is_ready(1).await;
    }
    cluster.kill9(3);
    cluster.configure(3, SECRET);
    cluster.start(3);
    cluster.ready().await;
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1));
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Forwards everything, and keeps what callers send.
#[derive(Clone, Debug)]
struct Listener(Arc<Mutex<Vec<Vec<u8>>>>);

impl Listener {
    async fn between(at: Ipv4Addr, target: Ipv4Addr) -> Listener {
        let socket = TcpListener::bind((at, 9000)).await.expect("the address is ours");
        let heard = Listener(Arc::new(Mutex::new(Vec::new())));
        let own = heard.clone();
        tokio::spawn(async move {
            while let Ok((caller, _)) = socket.accept().await {
                tokio::spawn(own.clone().pass_on(caller, target));
            }
        });
        heard
    }

    async fn pass_on(self, caller: TcpStream, target: Ipv4Addr) {
        let Ok(node) = TcpStream::connect((target, 9000)).await else {
            return;
        };
        let (mut from_caller, mut to_caller) = caller.into_split();
        let (mut from_node, mut to_node) = node.into_split();
        let back = tokio::spawn(async move { tokio::io::copy(&mut from_node, &mut to_caller).await });
        let number = {
            let mut kept = self.0.lock().expect("nobody panics with it");
            kept.push(Vec::new());
            kept.len() - 1
        };
        let mut buffer = [0; 16 << 10];
        while let Ok(count @ 1..) = from_caller.read(&mut buffer).await {
            self.0.lock().expect("nobody panics with it")[number].extend_from_slice(&buffer[..count]);
            if to_node.write_all(&buffer[..count]).await.is_err() {
                break;
            }
        }
        back.abort();
    }

    /// Every complete call with a proof, of every kind that was overheard.
    fn calls(&self) -> Vec<Vec<u8>> {
        let kept = self.0.lock().expect("nobody panics with it");
        kept.iter().flat_map(|bytes| split(bytes)).filter(|call| contains(call, b"eldest-proof: ")).collect()
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// A connection's bytes, call by call; a call that is incomplete or of unknown length is left out.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut calls = Vec::new();
    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let whole = end + 4 + length.map_or(0, |length| length.parse::<usize>().expect("a length"));
        if head.contains("transfer-encoding") || bytes.len() < whole {
            break;
        }
        calls.push(bytes[..whole].to_vec());
        bytes = &bytes[whole..];
    }
    calls
}

/// The others call this node at this address from now on.
async fn is_called_at(cluster: &Cluster, id: u32, address: &str) {
    let wanted = json!(format!("http://{address}"));
    wait_for("the log says where a node is", async || {
        let listed = cluster.answer(1, Call::get("/v1/members")).await.json();
        let is_there = |member: &Value| member["id"] == id && member["url"] == wanted;
        if listed["members"].as_array()?.iter().any(is_there) {
            return Some(());
        }
        let to = json!({"move": {"id": id, "address": address}});
        cluster.answer(1, Call::post("/v1/members").json(&to)).await;
        None
    })
    .await;
}

/// A cluster of three with a listener between n1, which leads, and n2. If another node formed the cluster,
/// the log has another address of n2, so the log gets the listener's address.
async fn overheard() -> (Cluster, Listener) {
    let mut plan = Plan::new(4).config(SECRET);
    let between = plan.take_last();
    let cluster = plan.prepare();
    let heard = Listener::between(between, cluster.node(2).ip).await;
    cluster.place(1, &cluster.topology().moved(2, between));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    cluster.hand_to(1).await;
    is_called_at(&cluster, 2, &format!("{between}:9000")).await;
    for number in 0..10 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    (cluster, heard)
}

/// The node's answer to these bytes on a separate connection.
async fn say(cluster: &Cluster, call: &[u8]) -> String {
    let end = call.windows(2).position(|window| window == b"\r\n").expect("a first line") + 2;
    let mut raw = Raw::connect(cluster.node(2)).await;
    raw.send(&[&call[..end], b"connection: close\r\n", &call[end..]].concat()).await;
    String::from_utf8_lossy(&raw.read_to_end().await).into_owned()
}

#[tokio::test]
async fn an_overheard_call_is_worth_nothing() {
    let (cluster, heard) = overheard().await;
    let calls =
        wait_for("calls have passed", async || Some(heard.calls()).filter(|calls| calls.len() > 20)).await;
    let epoch = cluster.status_of(2, "epoch").await;
    for call in calls.iter().rev().take(100) {
        let answer = say(&cluster, call).await;
        let shown = String::from_utf8_lossy(call);
        assert!(answer.starts_with("HTTP/1.1 401"), "replayed {shown}: {answer}");
        assert!(answer.contains("\"unauthorized\"") && answer.contains("eldest-challenge: "), "{answer}");
    }
    still_works(&cluster, &epoch).await;
}

/// One header or byte differs from what was proved; the last case has no proof at all.
#[tokio::test]
async fn a_call_that_was_tampered_with_is_refused() {
    let (cluster, heard) = overheard().await;
    // A call that n1 forwards for a client carries no message.
    let message = |call: Vec<u8>| {
        String::from_utf8(call)
            .ok()
            .filter(|call| call.lines().any(|line| line.starts_with("eldest-message: ")))
    };
    let call = wait_for("messages have passed", async || heard.calls().into_iter().rev().find_map(message));
    let call = call.await;
    let epoch = cluster.status_of(2, "epoch").await;
    let line =
        |name: &str| call.lines().find(|line| line.starts_with(name)).expect("a header of the envelope");
    let claim = "eldest-message: claim term=999.1/7 last=1.1@2 condition=fit";
    let proof = line("eldest-proof: ");
    let zeros = "0".repeat(32);
    let other_proof = format!("eldest-proof: 1.{zeros}.{zeros} 1 {zeros}{zeros}");
    for (what, with) in [
        (line("eldest-message: "), claim),
        (proof, &other_proof),
        (proof, "eldest-proof: x y z"),
        (proof, "eldest-proof: "),
        (proof, "x-proof: none"),
    ] {
        let forged = call.replace(what, with);
        let answer = say(&cluster, forged.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "forged {forged}: {answer}");
    }
    still_works(&cluster, &epoch).await;
}

async fn still_works(cluster: &Cluster, epoch: &Value) {
    cluster.write_doc("after", 1).await;
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.status_of(2, "epoch").await, *epoch, "the forger changed the leader");
}
