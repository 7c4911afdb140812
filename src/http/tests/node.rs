//! A node without protocol: its loop judges and applies against the real store, and refuses when told to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{Answer, request};
use crate::config::HttpLimits;
use crate::driver::api::{
    Ask, CatchUp, Denied, Desk, Handle, LeaderStatus, NodeStatus, Opinion, Status, View, Written, channel,
};
use crate::driver::{Member, Setup};
use crate::http::context::Context;
use crate::http::front::Front;
use crate::http::serve;
use crate::protocol::{Mode, ServiceChange, Settings};
use crate::storage::snapshot::Snapshots;
use crate::store::{Command, Judged, Reason, Store};
use crate::types::{Call, Entry, Epoch, NodeId, Payload, Position, Record, Span, Stamp};
use crate::wire::ClusterHead;

pub const TOKEN: &str = "correct horse battery staple";

/// How long a call waits for a hand-over: longer than a busy machine keeps a test waiting.
const PATIENCE: Span = Span::millis(60_000);

/// What a test tells the loop.
#[derive(Debug)]
pub enum Order {
    /// The next calls are denied with these, one each.
    Deny(Vec<Denied>),
    /// Nothing is answered any more.
    FallSilent,
    Show(Option<NodeId>),
}

/// What the loop was asked, in words.
pub type Seen = Arc<Mutex<Vec<String>>>;

pub struct Node {
    pub context: Arc<Context>,
    pub front: Front,
    pub seen: Seen,
    orders: mpsc::Sender<(Order, oneshot::Sender<()>)>,
    listener: Option<TcpListener>,
}

#[derive(Debug)]
pub struct Options {
    pub limits: HttpLimits,
    pub token: Option<&'static str>,
    /// Where the others are, if not on this machine.
    pub elsewhere: Option<&'static str>,
    pub mode: Mode,
}

impl Default for Options {
    fn default() -> Options {
        Options { limits: limits(), token: None, elsewhere: None, mode: Mode::Safe }
    }
}

/// Patient: on a busy machine nothing that these tests wait for may be late.
pub fn limits() -> HttpLimits {
    HttpLimits {
        connections: 64,
        requests: 64,
        body_bytes: 2 << 20,
        head_bytes: 8192,
        header_timeout: Duration::from_secs(60),
        body_timeout: Duration::from_secs(60),
        request_timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
    }
}

impl Node {
    /// The leader of three, alone.
    pub async fn leader() -> Node {
        Node::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Node {
        let mut nodes = Node::several(1, options).await;
        nodes.remove(0)
    }

    /// Some nodes of a cluster of three, the first of which leads; each knows where the others listen.
    pub async fn several(count: usize, options: Options) -> Vec<Node> {
        let mut listeners = Vec::new();
        for _ in 0..3 {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("the loopback is there"));
        }
        let addresses: Vec<_> =
            listeners.iter().map(|listener| listener.local_addr().expect("it is bound")).collect();
        let mut nodes = Vec::new();
        for (listener, me) in listeners.into_iter().take(count).zip(1..) {
            let node = Node::new(NodeId(me), &addresses, listener, &options);
            node.order(Order::Show(Some(NodeId(1)))).await;
            nodes.push(node);
        }
        nodes
    }

    fn new(me: NodeId, addresses: &[SocketAddr], listener: TcpListener, options: &Options) -> Node {
        let (handle, desk) = desk();
        let (orders, ordered) = mpsc::channel(16);
        let seen = Seen::default();
        tokio::spawn(Loop::new(me, desk, seen.clone(), options.mode).run(ordered));
        let listen = addresses[me.0 as usize - 1];
        let mut setup = setup(me, addresses, options.elsewhere);
        (setup.settings.mode, setup.cluster.mode) = (options.mode, mode_name(options.mode).to_string());
        let setup = Arc::new(setup);
        let context = Context::new(handle, setup, options.limits.clone(), options.token, listen);
        let context = Arc::new(context.expect("a client can be made"));
        Node { front: Front::new(context.clone()), context, seen, orders, listener: Some(listener) }
    }

    pub async fn order(&self, order: Order) {
        let (done, obeyed) = oneshot::channel();
        self.orders.send((order, done)).await.expect("the loop lives");
        obeyed.await.expect("the loop lives");
    }

    pub async fn deny(&self, denials: impl IntoIterator<Item = Denied>) {
        self.order(Order::Deny(denials.into_iter().collect())).await;
    }

    pub async fn call(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(request(line, headers, body)).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(self.front.answer(request).await).await
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics here").clone()
    }

