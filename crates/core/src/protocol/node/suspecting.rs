//! Reasons to give up a leader (P3): silence, a dead process, or its own word. Each node decides for
//! itself; a claim against a leader that still seems alive makes the node probe the leader (C28).

use super::Node;
use crate::protocol::messages::{Cause, Envelope, Term};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::peers::Life;
use crate::types::{Epoch, NodeId};

impl Node {
    /// Notes which node sent a message, and whether it is still the known process of that node.
    pub(super) fn meet(&mut self, envelope: &Envelope) {
        let from = envelope.from;
        let leads = self.is_led_by(from);
        let (now, timing) = (self.core.now.mono, &self.core.settings.timing);
        let Some(peer) = self.core.peers.get_mut(from) else {
            return;
        };
        let replaced = peer.incarnation != envelope.incarnation;
        peer.incarnation = envelope.incarnation;
        peer.admitted = envelope.admitted || (peer.admitted && !replaced);
        peer.format = peer.format.max(envelope.format);
        let hold = peer.hold;
        let life = peer.heard(envelope.boot, leads, now, timing);
        let held = peer.hold.grown_since(hold, now);
        self.core.note_hold(from, held);
        if let Some((leading, core)) = self.leading_mut()
            && (replaced || life != Life::Known)
        {
            leading.forget_progress(core, from, replaced);
            leading.note_new_process(now, replaced);
        }
        if life == Life::New {
            let another_disk = replaced && mutant::is_on(Mutant::GrantsEndWithNewDisk);
            if another_disk || mutant::is_on(Mutant::NewProcessVoidsGrants) {
                self.core.grants.void(from, envelope.incarnation);
            }
            // The grant stands: the message may be a late one from an older boot, and the process that relies on the grant may
            // live.
            self.suspect_if_leader(from, Cause::NewProcess);
        }
    }

    /// A port that refuses proves that no process listens. It does not prove that the old one has
    /// stopped believing in its lease (a firewall refuses too), so the grant stands (P11).
    pub(super) fn on_peer_refused(&mut self, peer: NodeId) {
        let (now, timing) = (self.core.now.mono, &self.core.settings.timing);
        let Some(known) = self.core.peers.get_mut(peer) else {
            return;
        };
        let hold = known.hold;
        known.refuses(now, timing);
        let held = known.hold.grown_since(hold, now);
        self.core.note_hold(peer, held);
        if let Some((seeking, _)) = self.seeking_mut() {
            seeking.forget(peer);
        }
        if let Some((leading, core)) = self.leading_mut() {
            leading.forget_progress(core, peer, false);
        }
        self.suspect_if_leader(peer, Cause::Refused);
    }

    pub(super) fn on_resigned(&mut self, from: NodeId, epoch: Epoch) {
        if epoch.leader != from {
            return;
        }
        self.core.epochs.end(epoch);
        let promise = self.core.promise();
        // `void` ends all grants to that leader on that disk. This message may be late, and that node may lead again, so `void`
        // is called only if no grant can be of a later epoch. No grant is of an epoch above the promise.
        if epoch >= promise {
            self.core.grants.void(from, self.core.disk_of(from));
        }
        if epoch == promise {
            self.suspect_if_leader(from, Cause::Resigned);
        }
    }

    /// The promise of another node is greater than the epoch that this node spoke for.
    pub(super) fn on_stale(&mut self, promise: Term) {
        self.core.epochs.hear_of(promise.epoch);
        self.reclaim_if_outdated(promise);
    }

    /// A follower gives up a silent leader, or the candidate that it approved if one window has brought no
    /// progress (P3, P8).
    pub(super) fn settle_following(&mut self) {
        if let Some(following) = self.following()
            && self.core.mono() >= following.deadline(&self.core)
        {
            let cause = if following.is_awaiting() { Cause::NoDecision } else { Cause::Silence };
            self.suspect(cause);
        }
    }

    fn suspect_if_leader(&mut self, peer: NodeId, cause: Cause) {
        if self.is_led_by(peer) {
            self.suspect(cause);
        }
    }

    fn is_led_by(&self, peer: NodeId) -> bool {
        self.following().is_some_and(|following| following.leader() == peer)
    }
}
