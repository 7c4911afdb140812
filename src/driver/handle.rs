//! The calls that other threads can make to the loop, and their results. Tokens are checked here by any thread, without a call to
//! the loop (P56).
//!
//! Callers come into the loop in five ways:
//!
//! ```text
//!   queue    calls of clients               beyond the bound: refused at once, 429
//!   propose  chunks of streams              each needs a permit first: streams wait in turn
//!   tell     questions of the node itself   wait for room in the queue of clients
//!   peer     messages of other nodes        wait for room: the sender's call stays open, which slows it down
//!   gone     callers that disconnect        dropped: the loop notices when it answers
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::channels::{self, Channels};
use super::clock;
use super::feed::{self, Feed};
use super::numbers::Numbers;
pub use super::reads::Level;
use super::reads::{Readers, Reads};
use super::replies::{CHUNKS_MOST, CallChunk, Gathering, Keyed, Reply, RoleCaller, To, Verdicts};
use super::shown::{Explained, Measures, Pulse};
pub use super::shown::{LeaderStatus, MemberStatus, NodeStatus, Status};
use crate::protocol::{Envelope, HandOverReason, IsLeader, MemberChange, ServiceChange};
use crate::replica::{Acquire, Call, CallId, Granted, In, Registration, Renewal, Untie};
pub use crate::replica::{CatchUp, Denied, LeaseTimes, Opinion, View, Whole, Written};
use crate::storage::Encoded;
use crate::storage::node::SentDifference;
use crate::storage::snapshot::{Importer, Incoming, SnapshotError, Snapshots};
use crate::store::{
    Command, DocCondition, DocView, NewProcess, Process, Role, RoleClaim, SecretHash, Steps, Store, Tenure,
    Token, TokenId,
};
use crate::types::{Epoch, Index, KeyedCall, LeaseName, NodeId, Span, Text, WallTime};
use crate::wire::Packet;

/// The maximum number of disconnected callers that the loop has not processed yet. Beyond it the loop notices a disconnect when it
/// answers.
const GONE_MOST: usize = 16_384;

/// The time for which `is_leader` waits for a round that proves a lapsed lease again. Beyond it the answer is no.
const PROOF_MOST: Duration = Duration::from_secs(1);

/// The other threads' access to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) chunks: mpsc::Sender<CallChunk>,
    /// Permits for undecided chunks. There are as many as places in `chunks`, so a chunk with a permit finds room there.
    room: Arc<Semaphore>,
    /// Messages of peers have a separate queue, so that clients never delay them.
    pub(super) peers: mpsc::Sender<PeerAsk>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) leadership: watch::Receiver<Leadership>,
    pub(super) access: watch::Receiver<Arc<Tokens>>,
    reads: Arc<Reads>,
    pub(super) snapshots: Arc<Mutex<Snapshots>>,
    pub(super) feed: Feed,
    pub(super) channels: Channels,
    numbers: Arc<Numbers>,
    /// Callers that disconnected while they waited.
    gone: mpsc::Sender<In>,
    last_call: Arc<AtomicU64>,
}

/// The loop's side of a [`Handle`].
#[derive(Debug)]
pub struct Desk {
    pub asks: mpsc::Receiver<Ask>,
    pub chunks: mpsc::Receiver<CallChunk>,
    pub peers: mpsc::Receiver<PeerAsk>,
    pub signs: Signs,
    pub reads: Arc<Reads>,
    pub numbers: Arc<Numbers>,
    pub feed: feed::FeedWriter,
    pub channels: channels::Keeper,
    pub gone: mpsc::Receiver<In>,
}

/// The values that the loop publishes to every holder of a handle.
#[derive(Debug)]
pub struct Signs {
    pulse: Arc<Pulse>,
    leadership: watch::Sender<Leadership>,
    pub(super) access: watch::Sender<Arc<Tokens>>,
}