    pub fn url(&self) -> String {
        self.context.url(self.context.me()).expect("it is a member").to_string()
    }

    /// Serves over TCP until the sender is dropped or used.
    pub fn serve(&mut self) -> (oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
        let (stop, stopped) = oneshot::channel::<()>();
        let listener = self.listener.take().expect("it serves once");
        let serving = serve(listener, self.context.clone(), stopped);
        (stop, tokio::spawn(serving))
    }

    /// The listener, for a test that plays the node's part itself.
    pub fn take_listener(&mut self) -> TcpListener {
        self.listener.take().expect("it is taken once")
    }
}

pub fn desk() -> (Handle, Desk) {
    let folder = std::env::temp_dir().join(format!("eldest-http-{}-{:x}", std::process::id(), drawn()));
    let (snapshots, _) = Snapshots::open(&folder).expect("a folder can be made");
    // The handle wants one; no test writes into it.
    std::fs::remove_dir_all(&folder).expect("it has just been made");
    channel(64, Arc::new(Mutex::new(snapshots)))
}

fn drawn() -> u64 {
    getrandom::u64().expect("the system has randomness")
}

pub fn setup(me: NodeId, addresses: &[SocketAddr], elsewhere: Option<&str>) -> Setup {
    let member = |(id, address): (u32, &SocketAddr)| {
        let host = elsewhere.filter(|_| NodeId(id) != me);
        let host = host.map_or_else(|| address.ip().to_string(), str::to_string);
        Member { id: NodeId(id), name: format!("node-{id}"), host, port: address.port() }
    };
    let members: Vec<_> = (1..).zip(addresses).map(member).collect();
    let ids = members.iter().map(|member| member.id).collect();
    let cluster = ClusterHead { name: "test".to_string(), mode: "safe".to_string(), settings: 1 };
    let mut settings = Settings::lan(me, ids);
    settings.timing.window = PATIENCE;
    Setup { settings, cluster, members, snapshot_every: 10, secret: None, wall: Default::default() }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Safe => "safe",
        Mode::Available => "available",
    }
}

struct Loop {
    me: NodeId,
    mode: Mode,
    desk: Desk,
    store: Store,
    denials: VecDeque<Denied>,
    /// Calls that are never answered.
    silent: Vec<Ask>,
    quiet: bool,
    seen: Seen,
    leader: Option<NodeId>,
}

impl Loop {
    fn new(me: NodeId, desk: Desk, seen: Seen, mode: Mode) -> Loop {
        let store = if mode == Mode::Available { Store::with_sides() } else { Store::default() };
        let (denials, silent) = (VecDeque::new(), Vec::new());
        Loop { me, mode, desk, store, denials, silent, quiet: false, seen, leader: None }
    }

    async fn run(mut self, mut orders: mpsc::Receiver<(Order, oneshot::Sender<()>)>) {
        loop {
            tokio::select! {
                biased;
                Some((order, done)) = orders.recv() => {
                    self.obey(order);
                    let _ = done.send(());
                }
                Some(ask) = self.desk.asks.recv() => match self.quiet {
                    true => self.silent.push(ask),
                    false => self.answer(ask),
                },
                else => return,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Deny(denials) => self.denials.extend(denials),
            Order::FallSilent => self.quiet = true,
            Order::Show(leader) => {
                self.leader = leader;
                self.show();
            }
        }
    }

    fn show(&self) {
        self.desk.show(self.leader, self.epoch(), self.store.applied().index);
    }

    fn epoch(&self) -> Epoch {
        Epoch::new(7, self.leader.unwrap_or_default())
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Write { command, payload, call, reply } => {
                self.note(format!("write {}|{}", payload.kind, payload.text));
                let verdict = self.denied().map_or_else(|| self.write(*command, payload, call), Err);
                let _ = reply.send(verdict);
            }
            Ask::Step { payload, reply } => {
                self.note(format!("step {}", payload.kind));
                let verdict = self.denied().map_or_else(|| Ok(self.append(payload)), Err);
                let _ = reply.send(verdict);
            }
            Ask::Read { reply, .. } => {
                let view = self.denied().map_or_else(|| Ok(self.view()), Err);
                let _ = reply.send(view);
            }
            Ask::IsLeader(reply) => {
                let _ = reply.send(self.leader == Some(self.me));
            }
            Ask::HandOver { to, reply } => {
                self.note(format!("hand over to {to:?}"));
                let _ = reply.send(self.denied().map_or(Ok(()), Err));
            }
            Ask::Service { change, reply } => {
                self.note(match change {
                    ServiceChange::Down { owner, ttl, reason } => format!("down {owner:?} {ttl} {reason:?}"),
                    ServiceChange::Up { owner } => format!("up {owner:?}"),
                });
                let _ = reply.send(self.denied().map_or(Ok(()), Err));
            }
            Ask::Form { without, reply } => {
                self.note(format!("form without {without:?}"));
                let _ = reply.send(self.denied().map_or(Ok(()), Err));
            }
            Ask::Opinion { candidate, reply } => {
                let _ = reply.send(Opinion { approved: candidate == NodeId(2), reason: "because" });
            }
            Ask::CatchUp { snapshot_id, reply } => {
                let _ = reply.send(self.denied().map_or_else(|| Ok(self.catch_up(snapshot_id)), Err));
            }
            // Nobody here holds anything.
            Ask::Lease(ask) => drop(ask),
            Ask::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Ask::Stop => self.desk.asks.close(),
        }
    }

