//! The state that an election's task and its handle share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{broadcast, watch};

use super::event::{EVENTS_MAX, ElectionEvent, Role, Status};
use crate::backend::Backend;
use crate::error::Error;
use crate::lease::{Belief, Term};
use crate::seat::Seat;

/// An order to the task of an election.
#[derive(Debug)]
pub enum Order {
    /// An `elect` call has made this process the leader.
    Elected(Term),
    /// An `elect` call has made another instance the leader.
    Deposed {
        by: String,
        token: u64,
    },
    Stop,
}

/// The state of an election.
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
    /// The role in the last event, so that no event is sent twice.
    told: Mutex<Role>,
}

impl<B: Backend> Core<B> {
    /// The state of an election that is not started.
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

    /// Notes the start: the first election is not decided yet.
    pub fn begin(&self) {
        self.decided.send_replace(false);
        self.status.send_replace(Status::Starting);
    }

    /// Notes that the election is being stopped.
    pub fn stopping(&self) {
        self.status.send_replace(Status::Stopping);
    }

    /// Notes that the election has stopped.
    pub fn stopped(&self) {
        self.status.send_replace(Status::Stopped);
    }

    /// Sends an event. It is no failure if there is no listener.
    pub fn tell(&self, event: ElectionEvent) {
        let _ = self.events.send(event);
    }

    /// Sends an error as an event.
    pub fn tell_error(&self, error: Error) {
        self.tell(ElectionEvent::Error(Arc::new(error)));
    }

    /// Begins the belief in this term, and sends the events of a victory.
    pub fn win(&self, term: Term) {
        self.belief.begin(term);
        self.tell(ElectionEvent::LeaderAcquired { token: term.token });
        self.become_known(Role::Leader);
        self.note_leader(&self.seat.instance_id);
        self.decide(true);
    }

    /// Ends the belief, forgets the leader, and sends the events of a loss if this process led.
    pub fn lose(&self) {
        self.belief.end();
        if *locked(&self.told) == Role::Leader {
            self.tell(ElectionEvent::LeaderLost);
            self.become_known(Role::Follower);
        }
        *locked(&self.leader) = None;
    }

    /// Notes that an election is decided, and whether this process has won it.
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

    /// Notes the instance that leads, and sends an event if it is not the one that led before.
    pub fn note_leader(&self, id: &str) {
        let mut leader = locked(&self.leader);
        if leader.as_deref() != Some(id) {
            *leader = Some(id.to_string());
            drop(leader);
            self.tell(ElectionEvent::NewLeader(id.to_string()));
        }
    }

    /// Notes that the instance with this id leads no more. If it was the known leader, no leader is known from now on.
    pub fn note_lost(&self, id: &str) {
        let mut leader = locked(&self.leader);
        if leader.as_deref() == Some(id) {
            *leader = None;
        }
    }

    /// The instance id of the known leader.
    pub fn leader(&self) -> Option<String> {
        locked(&self.leader).clone()
    }

    /// The present metadata.
    pub fn metadata(&self) -> Option<Value> {
        locked(&self.metadata).clone()
    }

    /// Replaces the metadata.
    pub fn set_metadata(&self, metadata: Value) {
        *locked(&self.metadata) = Some(metadata);
    }
}

/// No change of these values can panic half-way, so a poisoned lock can be used.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