/// Creates a handle, and the desk where its calls arrive. Each queue has room for `room` entries.
pub fn channel(room: usize, snapshots: Arc<Mutex<Snapshots>>) -> (Handle, Desk) {
    let (asks, asked) = mpsc::channel(room);
    let (chunks, gathered) = mpsc::channel(CHUNKS_MOST);
    let (peers, called) = mpsc::channel(room);
    let (tell, leadership) = watch::channel(Leadership::default());
    let (let_in, access) = watch::channel(Arc::default());
    let pulse = Arc::new(Pulse::default());
    let ((feed, writer), (channels, keeper)) = (feed::feed(), channels::channels());
    let signs = Signs { pulse: pulse.clone(), leadership: tell, access: let_in };
    let (gone, departed) = mpsc::channel(GONE_MOST);
    let numbers = Arc::new(Numbers::default());
    let reads = Arc::new(Reads::default());
    let desk = Desk {
        asks: asked,
        chunks: gathered,
        peers: called,
        signs,
        reads: reads.clone(),
        numbers: numbers.clone(),
        feed: writer,
        channels: keeper,
        gone: departed,
    };
    let last_call = Arc::default();
    let room = Arc::new(Semaphore::new(CHUNKS_MOST));
    (
        Handle {
            asks,
            chunks,
            room,
            peers,
            pulse,
            leadership,
            access,
            reads,
            snapshots,
            feed,
            channels,
            numbers,
            gone,
            last_call,
        },
        desk,
    )
}

impl Signs {
    /// Publishes the leader and the applied index. This runs after every input, so those who wait for a change of leader are
    /// woken only by a change.
    pub fn show(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.pulse.set(leader, epoch, applied);
        let now = Leadership { leader, epoch };
        // The reason why there was no leader ends with that time.
        if self.leadership.send_if_modified(|before| std::mem::replace(before, now) != now) {
            self.pulse.advise(None);
        }
    }

    pub fn advise(&self, advice: Option<String>) {
        self.pulse.advise(advice);
    }

    pub fn refuse_writes(&self, disk_full: bool, service_down: bool) {
        self.pulse.refuse_writes(disk_full, service_down);
    }
}

impl Desk {
    pub fn show(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.signs.show(leader, epoch, applied);
    }
}

/// The leader as this node sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub leader: Option<NodeId>,
    pub epoch: Epoch,
}

/// A message from another node, verified and decoded.
#[derive(Debug)]
pub struct PeerCall {
    pub envelope: Envelope,
    /// The lines of the message's records, as they were in the body.
    pub lines: Encoded,
    /// The state that came with the message as a stream.
    pub brought: Option<PeerState>,
}

/// A state from a peer. It is streamed, read and checked before the loop receives the message that it belongs to.
#[derive(Debug)]
pub enum PeerState {
    /// The snapshot is already written to disk, and read into a store.
    Snapshot(Box<(Incoming, Store)>),
    Difference(Box<SentDifference>),
}

/// One call to the loop: for the replica to decide, or read-only.
#[derive(Debug)]
pub enum Ask {
    Call {
        id: CallId,
        call: Call,
        to: To,
    },
    /// Asks for the state, on behalf of all reads of this level that wait (`reads.rs`).
    Read {
        id: CallId,
        level: Level,
        readers: Readers,
    },
    IsLeader(oneshot::Sender<IsLeader>),
    /// Asks whether an earlier attempt of a call is in the log, or was carried out.
    MayHaveBeen {
        call: KeyedCall,
        reply: oneshot::Sender<bool>,
    },
    Opinion {
        candidate: NodeId,
        reply: oneshot::Sender<Opinion>,
    },
    CatchUp {
        snapshot_id: u64,
        reply: Reply<CatchUp>,
    },
    /// Asks for the remaining time of each lease, and the number of callers that wait for it.
    LeaseTimes {
        names: Vec<LeaseName>,
        reply: oneshot::Sender<Option<LeaseTimes>>,
    },
    /// Asks for the first callers that wait for a role.
    Waiters {
        role: Text,
        most: usize,
        reply: oneshot::Sender<Option<Vec<(Text, i64)>>>,
    },
    Status(oneshot::Sender<Status>),
    Explain(oneshot::Sender<Explained>),
    /// Asks for the recent events of a role.
    Turns {
        role: Text,
        reply: oneshot::Sender<Vec<String>>,
    },
    Measures(oneshot::Sender<Measures>),
}

