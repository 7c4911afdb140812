//! When a leader is given up (P3): silence, a dead process, or its own word. Each node decides for
//! itself; a claim against a leader that still seems alive makes the node look (C28).

use crate::protocol::messages::{Cause, Envelope, Event, Message, Output, Term};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Following, Life, Node, Role, Seeking};
use crate::types::{Epoch, NodeId, Time};

impl Node {
    /// Takes note of who sent a message, and of whether that is still the process we knew.
    pub(in crate::protocol) fn meet(&mut self, envelope: &Envelope) {
        let (now, timing) = (self.now.mono, &self.settings.timing);
        let from = envelope.from;
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let replaced = peer.incarnation != envelope.incarnation;
        peer.incarnation = envelope.incarnation;
        peer.admitted = envelope.admitted || (peer.admitted && !replaced);
        peer.format = peer.format.max(envelope.format);
        let leads = matches!(&self.role, Role::Following(following) if following.leader == from);
        let life = peer.heard(envelope.boot, leads, now, timing);
        if replaced || life != Life::Known {
            self.forget_progress(from, replaced);
            self.note_new_process(replaced);
        }
        if life == Life::New {
            let another_disk = replaced && mutant::is_on(Mutant::GrantsEndWithNewDisk);
            if another_disk || mutant::is_on(Mutant::NewProcessVoidsGrants) {
                self.grants.void(from, envelope.incarnation);
            }
            // A grant stands: the message may be a late one of an older life, and the process that relies on it may live.
            self.suspect_if_leader(from, Cause::NewProcess);
        }
    }

    /// When the leader is given up if nothing is heard of it.
    pub(in crate::protocol) fn following_deadline(&self, following: &Following) -> Time {
        let timing = &self.settings.timing;
        let peer = self.peers.get(following.leader);
        let patience = peer.map_or(timing.dead_after, |peer| peer.patience(self.mono(), timing));
        following.deadline(self.woke_at, patience)
    }

    /// A port that refuses proves that no process listens. It does not prove that the old one has
    /// stopped believing in its lease (a firewall refuses too), so the grant stands (P11).
    pub(in crate::protocol) fn on_peer_refused(&mut self, peer: NodeId) {
        let (now, timing) = (self.now.mono, &self.settings.timing);
        if let Some(known) = self.peers.get_mut(peer) {
            known.refuses(now, timing);
            self.forget_answer(peer);
            self.forget_progress(peer, false);
            self.suspect_if_leader(peer, Cause::Refused);
        }
    }

    pub(in crate::protocol) fn on_resigned(&mut self, from: NodeId, epoch: Epoch) {
        if epoch.leader != from {
            return;
        }
        self.over = self.over.max(epoch);
        if epoch >= self.promise() {
            self.grants.void(from, self.disk_of(from));
        }
        if epoch == self.promise() {
            self.suspect_if_leader(from, Cause::Resigned);
        }
    }

    fn suspect_if_leader(&mut self, peer: NodeId, cause: Cause) {
        if matches!(&self.role, Role::Following(following) if following.leader == peer) {
            self.suspect(cause);
        }
    }

    pub(in crate::protocol) fn suspect(&mut self, cause: Cause) {
        let Role::Following(following) = &self.role else {
            return;
        };
        let leader = following.leader;
        let mut seeking = Seeking::new(self.now.mono, cause);
        seeking.suspected = Some(leader);
        seeking.as_heir = following.heir == Some(self.me()) && self.may_claim_as_heir(cause);
        let heir = following.heir;
        self.event(Event::Suspected { leader, cause });
        self.role = Role::Seeking(seeking);
        if let Some(heir) = heir.filter(|heir| *heir < self.me() && !self.peers.is_refused(*heir)) {
            self.ask_heir_first(heir);
        }
    }

    /// The heir that the leader named knows that its rank is zero: where the leader's process is surely
    /// gone it claims without a dry run (P4). Not twice in a row, or a firewall that refuses would make
    /// it a nuisance (C26).
    fn may_claim_as_heir(&self, cause: Cause) -> bool {
        let pause = self.settings.timing.election_timeout().times(4);
        let rested = self.claimed_as_heir.is_none_or(|at| self.mono() >= at + pause);
        rested && matches!(cause, Cause::Refused | Cause::NewProcess)
    }

    pub(in crate::protocol) fn probe(&mut self, peer: NodeId) {
        self.out.push(Output::Probe(peer));
    }

    /// Somebody's promise is greater than the epoch we spoke for.
    pub(in crate::protocol) fn on_stale(&mut self, promise: Term) {
        self.seen = self.seen.max(promise.epoch);
        self.reclaim_if_outdated(promise);
    }

    pub(in crate::protocol) fn note_over(&mut self, epoch: Epoch) {
        self.over = self.over.max(epoch);
        self.broadcast(&Message::Resigned { epoch }, self.disk.vote());
    }
}
