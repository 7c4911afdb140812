//! What a leader remembers besides the progress of its followers: its term, its rounds, the reads that wait, hand-overs and
//! merges under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ballots::Ballots;
use super::progress::Progress;
use crate::protocol::log::ClusterClock;
use crate::protocol::messages::{Certificate, Term};
use crate::types::{Incarnation, Index, NodeId, Position, RequestId, Span, Time, Vector};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leading {
    pub term: Term,
    pub since: Time,
    /// The record that opens the epoch. Nothing is committed or served before it is (P6).
    pub open_index: Index,
    pub opened: bool,
    /// Older leaders may still rely on their leases until then (P11).
    pub leases_until: Time,
    pub progress: BTreeMap<NodeId, Progress>,
    pub round: u64,
    /// When each recent round was sent.
    pub sent: VecDeque<(u64, Time)>,
    pub next_beat: Time,
    pub next_periodic_work: Time,
    /// Since when nothing has been committed although something waits for it (P16).
    pub behind_since: Option<Time>,
    pub behind_from: Index,
    /// The size of what is appended and not committed.
    pub uncommitted_bytes: usize,
    pub clock: ClusterClock,
    pub reads: Reads,
    pub handing: Option<HandingOver>,
    pub ballots: Ballots,
    /// Disks whose seat another one has, as far as the records held tell (P10).
    pub replaced: BTreeSet<Incarnation>,
    /// Disks that have forgotten what they acknowledged in this epoch (P27).
    pub forgetful: BTreeSet<Incarnation>,
    /// The boundary to compare, and the next one: a beat later every follower has reached it (P25).
    pub boundary: (Index, Index),
    /// Beats wanted now: a read waits for a round of its own.
    pub beat_wanted: bool,
    /// When a beat tells followers what is committed, unless an append has told them before.
    pub tell_at: Time,
    pub next_poll: Time,
    pub merges: Merges,
    /// Available mode: what the log included when this epoch began. All of it stands below the record that opens the epoch.
    pub began_with: Vector,
    /// Up to where histories have been settled in this epoch (P35).
    pub settled: Index,
    /// When a process last spoke that this leader had not known in its node's place (P35).
    pub new_process_at: Time,
}

impl Leading {
    /// When this round was sent, if that is still of use. Rounds follow each other without a gap.
    pub fn sent_at(&self, round: u64) -> Option<Time> {
        let (oldest, _) = self.sent.front()?;
        let place = usize::try_from(round.checked_sub(*oldest)?).ok()?;
        self.sent.get(place).map(|(_, at)| *at)
    }

    /// What a log includes that matches the leader's up to there, as far as that is known.
    pub fn included_at(&self, matched: Index) -> Option<Vector> {
        (matched >= self.open_index).then(|| {
            let mut vector = self.began_with.clone();
            vector.note(Position::new(self.term.epoch, matched));
            vector
        })
    }

    /// Whether another side is being taken in, or this one is handed in (P34).
    pub fn is_meeting(&self) -> bool {
        self.merges.meeting.is_some() || self.merges.handing_in.is_some()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reads {
    pub waiting: Vec<Waiting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Waiting {
    pub request: RequestId,
    /// The state must have applied this.
    pub index: Index,
    /// A majority must have answered this round or a later one: it started after the read arrived.
    pub round: u64,
}

impl Reads {
    pub fn drain(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.waiting).into_iter().map(|read| read.request).collect()
    }
}

/// The leader waits for its heir to have everything. Writes are refused meanwhile, none is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandingOver {
    pub heir: NodeId,
    pub request: Option<RequestId>,
    pub until: Time,
}

/// The certificate has left: this node's epoch is over, whatever the heir makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Yielded {
    pub certificate: Certificate,
    pub request: Option<RequestId>,
    pub next_send: Time,
    pub until: Time,
}

impl Yielded {
    pub fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }
}

/// Available mode: the merges of a node that leads. They go on when it has to begin a greater epoch, as it follows no node in between (P34).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Merges {
    /// Another leader that is to be taken in.
    pub meeting: Option<Meeting>,
    /// Another leader has asked for what is here.
    pub handing_in: Option<HandingIn>,
    /// This node has merged, and the service is held until all that are heard have what came of it.
    pub merged: bool,
    /// What is handed in must have been asked for since this record. It opened the first epoch that this node has led in since it last
    /// followed or merged, or settled anything later.
    pub since: Position,
}

impl Merges {
    pub fn new(since: Position) -> Self {
        Self { meeting: None, handing_in: None, merged: false, since }
    }
}

/// The elder waits for what the younger hands in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meeting {
    pub other: NodeId,
    pub next_send: Time,
    /// Given up if nothing is heard of the other until then.
    pub until: Time,
    /// Called off then, whatever is heard (P48).
    pub comes_off_by: Time,
}

impl Meeting {
    /// Whether to ask now; if so, the next time is a pause away.
    pub fn asks_now(&mut self, now: Time, pause: Span) -> bool {
        let due = now >= self.next_send;
        if due {
            self.next_send = now + pause;
        }
        due
    }
}

/// The younger has been asked for what the elder lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandingIn {
    pub to: NodeId,
    pub base: Vector,
    pub next_send: Time,
    pub until: Time,
}

impl HandingIn {
    /// What the other leader has, if it is to be sent the rest now; the next time is a pause away.
    pub fn sends_now(&mut self, now: Time, pause: Span) -> Option<(NodeId, Vector)> {
        if now < self.next_send {
            return None;
        }
        self.next_send = now + pause;
        Some((self.to, self.base.clone()))
    }
}
