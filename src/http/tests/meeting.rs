//! Real nodes in one process that have parted and meet again.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::node::{guard, limits, web};
use super::{Answer, request};
use crate::driver::{self, Directory, End, Handle, Member, Setup};
use crate::http::Context;
use crate::http::server::Front;
use crate::http::{Runtimes, serve};
use crate::protocol::{Mode, Settings};
use crate::storage::Options;
use crate::storage::files::Files;
use crate::types::{Boot, NodeId, Span};
use crate::wire::ClusterHead;

/// More than any of this takes on a busy machine; only a test that hangs waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Node {
    pub front: Front,
    handle: Handle,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
    ended: oneshot::Receiver<End>,
}

pub fn temp_dir() -> PathBuf {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("eldest-meeting-{}-{number}", std::process::id()))
}

/// Starts a node that finds the others at these ports.
async fn start(me: u32, ports: &[u16], dir: &Path) -> Node {
    start_in(Mode::Available, me, ports, dir).await
}

pub async fn start_in(mode: Mode, me: u32, ports: &[u16], dir: &Path) -> Node {
    start_on(mode, me, ports, dir, Files::default()).await
}

/// Starts a node with its data in these files.
pub async fn start_on(mode: Mode, me: u32, ports: &[u16], dir: &Path, files: Files) -> Node {
    let member = |(id, port): (u32, &u16)| Member {
        id: NodeId(id),
        name: format!("node-{id}"),
        host: host().to_string(),
        port: *port,
        votes: true,
    };
    let members: Vec<Member> = (1..).zip(ports).map(member).collect();
    let mut settings = Settings::lan(NodeId(me), members.iter().map(|member| member.id).collect());
    settings.mode = mode;
    // The silence of a busy machine must not end leadership or part the nodes; a node that is down refuses, which is noticed at once.
    (settings.timing.dead_after, settings.timing.window) = (Span::millis(10_000), Span::millis(10_000));
    let cluster = ClusterHead {
        name: "test".to_string(),
        mode: format!("{mode:?}"),
        settings: 1,
        ids: Some(1),
        at: String::new(),
    };
    let directory = Directory::new(members);
    let setup = Setup {
        settings,
        cluster,
        directory,
        snapshot_every: 10,
        secret: None,
        tls: None,
        notices: Default::default(),
        wall: Default::default(),
    };
    let setup = Arc::new(setup);
    let address = SocketAddr::from((host(), ports[me as usize - 1]));
    let listener = TcpListener::bind(address).await.expect("the port is free");
    let own = setup.clone();
    let options = Options { files, mode, ..Options::new(dir, "test", NodeId(me), boot()) };
    let started = tokio::task::spawn_blocking(move || driver::start_on(own, options)).await;
    let started = started.expect("nobody panics").expect("the directory opens");
    let handle = started.handle.clone();
    let context = Context::new(started.handle, setup, limits(), guard(None, None), web());
    let context = Arc::new(context.expect("a client can be made"));
    let (stop, stopped) = oneshot::channel::<()>();
    let runtimes = Runtimes { peers: tokio::runtime::Handle::current(), of_loop: started.runtime };
    let serving = tokio::spawn(serve(listener, context.clone(), runtimes, stopped));
    Node { front: Front::new(context), handle, stop, serving, ended: started.ended }
}

/// Returns a number that is different at each start in these tests.
fn boot() -> Boot {
    static LAST: AtomicU64 = AtomicU64::new(1);
    Boot((u64::from(std::process::id()) << 32) + LAST.fetch_add(1, Ordering::Relaxed))
}

impl Node {
    pub async fn call(&self, line: &str, body: &str) -> Answer {
        Answer::of(self.front.answer(None, request(line, &[], body)).await).await
    }

    pub async fn put(&self, key: &str) {
        wait(async || {
            self.call(&format!("PUT /v1/docs/{}", key.replace(' ', "%20")), "1").await.status.is_success()
        })
        .await;
    }

