//! What an election tells.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

use crate::error::Error;

/// Events that wait for a slow listener; what is older is dropped, and it is told how many.
pub const EVENTS_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Stopped,
    /// Until the first election is decided.
    Starting,
    Started,
    Stopping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader,
    Follower,
}

#[derive(Clone, Debug)]
pub enum ElectionEvent {
    /// This process leads.
    LeaderAcquired {
        token: u64,
    },
    /// It leads no more.
    LeaderLost,
    ElectionStarted,
    /// Whether this process has won.
    ElectionCompleted(bool),
    /// Somebody leads, this process or another one.
    NewLeader(String),
    NewState(Role),
    /// A document of the role has changed, as the feed tells it.
    Change(Value),
    SubscribeStarted,
    /// The feed broke off; it is taken up again.
    SubscribeError(Arc<Error>),
    /// A renewal failed; it is tried again while the lease lasts.
    HeartbeatError(Arc<Error>),
    /// Standing for the role failed; it is tried again.
    Error(Arc<Error>),
    /// This listener was too slow for as many events.
    Missed(u64),
}

/// One listener.
#[derive(Debug)]
pub struct ElectionEvents(broadcast::Receiver<ElectionEvent>);

impl ElectionEvents {
    pub fn of(events: &broadcast::Sender<ElectionEvent>) -> ElectionEvents {
        ElectionEvents(events.subscribe())
    }

    /// None once the election is dropped.
    pub async fn next(&mut self) -> Option<ElectionEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(ElectionEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
