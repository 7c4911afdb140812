//! Messages on the way out of a node, over the network, and in; and which nodes can be reached.

use eldest::protocol::{Ack, After, Envelope, Limits, Message, Term};
use eldest::replica::{Brought, In, Outgoing};
use eldest::types::{Digest, NodeId};
use eldest_storage::Boundary;
use eldest_storage::node::{LoadError, SentDifference, load};
use eldest_storage::snapshot::SnapshotError;

use crate::checks::{Check, Violation, durable, ensure};
use crate::disk::Snapshot;
use crate::state::{State, Transfer};
use crate::world::{Event, World};

impl World {
    /// Sends the files of the newest snapshot, if there is one.
    pub fn send_snapshot(&mut self, node: usize, to: NodeId, term: Term, after: After) -> Check {
        let host = &self.hosts[node];
        let (Some(core), Some(mounted)) = (host.core(), &host.disk.mounted) else {
            return Ok(());
        };
        let Ok(Some((boundary, bytes))) = mounted.export() else {
            return self.meet_power_failure(node);
        };
        let known = host.disk.durable.knows(&boundary.meta);
        let Some(Snapshot { state, .. }) = known.cloned() else {
            return ensure(false, "P26 a snapshot is the state", || {
                format!("{} sends one of {} that it never wrote", host.id, boundary.meta.at)
            });
        };
        let envelope = core.envelope(to, Message::Snapshot { term, meta: boundary.meta.clone() });
        self.send(node, envelope, Some(Transfer { state, boundary, files: Some(bytes.into()) }), after)
    }

    /// A node's transport reports a state transfer that no node would take, before it sends anything.
    pub fn too_large(&self, node: usize, outgoing: &Outgoing) -> Option<In> {
        let most = self.hosts[node].settings.limits.merge_bytes;
        if !outgoing.is_merge() || most == Limits::default().merge_bytes {
            return None;
        }
        let store = &outgoing.store;
        let difference = store.difference(&outgoing.base()).unwrap_or_else(|| store.whole());
        let bytes =
            SentDifference { boundary: Default::default(), digest: Digest::new(store.digest()), difference }
                .length();
        (bytes > most).then_some(In::StateTooLarge { to: outgoing.envelope.to, bytes })
    }

    pub fn send_state(&mut self, node: usize, outgoing: Outgoing) -> Check {
        let host = &self.hosts[node];
        let base = outgoing.base();
        if let Some(Envelope { to, message: Message::Snapshot { term, .. }, .. }) = outgoing.instead
            && outgoing.store.difference(&base).is_none()
        {
            return self.send_snapshot(node, to, term, outgoing.after);
        }
        let Outgoing { envelope, meta, origin, store, after, .. } = outgoing;
        let boundary = host.disk.mounted.as_ref().and_then(|mounted| mounted.encoder.boundary(&meta, origin));
        let Some(boundary) = boundary else {
            return ensure(false, "P34 a log goes on from what is sent", || {
                format!("{} at {}", host.id, meta.at)
            });
        };
        let store = host.as_written(&store);
        let state = State { store, ..host.state.clone() };
        self.send(node, envelope, Some(Transfer { state, boundary, files: None }), after)
    }

    pub fn release_held(&mut self, node: usize) -> Check {
        let (done, promised) = (self.hosts[node].done, self.hosts[node].promised);
        let held = std::mem::take(&mut self.hosts[node].held);
        for (after, envelope, state) in held {
            if after.is_met(done, promised) {
                self.transmit(node, envelope, state)?;
            } else {
                self.hosts[node].held.push_back((after, envelope, state));
            }
        }
        Ok(())
    }

    pub fn send(&mut self, node: usize, envelope: Envelope, state: Option<Transfer>, after: After) -> Check {
        if after.is_met(self.hosts[node].done, self.hosts[node].promised) {
            return self.transmit(node, envelope, state);
        }
        self.hosts[node].held.push_back((after, envelope, state));
        Ok(())
    }

    /// Cuts a machine off from all others, both ways.
    pub fn cut_off(&mut self, node: usize) {
        let id = self.hosts[node].id;
        for other in self.others(id) {
            self.net.cut(id, other);
            self.net.cut(other, id);
        }
    }

