//! What an election's task and its handle share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{broadcast, watch};

use super::event::{EVENTS_MAX, ElectionEvent, Role, Status};
use crate::backend::Backend;
use crate::error::Error;
use crate::lease::{Belief, Term};
use crate::seat::Seat;

#[derive(Debug)]
pub enum Order {
    /// Somebody has named this process.
    Elected(Term),
    /// Somebody has named another one.
    Deposed {
        by: String,
        token: u64,
    },
    Stop,
}

#[derive(Debug)]
pub struct Core<B> {
    pub seat: Seat<B>,
    pub check_every: Duration,
    pub identifier: String,
    pub belief: Belief,
    pub status: watch::Sender<Status>,
    /// Whether an election has been decided since the start.
    pub decided: watch::Sender<bool>,
    pub events: broadcast::Sender<ElectionEvent>,
    metadata: Mutex<Option<Value>>,
    leader: Mutex<Option<String>>,
    /// What was told last, so that nothing is told twice.
    told: Mutex<Role>,
}

impl<B: Backend> Core<B> {
    pub fn new(seat: Seat<B>, check_every: Duration, identifier: String, metadata: Option<Value>) -> Core<B> {
        let belief = Belief::none(seat.backend.clock());
        Core {
            seat,
            check_every,
            identifier,
            belief,
            status: watch::Sender::new(Status::Stopped),
            decided: watch::Sender::new(false),
            events: broadcast::Sender::new(EVENTS_MAX),
            metadata: Mutex::new(metadata),
            leader: Mutex::default(),
            told: Mutex::new(Role::Follower),
        }
    }

    pub fn begin(&self) {
        self.decided.send_replace(false);
        self.status.send_replace(Status::Starting);
    }

    pub fn stopping(&self) {
        self.status.send_replace(Status::Stopping);
    }

    pub fn stopped(&self) {
        self.status.send_replace(Status::Stopped);
    }

    /// Nobody may listen, which is no failure.
    pub fn tell(&self, event: ElectionEvent) {
        let _ = self.events.send(event);
    }

    pub fn tell_error(&self, error: Error) {
        self.tell(ElectionEvent::Error(Arc::new(error)));
    }

    pub fn win(&self, term: Term) {
        self.belief.begin(term);
        self.tell(ElectionEvent::LeaderAcquired { token: term.token });
        self.become_known(Role::Leader);
        self.note_leader(&self.seat.instance_id);
        self.decide(true);
    }

    pub fn lose(&self) {
        self.belief.end();
        if *locked(&self.told) == Role::Leader {
            self.tell(ElectionEvent::LeaderLost);
            self.become_known(Role::Follower);
        }
        *locked(&self.leader) = None;
    }

    pub fn decide(&self, won: bool) {
        self.tell(ElectionEvent::ElectionCompleted(won));
        self.status.send_if_modified(|status| {
            let first = *status == Status::Starting;
            if first {
                *status = Status::Started;
            }
            first
        });
        self.decided.send_replace(true);
    }

    fn become_known(&self, role: Role) {
        *locked(&self.told) = role;
        self.tell(ElectionEvent::NewState(role));
    }

    pub fn note_leader(&self, id: &str) {
        let mut leader = locked(&self.leader);
        if leader.as_deref() != Some(id) {
            *leader = Some(id.to_string());
            drop(leader);
            self.tell(ElectionEvent::NewLeader(id.to_string()));
        }
    }

    /// That one leads no more, and nobody does as far as is known.
    pub fn note_lost(&self, id: &str) {
        let mut leader = locked(&self.leader);
        if leader.as_deref() == Some(id) {
            *leader = None;
        }
    }

    pub fn leader(&self) -> Option<String> {
        locked(&self.leader).clone()
    }

    pub fn metadata(&self) -> Option<Value> {
        locked(&self.metadata).clone()
    }

    pub fn set_metadata(&self, metadata: Value) {
        *locked(&self.metadata) = Some(metadata);
    }
}

/// What is in there is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