/// A peer's message, and the channel for the answer to it.
#[derive(Debug)]
pub struct PeerAsk {
    pub call: PeerCall,
    pub reply: oneshot::Sender<Option<Packet>>,
}

impl Handle {
    /// Proposes a command and waits for a majority.
    pub async fn write(&self, command: Command, key: Option<KeyedCall>) -> Result<Written, Denied> {
        let began = Instant::now();
        let written = self.call(Call::Write { command: Box::new(command), key }, To::Written).await?;
        self.numbers.commits.observe(began.elapsed());
        Ok(written)
    }

    /// Returns the permit for one chunk. The caller must check its client's token again after the wait. The semaphore is never
    /// closed, so a permit becomes free in the end.
    pub async fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().acquire_owned().await.ok()
    }

    /// Proposes commands in their order, before the commands of any chunk that is proposed after this returns. A single call may
    /// overtake them, because the loop takes the single calls of a batch first. They are not a transaction: each command has its
    /// own verdict.
    pub fn propose(&self, writes: Vec<Keyed>, room: Option<OwnedSemaphorePermit>) -> Verdicts {
        let count = writes.len();
        let Some(room) = room else {
            return Verdicts::new(count, Err(Denied::Stopping), self.numbers.clone());
        };
        let (reply, answer) = oneshot::channel();
        let call = |(command, key)| Call::Write { command: Box::new(command), key };
        let chunk = CallChunk {
            first: self.next_calls(count),
            calls: writes.into_iter().map(call).collect(),
            gathering: Gathering::new(count, reply, room),
        };
        let sent = self.chunks.try_send(chunk).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                Denied::TooMany { bound: "chunks of lines waiting for the node" }
            }
            mpsc::error::TrySendError::Closed(_) => Denied::Stopping,
        });
        Verdicts::new(count, sent.map(|()| answer), self.numbers.clone())
    }

    /// Returns when the loop has ended.
    pub async fn ended(&self) {
        self.chunks.closed().await;
    }

    /// Replaces all data by the result of these steps. A restore that fails half-way changes nothing.
    pub async fn restore(&self, document: Steps) -> Result<Written, Denied> {
        self.call(Call::Restore(document), To::Written).await
    }

    pub async fn read(&self, level: Level) -> Result<Arc<View>, Denied> {
        if level == Level::Local
            && let Some(view) = self.reads.latest()
        {
            return Ok(view);
        }
        let ask = |readers| self.queue(Ask::Read { id: self.next_call(), level, readers });
        let mut answer = self.reads.join(level, ask)?;
        match answer.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(answer)) => answer.clone(),
            // The loop has ended with the call.
            _ => Err(Denied::Stopping),
        }
    }

    /// Returns the age of a state that a local read shows.
    pub fn age_ms(&self, view: &View) -> u64 {
        view.age_ms(clock::now().mono)
    }

    /// Returns whether this node leads, checked against the lease at the moment of the answer. If leases lapse between two beats, a round
    /// proves the lease first.
    pub async fn is_leader(&self) -> bool {
        if self.whether_leader().await == IsLeader::Unproven {
            let _ = tokio::time::timeout(PROOF_MOST, self.read(Level::Linear)).await;
        }
        self.whether_leader().await == IsLeader::Yes
    }

    async fn whether_leader(&self) -> IsLeader {
        self.tell(Ask::IsLeader).await.unwrap_or(IsLeader::No)
    }

    /// Returns whether an earlier attempt of this call may have been carried out, or may still be. If this is unknown, the result
    /// is true. Only a false result lets the caller say that its call is surely not applied (P15).
    pub async fn may_have_been(&self, call: KeyedCall) -> bool {
        self.tell(|reply| Ask::MayHaveBeen { call, reply }).await.unwrap_or(true)
    }

    /// Hands leadership to this node, or to the best heir; returns when that is done.
    pub async fn hand_over(&self, to: Option<NodeId>, reason: HandOverReason) -> Result<(), Denied> {
        self.call(Call::HandOver { to, reason }, To::Done).await
    }

    pub async fn service(&self, change: ServiceChange) -> Result<(), Denied> {
        self.call(Call::Service(change), To::Done).await
    }

    pub async fn change_members(&self, change: MemberChange) -> Result<(), Denied> {
        self.call(Call::ChangeMembers(change), To::Done).await
    }

    pub async fn form(&self, without: BTreeSet<NodeId>) -> Result<(), Denied> {
        self.call(Call::Form { without }, To::Done).await
    }

    pub async fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        self.ask(|reply| Ask::CatchUp { snapshot_id, reply }).await
    }

    /// The counters that are updated while the node runs.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// Gives a peer's message to the loop. Returns the answer when it may leave, or None if there is no answer or if a newer call of that
    /// peer has replaced this one. The caller bounds the wait.
    pub async fn peer(&self, call: PeerCall) -> Option<Packet> {
        let (reply, answer) = oneshot::channel();
        self.peers.send(PeerAsk { call, reply }).await.ok()?;
        answer.await.ok().flatten()
    }

    /// Hands over leadership if this node leads, and ends the loop. Returns when the loop has ended. The order waits for room:
    /// clients that fill the queue cannot keep a node from stopping.
    pub async fn stop(&self) {
        let stop = Ask::Call { id: self.next_call(), call: Call::Stop, to: To::Nobody };
        if self.asks.send(stop).await.is_ok() {
            self.asks.closed().await;
        }
    }

    /// Opens the place where a snapshot from a peer is written. A snapshot that is being written may hold the lock, so a blocking
    /// thread waits for it.
    pub async fn importer(&self) -> Result<Importer, SnapshotError> {
        let snapshots = self.snapshots.clone();
        let opening = move || snapshots.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).importer();
        match tokio::task::spawn_blocking(opening).await {
            Ok(importer) => importer,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// The values in every response's headers, readable without a call to the loop.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The feed of events, for readers.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Messages to the listeners at this node.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    fn next_call(&self) -> CallId {
        self.next_calls(1)
    }

    /// Reserves `count` consecutive numbers, and returns the first. They are reserved in one step, because the answers of a chunk
    /// are found by their distance from its first number.
    fn next_calls(&self, count: usize) -> CallId {
        CallId(self.last_call.fetch_add(count as u64, Ordering::Relaxed) + 1)
    }

    /// Makes a call that the replica decides.
    pub(super) async fn call<T>(&self, call: Call, to: impl FnOnce(Reply<T>) -> To) -> Result<T, Denied> {
        let id = self.next_call();
        self.ask(|reply| Ask::Call { id, call, to: to(reply) }).await
    }

    /// Makes a call for a role, which may wait. If the caller disconnects, the loop is informed. Otherwise the caller could still
    /// be granted the role, which would then be lost to all others for a ttl (P41).
    pub(super) async fn wait(&self, acquire: Acquire) -> Result<Granted<Role>, Denied> {
        let id = self.next_call();
        let (caller, to) = RoleCaller::new(id, self.gone.clone());
        self.queue(Ask::Call { id, call: Call::Acquire(acquire.into()), to })?;
        caller.answer().await
    }

    async fn ask<T>(&self, ask: impl FnOnce(Reply<T>) -> Ask) -> Result<T, Denied> {
        let (reply, answer) = oneshot::channel();
        self.queue(ask(reply))?;
        answer.await.unwrap_or(Err(Denied::Unknown))
    }

    fn queue(&self, ask: Ask) -> Result<(), Denied> {
        self.asks.try_send(ask).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Denied::TooMany { bound: "calls waiting for the node" },
            mpsc::error::TrySendError::Closed(_) => Denied::Stopping,
        })
    }

    /// Makes a call that must not be refused when clients fill the queue: it waits for room.
    pub(super) async fn tell<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.ok()?;
        answer.await.ok()
    }
}

