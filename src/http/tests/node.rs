//! A node without the protocol: its loop decides and applies commands on the real store, and refuses when the test tells it to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use super::options::{Options, guard, limits, web};
use super::setups::{desk, setup};
use super::{Answer, request};
use crate::driver::handle::{
    Ask, CatchUp, Denied, Desk, LeaderStatus, MemberStatus, NodeStatus, Opinion, Status, View, Whole, Written,
};
use crate::driver::{CallChunk, Measures};
use crate::http::Context;
use crate::http::request::Connection;
use crate::http::server::Front;
use crate::http::{Runtimes, serve};
use crate::protocol::{IsLeader, Mode, ServiceChange};
use crate::replica::{Answer as ReplicaAnswer, Call};
use crate::store::{Command, Judged, Store};
use crate::types::{
    Entry, Epoch, Format, KeyedCall, NodeId, Now, Payload, Position, Record, Span, Stamp, Time, WallTime,
};

pub const TOKEN: &str = "correct horse battery staple";

/// A test's order to the loop.
#[derive(Debug)]
pub enum Control {
    /// The next calls are denied with these, one each.
    Deny(Vec<Denied>),
    /// An earlier attempt of every call is in the log.
    Doubt,
    /// The loop answers no further call.
    FallSilent,
    Show(Option<NodeId>),
    /// The loop has found out why there is no leader.
    Advise(&'static str),
}

/// The calls that the loop has received, in words.
pub type Seen = Arc<Mutex<Vec<String>>>;

pub struct Node {
    pub context: Arc<Context>,
    pub front: Front,
    pub seen: Seen,
    controls: mpsc::Sender<(Control, oneshot::Sender<()>)>,
    listener: Option<TcpListener>,
}

impl Node {
    /// Returns the leader of three nodes, without the others.
    pub async fn leader() -> Node {
        Node::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Node {
        let mut nodes = Node::several(1, options).await;
        nodes.remove(0)
    }

    /// Returns some nodes of a cluster of three, the first of which leads; each knows the addresses of the others.
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
            node.control(Control::Show(Some(NodeId(1)))).await;
            nodes.push(node);
        }
        nodes
    }

    fn new(me: NodeId, addresses: &[SocketAddr], listener: TcpListener, options: &Options) -> Node {
        let (handle, desk) = desk();
        let (controls, ordered) = mpsc::channel(16);
        let seen = Seen::default();
        tokio::spawn(Loop::new(me, desk, seen.clone(), options.mode).run(ordered));
        let mut setup = setup(me, addresses, options.elsewhere);
        (setup.settings.mode, setup.cluster.mode) = (options.mode, options.mode.name().to_string());
        let setup = Arc::new(setup);
        let context = Context::new(handle, setup, options.limits.clone(), options.guard(), options.web());
        let context = Arc::new(context.expect("a client can be made"));
        Node { front: Front::new(context.clone()), context, seen, controls, listener: Some(listener) }
    }

    pub async fn control(&self, control: Control) {
        let (done, obeyed) = oneshot::channel();
        self.controls.send((control, done)).await.expect("the loop lives");
        obeyed.await.expect("the loop lives");
    }

    pub async fn deny(&self, denials: impl IntoIterator<Item = Denied>) {
        self.control(Control::Deny(denials.into_iter().collect())).await;
    }

    pub async fn call(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(request(line, headers, body)).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        self.send_over(None, request).await
    }

    /// Sends a request over this connection.
    pub async fn send_over(&self, connection: Option<Arc<Connection>>, request: Request<Body>) -> Answer {
        Answer::of(self.front.answer(connection, request).await).await
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics here").clone()
    }

    pub fn url(&self) -> String {
        self.context.url(self.context.me()).expect("it is a member").to_string()
    }

    /// Serves over TCP until the sender is dropped or used.
    pub fn serve(&mut self) -> (oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
        self.serve_on(Runtimes { peers: Handle::current(), of_loop: Handle::current() })
    }

    pub fn serve_on(&mut self, runtimes: Runtimes) -> (oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
        let (stop, stopped) = oneshot::channel::<()>();
        let listener = self.listener.take().expect("it serves once");
        let serving = serve(listener, self.context.clone(), runtimes, stopped);
        (stop, tokio::spawn(serving))
    }

