//! Peers over HTTP: outgoing messages, messages in responses, and whether a peer's process lives.
//!
//! The contract is weak on purpose: a message may be dropped, repeated, reordered or late. The transport does promise this: nothing waits
//! without a bound, appends to one peer leave in order, a full queue drops the oldest message, and a dead process is noticed at once if
//! its port refuses.
//!
//! ```text
//!   engine ── small messages ─► control  (two calls at a time)     ─┐
//!             appends ────────► log      (one call at a time)      ─┼─► POST ──► response ──► Arrived::Call
//!             states ─────────► bulk     (one of a kind at a time) ─┘
//!                               watch    (an idle connection) ──────────────────────────────► Arrived::Refused
//! ```
//!
//! - `link` has everything that is sent to one peer, and the tasks that send it. Its queue `control` is in `outbox`, its queue of appends
//!   in `log`; `bulk` streams a state.
//! - `post` makes one call: headers, proof, time limit, and the message in the response.
//! - `watch` notices when a peer's process dies. `greeting` asks which node answers at an address, before the address goes into the log.
//!
//! The protocol needs two things of a transport (C30): a refused port is noticed at once, and a message is rather dropped than
//! delivered late. So each queue is short and drops the oldest, and each call has a time limit that grows only with its size and
//! the distance of the peer. No call is repeated here, except once for a new session: the protocol sends again what still
//! matters.

mod bulk;
mod greeting;
mod link;
mod log;
mod outbox;
mod post;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use eldest_tls::trusting_no_certificate;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::setup::Member;
use super::setup::Setup;
use crate::types::NodeId;
use crate::wire::Packet;
pub use bulk::TransferContent;
pub use greeting::{Stranger, greet};
use link::Link;
pub use link::{Packed, TransferKind, TransferPermit};
pub use log::LogPacket;
use post::Clients;
pub use post::{Arrived, cause};

/// The maximum number of messages from responses that wait for the loop. Beyond it the calls that bring them wait.
const ARRIVED_MOST: usize = 1024;
/// The time without an answer at one address before another address of the peer is tried. So a peer is tried at each address for
/// at least this long.
const ELSEWHERE_AFTER: Duration = Duration::from_secs(1);

/// The links to all peers. All threads read them, and only the loop changes them.
#[derive(Debug)]
pub struct Network {
    links: RwLock<BTreeMap<NodeId, Running>>,
    /// The clients for peers that do not use TLS.
    plain: Clients,
    tell: mpsc::Sender<Arrived>,
}

/// A link with its address and its tasks, which end with it.
#[derive(Debug)]
struct Running {
    link: Arc<Link>,
    /// The address where the peer belongs. It stays the same while the peer is called elsewhere, so that a change of other
    /// members leaves the link alone.
    home: String,
    /// The address where it is called now.
    authority: String,
    since: Instant,
    _tasks: JoinSet<()>,
}

impl Network {
    /// Starts the links' tasks on the current runtime.
    pub fn start(setup: &Arc<Setup>) -> Result<(Network, mpsc::Receiver<Arrived>), reqwest::Error> {
        let (tell, arrived) = mpsc::channel(ARRIVED_MOST);
        let client = || post::client(&setup.settings.timing, trusting_no_certificate());
        let plain = Clients::plain(client()?, client()?);
        let network = Network { links: RwLock::default(), plain, tell };
        network.follow(setup);
        Ok((network, arrived))
    }

    /// Follows the members after nodes were added, removed or moved. Must be called on the loop's runtime. A link is kept for as
    /// long as its member and the member's address stay: a new link would have no session, no connections and empty queues.
    pub fn follow(&self, setup: &Arc<Setup>) {
        let members = setup.others();
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        links.retain(|id, running| {
            members.iter().any(|member| member.id == *id && member.authority() == running.home)
        });
        for member in members {
            links.entry(member.id).or_insert_with(|| self.start_link(setup, &member, member.authority()));
        }
    }

