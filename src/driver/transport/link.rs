//! Everything that is sent to one peer.
//!
//! Four tasks serve a link: two carry small messages, one carries appends, one watches the peer's port. So a large append delays
//! no heartbeat, and appends leave in order because one task sends them. States are sent by tasks of the engine, which need a
//! permit. All tasks of a link end when the link is replaced or removed; a state that is being sent ends by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::super::setup::Member;
use super::super::setup::Setup;
use super::bulk::{self, TransferContent};
use super::log::LogBox;
use super::outbox::Outbox;
use super::post::Arrived;
use super::post::{Clients, Fault, Poster};
use super::watch::Watch;
use crate::storage::snapshot::SnapshotError;
use crate::wire::Packet;

/// Small calls to one peer at a time: two, so that a heartbeat does not wait until a lost call times out.
const CONTROL_CALLS: usize = 2;

/// The number of calls in a row that must fail before a peer counts as absent: one may be lost, and the next one may leave much later.
const UNANSWERED_LEAST: u32 = 3;

/// The kinds of states that are sent to a peer, one of each kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    Snapshot,
    Merge,
    Override,
}

impl TransferKind {
    fn name(self) -> &'static str {
        match self {
            TransferKind::Snapshot => "snapshot",
            TransferKind::Merge => "merge",
            TransferKind::Override => "override",
        }
    }
}

/// Why calls fail although a server answers, in its words.
#[derive(Debug)]
struct Trouble {
    why: String,
    /// The last call that failed for it.
    at: Instant,
}

/// Consecutive calls that had no result.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    since: Option<Instant>,
    calls: u32,
}

impl Unanswered {
    fn add(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.calls = self.calls.saturating_add(1);
    }
}

/// The state to be sent, if there is one.
pub type Packed = Result<Option<(Packet, TransferContent)>, SnapshotError>;

/// The right to send one state. Dropping it frees the right for the next state.
#[derive(Debug)]
pub struct TransferPermit {
    link: Arc<Link>,
    kind: TransferKind,
    merge_bytes: u64,
}

#[derive(Debug)]
pub struct Link {
    pub control: Outbox,
    pub log: LogBox,
    pub watch: Watch,
    poster: Poster,
    /// The maximum size of a side's difference that the peer accepts in a merge.
    merge_bytes: u64,
    /// For each kind, whether a state is being sent.
    busy: [AtomicBool; 3],
    trouble: Mutex<Option<Trouble>>,
    unanswered: Mutex<Unanswered>,
    tell: mpsc::Sender<Arrived>,
}

impl Link {
    pub fn start(
        setup: Arc<Setup>,
        member: &Member,
        proves: bool,
        clients: Clients,
        tell: mpsc::Sender<Arrived>,
    ) -> (Arc<Link>, JoinSet<()>) {
        let timing = &setup.settings.timing;
        let link = Arc::new(Link {
            control: Outbox::default(),
            log: LogBox::new(setup.settings.limits.batch_bytes),
            watch: Watch::new(member.id, member.authority(), proves, timing, setup.wall.clone()),
            poster: Poster::new(setup.clone(), member, clients),
            merge_bytes: setup.settings.limits.merge_bytes,
            busy: Default::default(),
            trouble: Mutex::default(),
            unanswered: Mutex::default(),
            tell: tell.clone(),
        });
        let mut tasks = JoinSet::new();
        for _ in 0..CONTROL_CALLS {
            tasks.spawn(link.clone().carry_control());
        }
        tasks.spawn(link.clone().carry_log());
        let watching = link.clone();
        tasks.spawn(async move { watching.watch.run(tell).await });
        (link, tasks)
    }

    async fn carry_control(self: Arc<Link>) {
        loop {
            let packet = self.control.take().await;
            self.carry(&packet).await;
        }
    }

    async fn carry_log(self: Arc<Link>) {
        loop {
            let packet = self.log.take().await.into_packet();
            self.carry(&packet).await;
        }
    }

    /// A packet that fails is not sent again. The protocol repeats it if it still matters.
    async fn carry(&self, packet: &Packet) {
        let far = self.watch.round_trip().unwrap_or_default();
        match self.poster.post(packet, far).await {
            Ok(answer) => {
                self.note(None);
                *self.unanswered() = Unanswered::default();
                if let Some(call) = answer {
                    // The send fails only if the loop has ended; then the process is about to end.
                    let _ = self.tell.send(Arrived::Call(Box::new(call))).await;
                }
            }
            Err(fault) => self.failed(&fault),
        }
    }