    /// Returns the listener, for a test that plays the node's part itself.
    pub fn take_listener(&mut self) -> TcpListener {
        self.listener.take().expect("it is taken once")
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
    unanswered: Vec<CallChunk>,
    quiet: bool,
    doubt: bool,
    seen: Seen,
    leader: Option<NodeId>,
}

impl Loop {
    fn new(me: NodeId, desk: Desk, seen: Seen, mode: Mode) -> Loop {
        let store = if mode == Mode::Available { Store::mergeable() } else { Store::default() };
        let (denials, silent, unanswered) = (VecDeque::new(), Vec::new(), Vec::new());
        let (quiet, doubt, leader) = (false, false, None);
        Loop { me, mode, desk, store, denials, silent, unanswered, quiet, doubt, seen, leader }
    }

    async fn run(mut self, mut controls: mpsc::Receiver<(Control, oneshot::Sender<()>)>) {
        loop {
            tokio::select! {
                biased;
                Some((control, done)) = controls.recv() => {
                    self.control(control);
                    let _ = done.send(());
                }
                Some(ask) = self.desk.asks.recv() => match self.quiet {
                    true => self.silent.push(ask),
                    false => self.answer(ask),
                },
                Some(chunk) = self.desk.chunks.recv() => match self.quiet {
                    true => self.unanswered.push(chunk),
                    false => self.answer_chunk(chunk),
                },
                else => return,
            }
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::Deny(denials) => self.denials.extend(denials),
            Control::Doubt => self.doubt = true,
            Control::FallSilent => self.quiet = true,
            Control::Show(leader) => {
                self.leader = leader;
                self.show();
            }
            Control::Advise(text) => self.desk.signs.advise(Some(text.to_string())),
        }
    }

    fn show(&self) {
        self.desk.signs.let_in(&self.store);
        self.desk.show(self.leader, self.epoch(), self.store.applied().index);
    }

    fn epoch(&self) -> Epoch {
        Epoch::new(7, self.leader.unwrap_or_default())
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Call { call: Call::Stop, .. } => {
                self.desk.asks.close();
                self.desk.chunks.close();
            }
            Ask::Call { call, to, .. } => {
                self.note_call(&call);
                let answer = self.denied().map_or_else(|| self.decide(call), Err);
                to.answer(answer);
            }
            Ask::Read { level, readers, .. } => {
                self.desk.reads.close(level);
                let view = self.denied().map_or_else(|| Ok(Arc::new(self.view())), Err);
                readers.send_replace(Some(view));
            }
            Ask::IsLeader(reply) => {
                let leads = self.leader == Some(self.me);
                let _ = reply.send(if leads { IsLeader::Yes } else { IsLeader::No });
            }
            Ask::Opinion { candidate, reply } => {
                let _ = reply.send(Opinion { approved: candidate == NodeId(2), reason: "because" });
            }
            Ask::MayHaveBeen { reply, .. } => drop(reply.send(self.doubt)),
            Ask::CatchUp { snapshot_id, reply } => {
                let _ = reply.send(self.denied().map_or_else(|| Ok(self.catch_up(snapshot_id)), Err));
            }
            // This node has no leases.
            Ask::LeaseTimes { reply, .. } => drop(reply),
            Ask::Waiters { reply, .. } => drop(reply),
            Ask::Status(reply) => drop(reply.send(self.status())),
            Ask::Measures(reply) => drop(reply.send(self.measures())),
            Ask::Explain(reply) => drop(reply),
            Ask::Turns { reply, .. } => drop(reply),
        }
    }

    fn answer_chunk(&mut self, chunk: CallChunk) {
        let CallChunk { calls, mut gathering, .. } = chunk;
        for (number, call) in calls.into_iter().enumerate() {
            self.note_call(&call);
            let answer = self.denied().map_or_else(|| self.decide(call), Err);
            gathering.add(number, answer);
        }
        gathering.tell();
    }