    /// A firewall cuts a machine off and refuses connections in its name, though it lives.
    pub fn reject(&mut self, node: usize) {
        self.cut_off(node);
        let peer = self.hosts[node].id;
        for other in self.others(peer) {
            let (node, delay) = (self.slot(other), self.net.delay(&mut self.rng));
            self.after(delay, Event::Refused { node, peer, lie: true });
        }
    }

    pub fn others(&self, id: NodeId) -> Vec<NodeId> {
        let ids = self.hosts.iter().map(|host| host.id);
        ids.filter(|other| *other != id).collect()
    }

    fn transmit(&mut self, node: usize, envelope: Envelope, state: Option<Transfer>) -> Check {
        durable::sent(&envelope, &self.hosts[node].disk.durable)?;
        let now = self.hosts[node].clock.now(self.now).mono;
        self.checks.answered.asks(&envelope, now);
        self.messages += 1;
        self.bytes += self.scale.map_or(0, |scale| scale(&envelope));
        if self.recorder.is_some_and(|wanted| wanted(&envelope)) {
            self.recorded.push((envelope.clone(), state.clone()));
        }
        if self.net.drops(&envelope) || self.is_unheard(node, envelope.to) {
            return Ok(());
        }
        let mut rng = self.rng.fork();
        for delay in self.net.fates(&mut rng, envelope.from, envelope.to) {
            self.after(delay, Event::Deliver { envelope: envelope.clone(), state: state.clone() });
        }
        Ok(())
    }

    pub fn deliver(&mut self, mut envelope: Envelope, state: Option<Transfer>) -> Check {
        let node = self.reached_from(envelope.from, envelope.to);
        if !self.hosts[node].is_up() {
            if self.hosts[node].powered {
                let sender = self.slot(envelope.from);
                self.refuse(sender, envelope.to);
            }
            return Ok(());
        }
        if !self.are_configured_alike(envelope.from, node) {
            return Ok(());
        }
        self.note(|| envelope.to_string());
        let now = self.hosts[node].clock.now(self.now).mono;
        self.checks.story.delivered(node, &envelope.message, now);
        if self.hosts[node].settings.ack == Ack::All {
            let patience = self.hosts[node].settings.timing.dead_after;
            self.checks.answered.heard(&envelope, now, patience);
        }
        let brought = match &state {
            None => None,
            Some(transfer) => match self.unpacked(node, &envelope.message, transfer)? {
                None => return self.meet_power_failure(node),
                brought => brought,
            },
        };
        if let (Message::Snapshot { meta, .. }, Some(state)) = (&mut envelope.message, &state) {
            *meta = state.boundary.meta.clone();
        }
        self.hosts[node].incoming = state;
        self.feed(node, In::Message(Box::new(envelope), brought))?;
        self.hosts[node].incoming = None;
        if let Some(mounted) = &mut self.hosts[node].disk.mounted {
            mounted.encoder.bring(None);
        }
        Ok(())
    }

    /// The state that the replica is given with a message. `None` if the disk cannot take it: then the call
    /// fails, and nothing has come.
    fn unpacked(
        &mut self,
        node: usize,
        message: &Message,
        sent: &Transfer,
    ) -> Result<Option<Brought>, Violation> {
        if let Message::Merge { base, .. } | Message::Override { base, .. } = message {
            return sent.part_beyond(base).map(Some);
        }
        let host = &mut self.hosts[node];
        let (Some(mounted), Some(files)) = (&mut host.disk.mounted, &sent.files) else {
            return Ok(None);
        };
        let Ok(incoming) = mounted.import(files) else {
            return Ok(None);
        };
        let unlike = |what: String| Violation { checker: "P26 a snapshot is the state", what };
        let store = match load(&incoming, host.settings.mode) {
            Ok(store) => store,
            Err(LoadError::Snapshot(SnapshotError::Io { .. })) => return Ok(None),
            Err(error) => return Err(unlike(error.to_string())),
        };
        let Boundary { meta, origin, .. } = incoming.boundary().clone();
        if store.digest() != sent.state.store.digest() || meta != sent.boundary.meta {
            return Err(unlike(format!("what was sent of {} arrives as {}", sent.boundary.meta.at, meta.at)));
        }
        mounted.encoder.bring(Some(incoming));
        Ok(Some(Brought::Snapshot { meta, origin, store: store.into() }))
    }
}
