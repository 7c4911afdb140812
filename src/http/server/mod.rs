//! The listener accepts connections, bounds their number, and gives each a separate task.
//!
//! - `sort` recognizes peers' connections, which are served apart from clients'; `tls` takes handshakes.
//! - `connection` serves a connection with hyper, and closes a silent one. `refusal` answers the connections that are not served.
//! - `front` is passed by every request first and by every response last. `call` reports a client's call to the audit log, the counters,
//!   the log and the collector of spans.
//! - `held` is the body of a response, whose memory is accounted for until its last piece has left.
//! - `scrapes` is a second listener, only for `/metrics`.
//!
//! ```text
//!   accept ─► a place ─► the first bytes ─┬─ a peer's ──► the loop's thread, or the peers' runtime ─┐
//!     │                                   └─ others ────► this runtime ─────────────────────────────┴─► tls ─► hyper ─► front
//!     └─ no place: a constant refusal, and the connection is closed
//! ```
//!
//! A connection has its place from the moment when it is accepted, before its first byte: sockets that stay
//! silent and handshakes that never end count, too. The place is given back when the connection's task ends.

mod call;
mod connection;
mod front;
mod held;
mod refusal;
mod scrapes;
mod sort;
mod tls;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use connection::{Builder, Phase, Served};
pub use front::Front;
use refusal::{Refusals, full};
pub use scrapes::serve_metrics;
use sort::{First, Lane};

use crate::http::admission::{ConnectionPlace, Origin, Sharers};
use crate::http::request::{Context, FAREWELL};

/// Connections beyond the limit, for each other node: its messages, its watch and its forwarded calls must
/// get through when clients have taken all other connections. A peer's address may go beyond its own share
/// and beyond the limit of all by the sum for all other nodes.
const RESERVE_EACH: usize = 64;

/// Connections on the peers' runtime for each other node: for calls over TLS, from addresses that are not known, and with states.
/// Further ones are served like clients'.
const PEERS_EACH: usize = 64;

/// Connections on the loop's thread for each other node: twice the number that a node keeps to another. Further ones go to the peers'
/// runtime.
const LOOP_EACH: usize = 16;

/// Without free file descriptors every accept fails at once; some descriptors become free during the pause. The accept loop
/// itself waits, so that it does not log thousands of failures in a second.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The time for open calls when the server stops. Clients time out later; supervisors kill later.
/// Beyond it the remaining calls are cut off without an answer: the clients of writes treat them as unknown.
const DRAIN_MOST: Duration = Duration::from_secs(5);

struct Server {
    front: Arc<Front>,
    builder: Arc<Builder>,
    refusals: Refusals,
    phase: watch::Sender<Phase>,
    lanes: Lanes,
}

/// The runtimes of peers' connections.
#[derive(Clone, Debug)]
pub struct Runtimes {
    pub peers: Handle,
    /// The loop's own thread.
    pub of_loop: Handle,
}

/// The lanes for peers' connections, each with the number of its connections.
#[derive(Clone)]
struct Lanes {
    runtimes: Runtimes,
    of_peers: Arc<AtomicUsize>,
    of_loop: Arc<AtomicUsize>,
}

impl Lanes {
    fn new(runtimes: Runtimes) -> Lanes {
        Lanes { runtimes, of_peers: Arc::default(), of_loop: Arc::default() }
    }

    /// Takes a place for a connection with these first bytes. `others` is the number of other nodes. Returns None for a connection that
    /// is served like a client's, on this runtime.
    fn take(&self, first: First, from: Address, others: usize) -> Option<(Slot, Lane, Handle)> {
        let (clients, Runtimes { peers, of_loop }) = (Handle::current(), self.runtimes.clone());
        if first == (First::Peer { short: true })
            && from == Address::OfMember
            && let Some(seat) = Slot::below(&self.of_loop, LOOP_EACH * others)
        {
            return Some((seat, Lane::Loop { peers }, of_loop));
        }
        let is_peers = match first {
            First::Client => false,
            First::Peer { .. } => true,
            // The handshake is up to the runtime that serves the connection. Before it only the address is known.
            First::Tls => from == Address::OfMember,
        };
        let most = peers_most(others, from != Address::Unknown);
        let seat = is_peers.then(|| Slot::below(&self.of_peers, most)).flatten()?;
        Some((seat, Lane::Peers { clients }, peers))
    }
}

/// The address that a connection comes from, as far as this node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Address {
    /// The topology or the log lists it.
    OfMember,
    /// A node has proved itself from there. It may be the address of a device that many share.
    OfProof,
    Unknown,
}

/// Serves until `stop` completes, then answers open calls, waits for roles that are given back, and returns. The listener closes at once,
/// so that the others learn that this node is gone. Clients' calls are answered on the runtime of the caller.
pub async fn serve(
    listener: TcpListener,
    context: Arc<Context>,
    runtimes: Runtimes,
    stop: impl Future,
) -> io::Result<()> {
    let server = Server::new(context, runtimes);
    {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                accepted = listener.accept() => server.accept(accepted).await,
                _ = stop.as_mut() => break,
            }
        }
    }
    drop(listener);
    server.drain().await;
    Ok(())
}