    fn note(&self, what: String) {
        self.seen.lock().expect("nobody panics here").push(what);
    }

    fn denied(&mut self) -> Option<Denied> {
        self.denials.pop_front()
    }

    fn append(&mut self, payload: Payload) -> Written {
        let position = Position::new(self.epoch(), self.store.applied().index + 1);
        let record = Record { position, stamp: self.store.stamp(), entry: Entry::Client(payload) };
        let applied = self.store.apply(&record).expect("a step is readable");
        Written { position, acks: Some(2), reply: applied.outcome.expect("no rule refuses a step") }
    }

    fn write(&mut self, command: Command, payload: Payload, call: Option<Call>) -> Result<Written, Denied> {
        let stamp = Stamp { cluster: Span::millis(self.store.applied().index), ..self.store.stamp() };
        match self.store.judge(&command, call, stamp) {
            Judged::Accept => {}
            Judged::Replay { at, reply } => return Ok(Written { position: at, acks: None, reply }),
            Judged::Rejected(rejection) => return Err(Denied::Rejected(rejection)),
            Judged::TooManyKeys => return Err(Denied::TooMany { bound: "idempotency keys" }),
        }
        let position = Position::new(self.epoch(), self.store.applied().index + 1);
        let record = Record { position, stamp, entry: Entry::Client(payload) };
        let applied = self.store.apply(&record).expect("our own record can be read");
        self.show();
        match applied.outcome {
            Ok(reply) => Ok(Written { position, acks: Some(2), reply }),
            Err(rejection) => Err(Denied::Rejected(rejection)),
        }
    }

    fn view(&self) -> View {
        let (store, leader) = (self.store.clone(), self.leader);
        View { index: store.applied().index, store, leader, epoch: self.epoch(), age_ms: 12 }
    }

    fn catch_up(&self, snapshot_id: u64) -> CatchUp {
        let lines = vec!["1|{\"name\":\"tester\"}".to_string()];
        match snapshot_id {
            0 => CatchUp { snapshot: Some((4, self.store.clone())), lines },
            _ => CatchUp { snapshot: None, lines },
        }
    }

    fn status(&self) -> Status {
        Status {
            cluster: "test".to_string(),
            mode: mode_name(self.mode),
            node: NodeStatus { id: self.me.0, name: "node-1".to_string() },
            role: "leader",
            leader: Some(LeaderStatus { id: 1, url: "http://127.0.0.1:9000".to_string() }),
            epoch: self.epoch().to_string(),
            commit_index: self.store.applied().index,
            applied_index: self.store.applied().index,
            last_index: self.store.applied().index,
            snapshot_id: 0,
            digest: "0".to_string(),
            admitted: true,
            heir: Some(2),
            service_down: false,
            disk_full: false,
            members: Vec::new(),
        }
    }
}

/// One of each kind of refusal that is final, with the problem that it becomes.
pub fn refusals() -> Vec<(Denied, u16, &'static str)> {
    let rejected = |reason: Reason| Denied::Rejected(reason.into());
    vec![
        (Denied::CatchingUp, 503, "catching_up"),
        (Denied::ServiceDown { reason: "upgrade".into() }, 503, "service_down"),
        (Denied::DiskFull, 503, "disk_full"),
        (Denied::TooMany { bound: "records under way" }, 429, "too_many_requests"),
        (Denied::FormatNotShared, 503, "catching_up"),
        (Denied::AlreadyFormed, 409, "rule_violated"),
        (Denied::NotAnHeir, 409, "rule_violated"),
        (Denied::Stopping, 503, "no_leader"),
        (Denied::Unknown, 504, "outcome_unknown"),
        (rejected(Reason::KeyReused), 422, "idempotency_key_reused"),
    ]
}
