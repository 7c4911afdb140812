//! The knowledge of this node about each other node: its process, its disk, and how steadily it lives.

use std::collections::BTreeMap;

use super::mutant::{self, Mutant};
use super::settings::Timing;
use crate::types::{Boot, Format, Incarnation, NodeId, Span, Time};

/// Room for all members of a cluster (101 at most), and for as many nodes that have replaced them. Messages
/// of further nodes are ignored, so strangers cannot fill the memory.
const KNOWN_MOST: usize = 256;

/// The patience with a leader that falters is at most this many times `dead_after`. It bounds how much later
/// than usual a dead leader is noticed (P3).
const PATIENCE_MOST: u64 = 4;

/// The hold on a node that keeps dying: others come before it for a time that doubles with each death (P20).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hold {
    deaths: u32,
    last_death: Time,
    until: Time,
}

impl Hold {
    pub fn died(&mut self, now: Time, timing: &Timing) {
        if mutant::is_on(Mutant::NoHold) {
            return;
        }
        if now.since(self.last_death) > timing.hold_most {
            self.deaths = 0;
        }
        self.deaths += 1;
        self.last_death = now;
        // The first death may be an accident; from the second on the node is on hold.
        if self.deaths >= 2 {
            // The bound on doublings only keeps the shift in range: usually `hold_most` ends the growth first.
            let doubled = timing.hold.times(1 << (self.deaths - 2).min(20));
            self.until = now + doubled.min(timing.hold_most);
        }
    }

    /// The node had its chance to lead and failed: others come first at once.
    pub fn failed(&mut self, now: Time, timing: &Timing) {
        self.deaths = self.deaths.max(1);
        self.last_death = self.last_death.max(now);
        self.died(now, timing);
    }

    pub fn lasts(&self, now: Time) -> bool {
        now < self.until
    }

    /// The time for which the node is held, if its hold was `before` until now and has become longer.
    pub fn grown_since(&self, before: Hold, now: Time) -> Option<Span> {
        (self.until > before.until && self.lasts(now)).then(|| self.until.since(now))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    pub boot: Boot,
    /// The previous boot: a late message from it does not show a new process.
    boot_before: Boot,
    pub incarnation: Incarnation,
    /// That disk has reported that its log has counted it (P10).
    pub admitted: bool,
    pub format: Format,
    /// The node's port refused a connection, and no message has come from it since.
    pub refused: bool,
    refused_at: Time,
    /// The last time at which the node showed a new process, broke a silence, or refused a connection.
    pub up_since: Time,
    pub last_message: Time,
    /// The time of its last message, if this node followed it at that time.
    beat_at: Option<Time>,
    /// While this peer led this node: the longest silence that the peer has broken lately, and the time at which it broke it.
    faltered: (Span, Time),
    pub hold: Hold,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peers {
    peers: BTreeMap<NodeId, Peer>,
}

/// The process of a message's sender, compared with the process known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Known,
    /// This is the first message from that node.
    First,
    /// Another process has sent this message: the process before it is dead (P3).
    New,
}

impl Peers {
    pub fn new(others: impl Iterator<Item = NodeId>) -> Peers {
        Peers { peers: others.map(|node| (node, Peer::default())).collect() }
    }

    /// Forgets all nodes but these, and adds those of them that are new.
    pub fn keep(&mut self, nodes: &[NodeId]) {
        self.peers.retain(|node, _| nodes.contains(node));
        for node in nodes {
            self.peers.entry(*node).or_default();
        }
    }

    /// A node that sends a message is known from then on, as far as there is room: the members may have changed without this node's
    /// knowledge.
    pub fn know(&mut self, node: NodeId) -> bool {
        let room = self.peers.len() < KNOWN_MOST || self.peers.contains_key(&node);
        if room {
            self.peers.entry(node).or_default();
        }
        room
    }

    pub fn get(&self, node: NodeId) -> Option<&Peer> {
        self.peers.get(&node)
    }

    pub fn get_mut(&mut self, node: NodeId) -> Option<&mut Peer> {
        self.peers.get_mut(&node)
    }

    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Peer)> {
        self.peers.iter().map(|(node, peer)| (*node, peer))
    }

    pub fn is_on_hold(&self, node: NodeId, now: Time) -> bool {
        self.get(node).is_some_and(|peer| peer.hold.lasts(now))
    }

    pub fn is_refused(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|peer| peer.refused)
    }
}

impl Peer {
    /// A silence that is longer than the greatest patience was a failure: no patience would cover it, so it is not remembered.
    fn broke_silence(&mut self, silence: Span, now: Time, timing: &Timing) {
        let ridden_out = silence <= timing.dead_after.times(PATIENCE_MOST);
        if ridden_out && silence >= self.faltered(now, timing) {
            self.faltered = (silence, now);
        }
    }

    fn faltered(&self, now: Time, timing: &Timing) -> Span {
        let (silence, at) = self.faltered;
        if now.since(at) > timing.falters_for() { Span::ZERO } else { silence }
    }

    /// The time for which this node waits for that node as its leader: twice that node's longest silence lately, within bounds
    /// (P3).
    pub fn patience(&self, now: Time, timing: &Timing) -> Span {
        let most = timing.dead_after.times(PATIENCE_MOST);
        if mutant::is_on(Mutant::FaltersForgotten) {
            return timing.dead_after;
        }
        self.faltered(now, timing).times(2).clamp(timing.dead_after, most)
    }

    /// Notes the process that a message came from. `leads`: that node leads, as far as this node knows.
    pub fn heard(&mut self, boot: Boot, leads: bool, now: Time, timing: &Timing) -> Life {
        if now.since(self.last_message) > timing.dead_after {
            self.up_since = now;
        }
        self.last_message = now;
        let beat_at = std::mem::replace(&mut self.beat_at, leads.then_some(now));
        if boot == self.boot
            && let Some(before) = beat_at
        {
            self.broke_silence(now.since(before), now, timing);
        }
        if boot == self.boot || boot == self.boot_before {
            self.refused &= boot != self.boot;
            return Life::Known;
        }
        let first = self.boot == Boot::default();
        // If the port refused connections before, that death has been counted already (P20).
        let unnoticed = !first && !self.refused;
        self.boot_before = self.boot;
        self.boot = boot;
        self.refused = false;
        self.up_since = now;
        match (first, unnoticed) {
            (true, _) => Life::First,
            (false, true) => {
                self.hold.died(now, timing);
                Life::New
            }
            (false, false) => Life::New,
        }
    }

    /// The node's port refuses connections: its process is dead.
    pub fn refuses(&mut self, now: Time, timing: &Timing) {
        if !self.refused && self.boot != Boot::default() {
            self.hold.died(now, timing);
        }
        self.refused = true;
        self.refused_at = now;
        self.up_since = now;
    }

    /// The node has answered a message that left at `sent`. After a refused connection this proves that a process listens there,
    /// even if a late message from an older boot has passed for the newest process.
    pub fn answered(&mut self, sent: Time) {
        self.refused &= sent <= self.refused_at || mutant::is_on(Mutant::RefusedUntilNamed);
    }
}