    /// Tries another address of a peer that must be called and is not reached: the one in the topology file, or the one that the peer
    /// states. An address in the log can be wrong, and correcting it takes a majority (P43).
    pub fn look_elsewhere(&self, setup: &Arc<Setup>, peer: NodeId) {
        let lost = |running: &Running| {
            running.since.elapsed() > ELSEWHERE_AFTER && !running.link.is_answered(ELSEWHERE_AFTER)
        };
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        let Some((home, now)) = links
            .get(&peer)
            .filter(|running| lost(running))
            .map(|running| (running.home.clone(), running.authority.clone()))
        else {
            return;
        };
        drop(links);
        let places = setup.directory.places(peer);
        let at = places.iter().position(|place| place.authority() == now).map_or(0, |at| at + 1);
        // The addresses are tried in turn. After the last one the first is tried again.
        let Some(next) = places.get(at).or(places.first()).filter(|next| next.authority() != now) else {
            return;
        };
        tracing::debug!(
            peer = peer.0,
            not_at = now,
            at = next.authority(),
            "it cannot be reached there; its address has changed"
        );
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        links.insert(peer, self.start_link(setup, next, home));
    }

    /// A node has called that is not a member by this node's log. Its link ends when the members change the next time.
    pub fn meet(&self, setup: &Arc<Setup>, stranger: &Member) {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        links.entry(stranger.id).or_insert_with(|| self.start_link(setup, stranger, stranger.authority()));
    }

    pub fn knows(&self, node: NodeId) -> bool {
        self.links.read().unwrap_or_else(PoisonError::into_inner).contains_key(&node)
    }

    fn start_link(&self, setup: &Arc<Setup>, member: &Member, home: String) -> Running {
        let authority = member.authority();
        let (clients, tell) = (self.clients_for(setup, member.id), self.tell.clone());
        // A refused port shows that the peer's process is dead only if it is at the peer's own address.
        let (link, tasks) = Link::start(setup.clone(), member, authority == home, clients, tell);
        Running { link, home, authority, since: Instant::now(), _tasks: tasks }
    }

    /// Each peer is authenticated by its own certificate only, so each has its own client.
    fn clients_for(&self, setup: &Setup, peer: NodeId) -> Clients {
        let by_tls = setup.dialling().map(|certificates| certificates.dialling(Some(peer.0)));
        let client = by_tls.and_then(|tls| post::client(&setup.settings.timing, tls).ok());
        // The plain client trusts no certificate: a peer that should be called by TLS is not called without it.
        client.map_or_else(|| self.plain.clone(), Clients::single)
    }

    fn link(&self, to: NodeId) -> Option<Arc<Link>> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.get(&to).map(|running| running.link.clone())
    }

    /// Messages to a node without a link are dropped: the protocol sends again what still matters.
    pub fn send(&self, packet: Packet) {
        if let Some(link) = self.link(packet.sender.to) {
            link.control.push(packet);
        }
    }

    pub fn send_log(&self, to: NodeId, packet: LogPacket) {
        if let Some(link) = self.link(to) {
            link.log.push(packet);
        }
    }

    /// Returns the permit to send a state to that peer, unless one of its kind is being sent. A state is large, and a second one
    /// to the same peer would only slow down the first.
    pub fn permit(&self, to: NodeId, kind: TransferKind) -> Option<TransferPermit> {
        self.link(to)?.permit(kind)
    }

    pub fn is_busy(&self, to: NodeId, kind: TransferKind) -> bool {
        self.link(to).is_some_and(|link| link.is_busy(kind))
    }

    pub fn probe(&self, peer: NodeId) {
        if let Some(link) = self.link(peer) {
            link.watch.probe();
        }
    }

    pub fn is_reachable(&self, peer: NodeId) -> bool {
        self.link(peer).is_some_and(|link| link.watch.is_connected())
    }

    /// Returns the duration of the last successful dial to that peer, if there was one.
    pub fn round_trip(&self, peer: NodeId) -> Option<Duration> {
        self.link(peer).and_then(|link| link.watch.round_trip())
    }

    /// Returns why calls to that peer fail although a server answers them. `recent` is the time within which one must have failed.
    pub fn why_refused(&self, peer: NodeId, recent: Duration) -> Option<String> {
        self.link(peer).filter(|link| link.watch.is_connected())?.trouble_within(recent)
    }

    /// Returns why calls to that peer are refused, in the peer's words.
    pub fn trouble(&self, peer: NodeId) -> Option<String> {
        self.link(peer).and_then(|link| link.trouble())
    }
}
