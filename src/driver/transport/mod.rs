//! Peers over HTTP: what leaves, what comes back in the responses, and whether a peer's process lives.
//!
//! The contract is weak on purpose: a message may be dropped, repeated, reordered or late. What the transport
//! does promise: nothing waits without a bound, appends to one peer leave in order, a full queue drops the
//! oldest, and a dead process is noticed at once where its port refuses.
//!
//! ```text
//!   core ── Send ──► control  (two calls at a time)  ─┐
//!           Append ► log      (one call at a time)   ─┼─► POST ──► response ──► Arrived::Call
//!           states ► bulk     (one of a kind at a time)  ┘
//!                    watch    (an idle connection)  ────────────► Arrived::Refused
//! ```

mod bulk;
mod link;
mod log;
mod outbox;
mod post;
mod wall;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::api::PeerCall;
use super::setup::Setup;
use crate::types::NodeId;
use crate::wire::Parcel;
pub use bulk::Cargo;
use link::Link;
pub use link::{Freight, Lane, Packed};
pub use log::LogParcel;
pub use wall::Wall;

/// What the network tells the loop.
#[derive(Debug)]
pub enum Arrived {
    /// A message in a response.
    Call(Box<PeerCall>),
    /// Nothing listens where that peer should: its process is dead.
    Refused(NodeId),
}

/// Messages from responses that wait for the loop. Beyond it the calls that bring them wait.
const ARRIVED_MOST: usize = 1024;

/// Every peer's links. Owned by the loop.
#[derive(Debug)]
pub struct Network {
    links: BTreeMap<NodeId, Arc<Link>>,
}

impl Network {
    /// Starts the links' tasks on the current runtime.
    pub fn start(setup: &Arc<Setup>) -> Result<(Network, mpsc::Receiver<Arrived>), reqwest::Error> {
        let (tell, arrived) = mpsc::channel(ARRIVED_MOST);
        let client = post::client(&setup.settings.timing)?;
        let links = setup.others().map(|member| {
            let link = Link::start(setup.clone(), member.clone(), client.clone(), tell.clone());
            (member.id, link)
        });
        Ok((Network { links: links.collect() }, arrived))
    }

    pub fn send(&self, parcel: Parcel) {
        if let Some(link) = self.links.get(&parcel.sender.to) {
            link.control.push(parcel);
        }
    }

    pub fn send_log(&self, to: NodeId, parcel: LogParcel) {
        if let Some(link) = self.links.get(&to) {
            link.log.push(parcel);
        }
    }

    /// The way for a state to that peer, unless one of its kind is on it already.
    pub fn lane(&self, to: NodeId, freight: Freight) -> Option<Lane> {
        self.links.get(&to)?.lane(freight)
    }

    pub fn is_busy(&self, to: NodeId, freight: Freight) -> bool {
        self.links.get(&to).is_some_and(|link| link.is_busy(freight))
    }

    pub fn probe(&self, peer: NodeId) {
        if let Some(link) = self.links.get(&peer) {
            link.watch.probe();
        }
    }

    pub fn is_reachable(&self, peer: NodeId) -> bool {
        self.links.get(&peer).is_some_and(|link| link.watch.is_connected())
    }

    /// Why calls to that peer are refused, in its own words.
    pub fn trouble(&self, peer: NodeId) -> Option<String> {
        self.links.get(&peer).and_then(|link| link.trouble())
    }
}
