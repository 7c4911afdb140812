//! The events and states of an election.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

use crate::error::Error;

/// Events that wait for a slow listener. Beyond this bound the oldest ones are dropped, and the listener learns how
/// many.
pub const EVENTS_MAX: usize = 256;

/// The status of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Stopped,
    /// The first election is not decided yet.
    Starting,
    Started,
    Stopping,
}

/// Whether this process leads or follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader,
    Follower,
}

/// An event of an election.
#[derive(Clone, Debug)]
pub enum ElectionEvent {
    /// This process leads now.
    LeaderAcquired {
        token: u64,
    },
    /// This process does not lead any more.
    LeaderLost,
    ElectionStarted,
    /// An election is decided: `true` if this process has won.
    ElectionCompleted(bool),
    /// The instance with this id leads: this process or another one.
    NewLeader(String),
    NewState(Role),
    /// A document of the role has changed. The value is the event of the feed.
    Change(Value),
    SubscribeStarted,
    /// The feed broke off. The election opens it again.
    SubscribeError(Arc<Error>),
    /// A renewal failed. It is retried while the lease lasts.
    HeartbeatError(Arc<Error>),
    /// An attempt to get the role failed. It is retried.
    Error(Arc<Error>),
    /// This listener was too slow: it has missed this number of events.
    Missed(u64),
}

/// One listener of an election.
#[derive(Debug)]
pub struct ElectionEvents(broadcast::Receiver<ElectionEvent>);

impl ElectionEvents {
    /// A listener of the events from now on.
    pub fn of(events: &broadcast::Sender<ElectionEvent>) -> ElectionEvents {
        ElectionEvents(events.subscribe())
    }

    /// The next event. Returns `None` once the election is dropped.
    pub async fn next(&mut self) -> Option<ElectionEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(ElectionEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