    fn note_call(&self, call: &Call) {
        match call {
            Call::Write { command, key } => {
                let payload = command.to_payload(*key);
                self.note(format!("write {}|{}", payload.kind, payload.text));
            }
            Call::Restore(document) => {
                document.steps.iter().for_each(|payload| self.note(format!("step {}", payload.kind)));
            }
            Call::HandOver { to, reason } => {
                self.note(format!("hand over to {to:?} by {}", reason.by().unwrap_or("nobody")));
            }
            Call::Service(ServiceChange::Down { owner, ttl, reason }) => {
                self.note(format!("down {owner:?} {ttl} {reason:?}"));
            }
            Call::Service(ServiceChange::Up { owner }) => self.note(format!("up {owner:?}")),
            Call::Form { without } => self.note(format!("form without {without:?}")),
            Call::ChangeMembers(change) => self.note(format!("members {change:?}")),
            _ => {}
        }
    }

    fn decide(&mut self, call: Call) -> Result<ReplicaAnswer, Denied> {
        match call {
            Call::Write { command, key } => {
                let payload = command.to_payload(key);
                self.write(*command, payload, key).map(ReplicaAnswer::Written)
            }
            Call::Restore(document) => {
                let written = document.steps.into_iter().map(|payload| self.append(payload)).last();
                written.map(ReplicaAnswer::Written).ok_or(Denied::Unknown)
            }
            Call::HandOver { .. } | Call::Service(_) | Call::Form { .. } | Call::ChangeMembers(_) => {
                Ok(ReplicaAnswer::Done)
            }
            // This node has no leases.
            Call::Read(_)
            | Call::Acquire(_)
            | Call::Renew(_)
            | Call::Untie(_)
            | Call::Register(_)
            | Call::Stop => Err(Denied::Unknown),
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

    fn write(
        &mut self,
        command: Command,
        payload: Payload,
        key: Option<KeyedCall>,
    ) -> Result<Written, Denied> {
        let stamp = Stamp { cluster: Span::millis(self.store.applied().index), ..self.store.stamp() };
        match self.store.judge(&command, key, stamp) {
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
        View { index: store.applied().index, store, leader, epoch: self.epoch(), heard_at: Time(0) }
    }

    fn catch_up(&self, snapshot_id: u64) -> CatchUp {
        let text = "{\"name\":\"tester\"}".into();
        let payload = Payload { kind: 1, format: Format(1), call: None, text };
        let position = Position::new(self.epoch(), 5);
        let records = vec![Record { position, stamp: Stamp::default(), entry: Entry::Client(payload) }];
        match snapshot_id {
            0 => CatchUp {
                whole: Some(Whole { snapshot_id: 4, store: self.store.clone(), skip: 2 }),
                records: Vec::new(),
            },
            _ => CatchUp { whole: None, records },
        }
    }

    fn status(&self) -> Status {
        Status {
            cluster: "test".to_string(),
            cluster_id: None,
            mode: self.mode.name(),
            node: NodeStatus { id: self.me.0, name: format!("node-{}", self.me.0) },
            role: if self.leader == Some(self.me) { "leader" } else { "follower" },
            leader: Some(LeaderStatus { id: 1, url: "http://127.0.0.1:9000".to_string() }),
            epoch: self.epoch().to_string(),
            commit_index: self.store.applied().index,
            applied_index: self.store.applied().index,
            last_index: self.store.applied().index,
            snapshot_id: 0,
            digest: "0".to_string(),
            state_bytes: 0,
            state_bytes_most: 1,
            admitted: true,
            heir: Some(2),
            service_down: false,
            replaced: false,
            disk_full: false,
            remark: None,
            members: (1..=3).map(|id| self.member(id)).collect(),
        }
    }

    fn measures(&self) -> Measures {
        Measures {
            at: Now { mono: Time(0), wall: WallTime(0) },
            status: self.status(),
            rows: [("users", 0); 8],
            conflicts: 0,
            waiting_for_roles: 0,
            uncommitted_bytes: 0,
            unsynced: 0,
            round_trips: Vec::new(),
            remarks: Vec::new(),
            disk_waits: Duration::ZERO,
            slowest_sync: Duration::ZERO,
        }
    }

    /// This node reaches the first two of three nodes.
    fn member(&self, id: u32) -> MemberStatus {
        MemberStatus {
            id,
            name: format!("node-{id}"),
            url: String::new(),
            role: None,
            reachable: id < 3,
            match_index: None,
            lag: None,
            last_heard_ms: None,
            silent: false,
            trouble: (id == 3).then(|| "409 another cluster".to_string()),
            votes: true,
        }
    }
}