/// A slot that counts itself for as long as it lives.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// The count is raised before it is compared, so two connections at once never share the last place.
    /// Beyond the limit the slot is dropped at once, which takes the count back.
    fn below(counter: &Arc<AtomicUsize>, most: usize) -> Option<Slot> {
        let before = counter.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(counter.clone());
        (before < most).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the limit of connections on the peers' runtime. Any client can write a head that looks like a peer's. So half of the places are
/// left to callers that are `known` as peers, by their address or by a proof that came from there.
fn peers_most(others: usize, known: bool) -> usize {
    let most = PEERS_EACH * others;
    if known { most } else { most / 2 }
}

impl Server {
    fn new(context: Arc<Context>, runtimes: Runtimes) -> Server {
        let builder = Arc::new(connection::builder(&context));
        let front = Arc::new(Front::new(context));
        let (refusals, phase) = (Refusals::new(), watch::Sender::new(Phase::Serving));
        Server { front, builder, refusals, phase, lanes: Lanes::new(runtimes) }
    }

    async fn accept(&self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            // The client has gone before its connection was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) =>
            {
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                return sleep(ACCEPT_PAUSE).await;
            }
        };
        // Without this option small responses wait for acknowledgements of others; a failure costs no more than that.
        let _ = stream.set_nodelay(true);
        let extra = RESERVE_EACH * self.front.context.setup.known().members.len().saturating_sub(1);
        let by_address = self.is_peer(from.ip());
        match self.front.context.callers.place(from.ip(), by_address, extra) {
            Some(place) => self.spawn(stream, place, by_address),
            None => {
                let says = full(self.front.context.setup.tls.as_ref());
                self.refusals.tell(stream, Sharers::at(Origin::of(from.ip())), says);
            }
        }
    }

    /// Recognizes a peer by its address. A peer that the topology lists by a name proves itself, if there is a secret.
    fn is_peer(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        let others = self.front.context.setup.others();
        others.iter().any(|member| member.host.parse::<IpAddr>().is_ok_and(|ip| ip == from))
    }

    /// `by_address`: the connection comes from a peer's address.
    fn spawn(&self, stream: TcpStream, place: ConnectionPlace, by_address: bool) {
        let (front, builder, phase) = (self.front.clone(), self.builder.clone(), self.phase.subscribe());
        let mut served = Served { front, builder, phase, place, lane: Lane::Clients };
        let lanes = self.lanes.clone();
        tokio::spawn(async move {
            // A separate receiver, so that the connection also notices the end.
            let mut ends = served.phase.clone();
            let patience = served.head_timeout();
            // The first bytes are only looked at here, so nothing is lost if another runtime serves the
            // connection.
            let Some(first) = sort::first(&stream, ends.changed(), patience).await else {
                return;
            };
            let from = match by_address {
                true => Address::OfMember,
                false if served.place.caller.is_peer() => Address::OfProof,
                false => Address::Unknown,
            };
            let others = served.front.context.setup.others().len();
            let Some((seat, lane, runtime)) = lanes.take(first, from, others) else {
                return connection::run(stream, served).await;
            };
            // A socket is registered with the runtime that accepted it. It is taken out of this one and
            // registered with the other one; if that fails the connection is closed, and the peer dials
            // again.
            served.lane = lane;
            let Ok(stream) = stream.into_std() else { return };
            runtime.spawn(async move {
                if let Ok(stream) = TcpStream::from_std(stream) {
                    connection::run(stream, served).await;
                }
                drop(seat);
            });
        });
    }

    async fn drain(self) {
        self.phase.send_replace(Phase::Draining);
        // Each connection keeps a receiver, so the channel is closed when the last connection has ended.
        if timeout(DRAIN_MOST, self.phase.closed()).await.is_err() {
            tracing::warn!("some calls were still in progress and were aborted");
            self.phase.send_replace(Phase::Over);
        }
        // A stream gives its role back after its connection has ended.
        let _ = timeout(FAREWELL, self.front.context.farewells.closed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_like_a_peer_leaves_places_to_those_who_are() {
        let taken = Arc::new(AtomicUsize::new(0));
        let strangers: Vec<Slot> = std::iter::from_fn(|| Slot::below(&taken, peers_most(2, false))).collect();
        assert_eq!(strangers.len(), PEERS_EACH);
        let peers: Vec<Slot> = std::iter::from_fn(|| Slot::below(&taken, peers_most(2, true))).collect();
        assert_eq!(peers.len(), PEERS_EACH);
    }

    #[tokio::test]
    async fn a_place_in_the_loops_lane_comes_back() {
        let lanes = Lanes::new(Runtimes { peers: Handle::current(), of_loop: Handle::current() });
        let message = First::Peer { short: true };
        let take = |from| lanes.take(message, from, 1).expect("there is room");
        let mut taken: Vec<_> = (0..LOOP_EACH).map(|_| take(Address::OfMember)).collect();
        assert!(taken.iter().all(|(_, lane, _)| matches!(lane, Lane::Loop { .. })));
        assert!(matches!(take(Address::OfMember).1, Lane::Peers { .. }));
        taken.pop();
        assert!(matches!(take(Address::OfProof).1, Lane::Peers { .. }));
        assert!(matches!(take(Address::OfMember).1, Lane::Loop { .. }));
        let state = lanes.take(First::Peer { short: false }, Address::OfMember, 1).expect("there is room");
        assert!(matches!(state.1, Lane::Peers { .. }));
        assert!(lanes.take(First::Tls, Address::OfProof, 1).is_none());
        assert!(lanes.take(First::Client, Address::OfMember, 1).is_none());
    }
}
