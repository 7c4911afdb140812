//! What ends with a role: what a node remembers while it seeks a leader, follows one, or leads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ballots::Ballots;
use super::clock::ClusterClock;
use super::durability::After;
use super::messages::{Cause, Certificate, Claim, Condition, Objection, Standing, Term};
use super::progress::Progress;
use crate::types::{Epoch, Incarnation, Index, NodeId, Position, RequestId, Span, Time, Vector};

/// Without a leader: the answers to its questions, its claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seeking {
    pub since: Time,
    /// The leader that was given up.
    pub suspected: Option<NodeId>,
    /// The number of the last asking, and when each recent one was sent.
    pub ask: u64,
    pub asked: VecDeque<(u64, Time)>,
    pub next_ask: Time,
    /// In which round each was last asked out of turn.
    pub asked_again: BTreeMap<NodeId, u64>,
    pub known: BTreeMap<NodeId, Known>,
    pub claim: Option<Claiming>,
    /// It led until a moment ago and only needs a greater counter (P28).
    pub incumbent: bool,
    pub as_heir: bool,
    /// It has handed over and leaves the field to its heir until then (P18).
    pub quiet_until: Time,
    /// Since when a majority would have this node (P4).
    pub winnable_since: Option<Time>,
    pub after_start: bool,
    /// Since when it has been told that it was removed, and by a record up to which one (P43).
    pub removed: Option<(Time, Index)>,
    /// Available mode: a leader was heard whose log lacks some of this one (P32).
    pub stands_apart: bool,
}

/// What a node has lately said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    pub standing: Standing,
    /// When it last answered a question of ours: only that proves both directions (P4).
    pub answered: Option<Time>,
    pub yes: bool,
    /// It passes over this node for a while (P20).
    pub held: bool,
}

/// What a node thinks of this one as a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assent {
    pub yes: bool,
    pub held: bool,
}

impl Seeking {
    pub fn new(now: Time, cause: Cause) -> Seeking {
        Seeking {
            since: now,
            suspected: None,
            ask: 0,
            asked: VecDeque::new(),
            next_ask: now,
            asked_again: BTreeMap::new(),
            removed: None,
            known: BTreeMap::new(),
            claim: None,
            incumbent: cause == Cause::GreaterEpoch,
            as_heir: false,
            quiet_until: Time::default(),
            winnable_since: None,
            after_start: cause == Cause::Started,
            stands_apart: false,
        }
    }

    pub fn answered_lately(&self, node: NodeId, now: Time, fresh: Span) -> Option<&Known> {
        let known = self.known.get(&node)?;
        let at = known.answered?;
        (at + fresh >= now).then_some(known)
    }

    pub fn hears(&self, now: Time, fresh: Span) -> BTreeSet<NodeId> {
        let known = self.known.keys().copied();
        known.filter(|node| self.answered_lately(*node, now, fresh).is_some()).collect()
    }
}

impl Seeking {
    pub fn note(&mut self, from: NodeId, standing: Standing, answer: Option<(Time, Assent)>) {
        let before = self.known.get(&from);
        let (answered, Assent { yes, held }) = match answer {
            Some((at, opinion)) => (Some(at), opinion),
            None => before.map_or((None, Assent::default()), |known| {
                let Known { yes, held, .. } = *known;
                (known.answered, Assent { yes, held })
            }),
        };
        let known = Known { standing, answered, yes, held };
        self.known.insert(from, known);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claiming {
    pub term: Term,
    pub condition: Condition,
    pub certificate: Option<Certificate>,
    /// This node's own promise, which must be on disk before it counts (P2).
    pub stored_by: After,
    pub approvals: BTreeMap<NodeId, Approval>,
    pub refused: BTreeSet<NodeId>,
    pub until: Time,
    pub next_send: Time,
    /// Asked, since the claim was last repeated, to send what is missing.
    pub pulling_from: Option<NodeId>,
    /// A majority has promised.
    pub won: bool,
    /// Available mode: who is waited for, and until when (P31).
    pub expected: BTreeSet<NodeId>,
    pub gathers_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Approval {
    pub incarnation: Incarnation,
    pub last: Position,
    /// On this node's clock: until then an older leader may rely on the approver (P11).
    pub lease_until: Time,
}

impl Claiming {
    pub fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }
}

/// A claim that this node may come to approve: once it suspects its leader too, or once those before
/// the candidate have had their turn (C28). Forgotten unless the candidate repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingClaim {
    pub from: NodeId,
    pub claim: Claim,
    pub at: Time,
}

/// It hears a leader, or awaits one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Following {
    /// The leader of the promised epoch, or the candidate that the promise was given to.
    pub leader: NodeId,
    pub epoch: Epoch,
    pub heard: Time,
    /// Given while the candidate has not opened its epoch: how long we wait for it (P8).
    pub tentative: Option<Tentative>,
    /// The last index known to match this epoch's leader (P5).
    pub matched: Index,
    pub heir: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tentative {
    pub until: Time,
    pub progress: Position,
}

impl Following {
    pub fn new(epoch: Epoch, now: Time, tentative: Option<Tentative>) -> Following {
        Following { leader: epoch.leader, epoch, heard: now, tentative, matched: 0, heir: None }
    }

    /// What whoever follows has against all others (P58).
    pub fn objection(&self) -> Objection {
        match self.tentative {
            Some(_) => Objection::Awaits { candidate: self.leader },
            None => Objection::Follows { leader: self.leader },
        }
    }

    /// When it is given up if nothing is heard of it.
    pub fn deadline(&self, woke_at: Time, patience: Span) -> Time {
        match self.tentative {
            Some(tentative) => tentative.until,
            None => self.heard.max(woke_at) + patience,
        }
    }
}

/// It leads: how far its followers are, its rounds, the reads that wait, hand-overs and merges under way.
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
    pub waiting: Vec<WaitingRead>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitingRead {
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