    async fn docs(&self) -> Vec<String> {
        let answer = self.call("GET /v1/docs?level=local&limit=100", "").await.json();
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["key"].as_str().unwrap_or_default().to_string()).collect()
    }

    pub async fn status(&self) -> serde_json::Value {
        self.call("GET /v1/status", "").await.json()
    }

    /// Waits until the loop ends by itself, and returns why; after that the port is closed.
    pub async fn falls(self) -> End {
        let end = self.ended.await.expect("it says why");
        drop(self.stop);
        self.serving.await.expect("nobody panics").expect("it ends well");
        end
    }

    /// Waits until the node's port and directory are free.
    pub async fn end(self) {
        self.handle.stop().await;
        drop(self.stop);
        self.serving.await.expect("nobody panics").expect("it ends well");
        let end = self.ended.await.expect("it says why");
        assert!(matches!(end, End::Asked), "{end}");
    }
}

pub async fn wait(mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it comes about");
}

/// Returns an address that no other process uses: a listener there, kept until this process ends, marks it as taken. A port of this
/// address stays free between the end of a node and its next start; a port that the kernel has chosen would not.
fn host() -> Ipv4Addr {
    static CLAIMED: OnceLock<(Ipv4Addr, std::net::TcpListener)> = OnceLock::new();
    let claim = || {
        let start = std::process::id().wrapping_mul(7_919);
        let address = |block: u32| Ipv4Addr::new(127, 216 + ((block >> 8) % 32) as u8, block as u8, 1);
        let mut addresses = (0..8_192).map(|more| address(start.wrapping_add(more)));
        addresses.find_map(|ip| Some((ip, std::net::TcpListener::bind((ip, PORT_FIRST - 1)).ok()?)))
    };
    CLAIMED.get_or_init(|| claim().expect("a loopback address that nobody has")).0
}

/// Below the ports that the kernel chooses from.
const PORT_FIRST: u16 = 10_000;

/// Returns ports that no other test of this process uses.
pub fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(PORT_FIRST);
    (0..count).map(|_| NEXT.fetch_add(1, Ordering::Relaxed)).collect()
}

/// Both sides lead and are written to. They restart where they reach each other, and continue as one; then once more from their disks.
#[tokio::test(flavor = "multi_thread")]
async fn two_sides_meet() {
    let (ports, dirs) = (free_ports(4), [temp_dir(), temp_dir()]);
    let one = start(1, &[ports[0], ports[2]], &dirs[0]).await;
    let two = start(2, &[ports[3], ports[1]], &dirs[1]).await;
    for number in 0..25 {
        one.put(&format!("one/{number}")).await;
    }
    for number in 0..7 {
        two.put(&format!("two/{number}")).await;
    }
    one.put("both").await;
    two.put("both").await;
    one.end().await;
    two.end().await;

    let one = start(1, &ports[..2], &dirs[0]).await;
    let two = start(2, &ports[..2], &dirs[1]).await;
    wait(async || one.docs().await.len() == 33 && two.docs().await.len() == 33).await;
    one.put("after").await;
    two.put("after too").await;
    wait(async || are_equal(&one.status().await, &two.status().await)).await;
    let (docs, status) = (one.docs().await, one.status().await);
    assert_eq!((docs.len(), two.docs().await), (35, docs.clone()));
    assert_eq!(status["leader"]["id"], 1);
    assert_eq!(status["mode"], "available");
    one.end().await;
    two.end().await;

    let one = start(1, &ports[..2], &dirs[0]).await;
    let two = start(2, &ports[..2], &dirs[1]).await;
    wait(async || one.docs().await.len() == 35 && two.docs().await.len() == 35).await;
    assert_eq!((one.docs().await, two.docs().await), (docs.clone(), docs));
    one.end().await;
    two.end().await;
    dirs.iter().for_each(|dir| std::fs::remove_dir_all(dir).expect("it is there"));
}

fn are_equal(one: &serde_json::Value, two: &serde_json::Value) -> bool {
    ["digest", "applied_index", "epoch"].iter().all(|member| one[member] == two[member])
}