// Calls about roles and processes, from other threads.
impl Handle {
    /// Acquires a role. If another process holds it, the call waits as long as it says.
    pub async fn acquire(
        &self,
        role: Text,
        claim: Arc<RoleClaim>,
        priority: i64,
        wait: Span,
        by: Option<TokenId>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono + wait;
        self.wait(Acquire { role, claim, elect: false, priority, until, by, key }).await
    }

    /// An operator gives the role to this process, no matter which process held it.
    pub async fn name_holder(
        &self,
        role: Text,
        claim: Arc<RoleClaim>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono;
        let acquire = Acquire { role, claim, elect: true, priority: 0, until, by: None, key };
        self.wait(acquire).await
    }

    pub async fn renew_role(&self, role: Text, tenure: Tenure) -> Result<Granted<Role>, Denied> {
        self.call(Call::Renew(Renewal::Role { role, tenure }), To::Role).await
    }

    /// The connection that the holder relies on has closed.
    pub async fn untie_role(&self, role: Text, tenure: Tenure, tie: u64) -> Result<(), Denied> {
        self.call(Call::Untie(Untie { role, tenure, tie }), To::Done).await
    }

    pub async fn renew_process(
        &self,
        id: Text,
        secret: Option<SecretHash>,
    ) -> Result<Granted<Process>, Denied> {
        self.call(Call::Renew(Renewal::Process { id, secret }), To::Process).await
    }