    fn unanswered(&self) -> MutexGuard<'_, Unanswered> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the peer answers. Another server at its address also accepts connections, but is silent or answers something else.
    pub fn is_answered(&self, patience: Duration) -> bool {
        let Unanswered { since, calls } = *self.unanswered();
        let fails = since.is_some_and(|since| since.elapsed() > patience) && calls >= UNANSWERED_LEAST;
        self.watch.is_connected() && !fails
    }

    fn failed(&self, fault: &Fault) {
        self.unanswered().add();
        match fault {
            Fault::Unreachable(error) => {
                tracing::debug!(peer = self.poster.peer().0, %error, "call failed");
                if let Some(why) = eldest_tls::explain(error) {
                    self.note(Some(why));
                }
                // The watch finds out whether the port refuses: a dead leader is then given up at once (P3).
                if error.is_connect() {
                    self.watch.probe();
                }
            }
            Fault::Swallowed => self.watch.probe(),
            Fault::Refused(status, says) => self.note(Some(format!("{} {says}", status.as_u16()))),
            Fault::Unreadable(what) => self.note(Some(format!("unreadable: {what}"))),
        }
    }

    /// Notes why the peer refuses, and logs it once each time that the reason changes.
    fn note(&self, why: Option<String>) {
        let mut current = self.current_trouble();
        let before = current.take().map(|trouble| trouble.why);
        if before != why {
            match &why {
                Some(trouble) => {
                    tracing::warn!(peer = self.poster.peer().0, %trouble, "a peer refuses this node's calls")
                }
                None => tracing::info!(peer = self.poster.peer().0, "a peer accepts this node's calls again"),
            }
        }
        *current = why.map(|why| Trouble { why, at: Instant::now() });
    }

    pub fn trouble(&self) -> Option<String> {
        self.current_trouble().as_ref().map(|trouble| trouble.why.clone())
    }

    /// The trouble, if a call has failed for it within this time. The server may have ended since, or stand still.
    pub fn trouble_within(&self, time: Duration) -> Option<String> {
        let current = self.current_trouble();
        current.as_ref().filter(|trouble| trouble.at.elapsed() <= time).map(|trouble| trouble.why.clone())
    }

    fn current_trouble(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_busy(&self, kind: TransferKind) -> bool {
        self.busy[kind as usize].load(Ordering::Relaxed)
    }

    pub fn permit(self: &Arc<Link>, kind: TransferKind) -> Option<TransferPermit> {
        let taken = self.busy[kind as usize].swap(true, Ordering::Relaxed);
        (!taken).then(|| TransferPermit { link: self.clone(), kind, merge_bytes: self.merge_bytes })
    }
}

impl TransferPermit {
    /// Sends a prepared state, or logs why it could not be prepared.
    pub async fn send_packed(self, packed: Result<Packed, JoinError>) {
        match packed {
            // The peer would refuse such a large state.
            Ok(Ok(Some((_, content))))
                if self.kind == TransferKind::Merge && content.length() > self.merge_bytes =>
            {
                self.report_too_large(content.length()).await;
            }
            Ok(Ok(Some((packet, content)))) => self.send(&packet, content).await,
            Ok(Ok(None)) => tracing::error!("a peer needs a snapshot, and none exists"),
            Ok(Err(error)) => tracing::error!(%error, "cannot read the newest snapshot"),
            Err(error) => tracing::error!(%error, "cannot prepare the state transfer that a peer needs"),
        }
    }

    async fn send(&self, packet: &Packet, content: TransferContent) {
        let (bytes, what) = (content.length(), self.kind);
        let peer = self.link.poster.peer().0;
        tracing::info!(peer, bytes, what = what.name(), "sending a state");
        match bulk::send(&self.link.poster, packet, content).await {
            Ok(()) => tracing::info!(peer, bytes, what = what.name(), "the state was received"),
            Err(fault) => {
                self.link.failed(&fault);
                let too_large = matches!(&fault, Fault::Refused(StatusCode::PAYLOAD_TOO_LARGE, _));
                if too_large && what == TransferKind::Merge {
                    self.report_too_large(bytes).await;
                }
            }
        }
    }

    /// The replica then calls the merge off and says what to change. Otherwise both sides would hold their service forever (P48).
    async fn report_too_large(&self, bytes: u64) {
        let to = self.link.poster.peer();
        let _ = self.link.tell.send(Arrived::TooLarge { to, bytes }).await;
    }
}

impl Drop for TransferPermit {
    fn drop(&mut self) {
        self.link.busy[self.kind as usize].store(false, Ordering::Relaxed);
    }
}
