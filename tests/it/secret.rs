//! The cluster's secret: who does not have it is no peer, whatever it says, and whatever it has overheard.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Call, Cluster, Plan, Raw, problem, wait_for};

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
    let cluster = Plan::new(3).config(SECRET).start().await;
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

#[tokio::test]
async fn forged_envelopes_are_asked_for_proof() {
    let cluster = Plan::new(3).config(SECRET).start().await;
    let epoch = cluster.status_of(1, "epoch").await;
    for route in ["/heartbeat", "/writesync", "/declare_capability", "/recv_elect", "/catch_up"] {
        for proof in
            ["", "1.00000000000000000000000000000000.00000000000000000000000000000000 1 00", "x y z", "1 2"]
        {
            let mut call = Call::post(route)
                .header("eldest-cluster", "it mode=safe settings=00000000000000aa")
                .header("eldest-from", "2 to=1 boot=9f incarnation=4c admitted=yes format=1")
                .header("eldest-message", "heartbeat term=9.2/1 round=1 lease=0 commit=0 heir=0 boundary=0");
            if !proof.is_empty() {
                call = call.header("eldest-proof", proof);
            }
            let refused = cluster.answer(1, call).await;
            problem(&refused, 401, "unauthorized");
            assert!(refused.header("eldest-challenge").is_some(), "{}", refused.show());
        }
    }
    cluster.write_doc("k", 1).await;
    assert_eq!(cluster.status_of(1, "epoch").await, epoch);
}

/// Passes everything on, and keeps what callers send.
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

    /// Every whole call that carried a proof, of every kind that was heard.
    fn calls(&self) -> Vec<Vec<u8>> {
        let kept = self.0.lock().expect("nobody panics with it");
        kept.iter().flat_map(|bytes| split(bytes)).filter(|call| contains(call, b"eldest-proof: ")).collect()
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// A connection's bytes, call by call; one that is not whole, or of unknown length, is left out.
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

#[tokio::test]
async fn an_overheard_call_is_worth_nothing() {
    let mut plan = Plan::new(4).config(SECRET);
    let between = plan.take_last();
    let cluster = plan.prepare();
    let target = cluster.node(2).ip;
    let heard = Listener::between(between, target).await;
    cluster.place(1, &cluster.topology().moved(2, between));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    for number in 0..10 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    let calls = wait_for("calls of several kinds have passed", async || {
        let calls = heard.calls();
        let kinds = ["/heartbeat", "/writesync"];
        kinds.iter().all(|kind| calls.iter().any(|call| contains(call, kind.as_bytes()))).then_some(calls)
    })
    .await;
    for call in calls.iter().rev().take(100) {
        let mut raw = Raw::connect(cluster.node(2)).await;
        raw.send(call).await;
        raw.finish_sending().await;
        let answer = raw.read_to_end().await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 401"), "replayed {}: {answer}", String::from_utf8_lossy(call));
    }
    still_works(&cluster).await;
}

async fn still_works(cluster: &Cluster) {
    cluster.write_doc("after", 1).await;
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
}