    /// Renews a document that has a ttl.
    pub async fn renew_doc(&self, key: Text, condition: DocCondition) -> Result<Granted<DocView>, Denied> {
        self.call(Call::Renew(Renewal::Doc { key, condition }), To::Doc).await
    }

    pub async fn register(
        &self,
        id: Text,
        process: Arc<NewProcess>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Process>, Denied> {
        self.call(Call::Register(Registration { id, process, key }), To::Process).await
    }

    /// Returns None if this node does not lead.
    pub async fn lease_times(&self, names: Vec<LeaseName>) -> Option<LeaseTimes> {
        self.tell(|reply| Ask::LeaseTimes { names, reply }).await.flatten()
    }

    /// Returns the first callers that wait for a role, each with its priority; None if this node does not lead.
    pub async fn waiters(&self, role: Text, most: usize) -> Option<Vec<(Text, i64)>> {
        self.tell(|reply| Ask::Waiters { role, most, reply }).await.flatten()
    }
}

impl Signs {
    /// Publishes the tokens of the store, before the record that created or revoked a token is shown as applied.
    pub fn let_in(&self, store: &Store) {
        self.access.send_if_modified(|tokens| {
            let news = tokens.changed_in(store);
            news.map(|news| *tokens = news.into()).is_some()
        });
    }
}

impl Handle {
    /// The valid tokens, as of the records that this node has applied.
    pub fn tokens(&self) -> Arc<Tokens> {
        self.access.borrow().clone()
    }

    /// Notifies of each change of the tokens; closed when the node ends.
    pub fn access(&self) -> watch::Receiver<Arc<Tokens>> {
        self.access.clone()
    }

    /// This node's own wall clock, to decide whether a token has expired.
    pub fn wall(&self) -> WallTime {
        clock::now().wall
    }
}

/// A page size beyond any table.
const ALL: usize = usize::MAX;

/// The valid tokens: a copy of the state's table (P56). It is rebuilt with each change of the table, which is rare.
#[derive(Debug, Default)]
pub struct Tokens {
    digest: u64,
    by_id: BTreeMap<TokenId, Token>,
}

impl Tokens {
    /// Returns None if the table has not changed. This runs after every input of the loop, so a digest tells first whether there
    /// is anything to copy.
    pub fn changed_in(&self, store: &Store) -> Option<Tokens> {
        let digest = store.tokens_digest();
        if digest == self.digest {
            return None;
        }
        let mut by_id = BTreeMap::new();
        loop {
            let after = by_id.last_key_value().map(|(id, _)| *id);
            let page = store.tokens(after, ALL);
            by_id.extend(page.items.into_iter().map(|view| (view.id, view.token)));
            if page.next.is_none() {
                return Some(Tokens { digest, by_id });
            }
        }
    }

    /// Returns whether this token is still valid; if not, why.
    pub fn judge(&self, id: TokenId, now: WallTime) -> Result<(), &'static str> {
        match self.by_id.get(&id) {
            None => Err("the token was revoked"),
            Some(token) if token.has_ended(now) => Err("the token has expired"),
            Some(_) => Ok(()),
        }
    }

    pub fn get(&self, id: TokenId) -> Option<&Token> {
        self.by_id.get(&id)
    }
}
