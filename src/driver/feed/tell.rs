//! From what the loop carries out to what readers are told: the one place where events are made.

use std::collections::BTreeSet;

use super::super::engine::Engine;
use super::super::setup::Setup;
use super::event::{Draft, Kind, quoted};
use crate::protocol;
use crate::store::{Applied, Key, LeaseEvent, Store};
use crate::types::{Entry, Epoch, NodeId, Owner, Position, Record};

impl Engine {
    /// A record has been applied.
    pub fn tell_record(&self, record: &Record, applied: &Applied) {
        let mut drafts: Vec<Draft> = entry(&self.setup, &record.entry, record.epoch()).into_iter().collect();
        let store = self.states.committed();
        if applied.restored {
            drafts.push(new_state("restored", false));
        }
        changes(store, &applied.changes, false, &mut drafts);
        drafts.extend(applied.events.iter().map(lease));
        self.feed.record(record.position, drafts);
    }

    /// The state has become what it is by a merge: what that changed is known.
    pub fn tell_merged(&self, how: &str, at: Position, changed: &[Key], before: &Store) {
        let mut drafts = Vec::new();
        changes(self.states.committed(), changed, true, &mut drafts);
        drafts.extend(self.states.committed().lease_events_since(before, changed).iter().map(lease));
        self.feed.replaced(at, drafts, new_state(how, true));
    }

    /// The state came as a whole.
    pub fn tell_installed(&self, at: Position) {
        self.feed.replaced(at, Vec::new(), new_state("snapshot", false));
    }

    /// What this node sees of elections is in no record.
    pub fn tell_protocol(&mut self, event: &protocol::Event) {
        use protocol::Event::{Claimed, Following, Opened, Suspected};
        match event {
            Suspected { leader, .. } => self.tell_started(Some(*leader).filter(|leader| leader.0 > 0)),
            Claimed { .. } => self.tell_started(None),
            Opened { epoch } | Following { epoch } if self.feed.electing => {
                self.feed.electing = false;
                let json = format!(",\"epoch\":\"{epoch}\"{}", leader(&self.setup, epoch.leader));
                self.feed.passing(Draft::rare(Kind::ElectionCompleted, None, json));
            }
            _ => {}
        }
    }

    /// `lost` is the leader that is given up.
    fn tell_started(&mut self, lost: Option<NodeId>) {
        if std::mem::replace(&mut self.feed.electing, true) {
            return;
        }
        let lost = lost.map_or("null".to_string(), |lost| lost.0.to_string());
        let json = format!(",\"node\":{},\"lost_leader\":{lost}", self.me().0);
        self.feed.passing(Draft::rare(Kind::ElectionStarted, None, json));
    }
}

/// The protocol's own records.
fn entry(setup: &Setup, entry: &Entry, epoch: Epoch) -> Option<Draft> {
    let owner = |owner: &Owner| match owner {
        Owner::Operator => "operator",
        Owner::Merge => "merge",
    };
    let (kind, json) = match entry {
        Entry::Lead { .. } => {
            (Kind::NewLeader, format!(",\"epoch\":\"{epoch}\"{}", leader(setup, epoch.leader)))
        }
        Entry::ServiceDown { owner: who, ttl, reason } => {
            let (who, ttl_ms) = (owner(who), ttl.0 / 1000);
            let reason = quoted(reason);
            (Kind::ServiceDown, format!(",\"owner\":\"{who}\",\"ttl_ms\":{ttl_ms},\"reason\":{reason}"))
        }
        Entry::ServiceUp { owner: who } => (Kind::ServiceUp, format!(",\"owner\":\"{}\"", owner(who))),
        Entry::Rejoin { .. } | Entry::Settled { .. } | Entry::Client(_) => return None,
    };
    Some(Draft::rare(kind, None, json))
}

fn leader(setup: &Setup, node: NodeId) -> String {
    let url = setup.member(node).map(|member| member.url()).unwrap_or_default();
    format!(",\"leader\":{{\"id\":{},\"url\":{}}}", node.0, quoted(&url))
}

/// `told`: whether each of its changes is told besides.
fn new_state(how: &str, told: bool) -> Draft {
    let json = format!(",\"reason\":\"{how}\",\"changes_told\":{told}");
    Draft { for_all: !told, ..Draft::rare(Kind::NewState, None, json) }
}

/// Each entry once, as it is now. `older`: what has changed may have been written by records of another side.
fn changes(store: &Store, keys: &[Key], older: bool, drafts: &mut Vec<Draft>) {
    let mut seen = BTreeSet::new();
    for key in keys {
        // The usual record changes one entry.
        if keys.len() > 1 && !seen.insert(key) {
            continue;
        }
        match key {
            Key::Conflict(id) => drafts.extend(conflict(store, id)),
            key if key.is_data() => {
                let rev = if older { store.rev_of(key) } else { None };
                drafts.push(Draft::change(key.clone(), store.value(key), rev));
            }
            _ => {}
        }
    }
}

fn lease(event: &LeaseEvent) -> Draft {
    let kind = match event {
        LeaseEvent::RoleAcquired { .. } => Kind::RoleAcquired,
        LeaseEvent::RoleLost { .. } => Kind::RoleLost,
        LeaseEvent::ProcessRegistered { .. } => Kind::ProcessRegistered,
        LeaseEvent::ProcessRemoved { .. } => Kind::ProcessRemoved,
    };
    Draft::rare(kind, Some(event.name().clone()), event.members())
}

/// One that has come; nothing is told of one that has gone, which a client's own order did.
fn conflict(store: &Store, id: &str) -> Option<Draft> {
    let view = store.conflict(id)?;
    let name = match view.key.ballot() {
        Some((election, _)) => election,
        None => view.key.name(),
    };
    let json =
        format!(",\"conflict\":{},\"table\":\"{}\",\"key\":{}", quoted(id), view.key.table(), quoted(&name));
    Some(Draft::rare(Kind::Conflict, Some(name.into()), json))
}
