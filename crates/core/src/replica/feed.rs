//! This module alone decides which events the readers of the feed get.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Cause, Event, HandOverReason, Impasse};
use crate::store::{Applied, DocEnded, Key, LeaseEvent, Store, TokenEvent};
use crate::types::{Entry, Epoch, History, Member, NodeId, Owner, Position, Record, Stamp, Text, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Change,
    NewLeader,
    NewState,
    ElectionStarted,
    ElectionCompleted,
    RoleAcquired,
    RoleLost,
    ProcessRegistered,
    ProcessChanged,
    ProcessRemoved,
    Conflict,
    ServiceDown,
    ServiceUp,
    MembersChanged,
    MergeCalledOff,
    TokenCreated,
    TokenRevoked,
}

/// A set of kinds, one bit each: there may be 32 at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

/// An event that has no place among the others yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub kind: Kind,
    /// The event goes to every reader, even to one that did not ask for this kind: the state has changed without an event for
    /// each change, so a reader's copy of it is out of date.
    pub for_all: bool,
    pub fact: Fact,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An entry of clients' data was written, or removed.
    Change {
        key: Key,
        /// `None` for a delete.
        value: Option<Text>,
        /// The revision, if it is not that of the event's own record.
        rev: Option<Text>,
        /// The reason why a document ended without being deleted by a client.
        ended: Option<DocEnded>,
    },
    /// The leader, in this epoch. The driver adds the leader's address. `more` are further members, each with its comma before it.
    Leader { epoch: Epoch, more: String },
    /// The content of rare events: the members of the JSON object, each with its comma before it.
    Members { name: Option<Text>, json: String },
}

#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// The next record that is applied, with its events.
    Record { at: Position, history: History, stamp: Stamp, drafts: Vec<Draft> },
    /// The state was replaced by another one.
    Replaced { at: Position, history: History, changes: Vec<Draft>, last: Draft },
    /// An event that is in no record, for the readers of this moment.
    Passing(Draft),
}

/// The events of a record that has been applied to this state. An event's id counts these drafts, and a reader may go on with it
/// at another node (I7). So every node must make the same drafts in the same order, also while builds differ during an upgrade,
/// and a draft may depend on nothing but the record and the state. `before` is the epoch of the record before.
pub(super) fn of_record(store: &Store, record: &Record, applied: &Applied, before: Epoch) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = entry(&record.entry, record.epoch(), before).into_iter().collect();
    if applied.restored {
        drafts.push(new_state("restored", false));
    }
    let ended = applied.ended.iter().map(|(key, why)| (key, *why)).collect();
    changes(store, &applied.changes, false, &ended, &mut drafts);
    drafts.extend(applied.events.iter().map(lease));
    drafts.extend(applied.tokens.iter().map(token));
    drafts
}

/// The events of a merge: the difference between the state before it and the state after it.
pub(super) fn of_merge(store: &Store, before: &Store, changed: &[Key], ended: &[Text]) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let ended = ended.iter().map(|key| (key, DocEnded::WithLease)).collect();
    changes(store, changed, true, &ended, &mut drafts);
    drafts.extend(store.lease_events_since(before, changed).iter().map(lease));
    drafts.extend(store.token_events_since(before, changed).iter().map(token));
    drafts
}

/// A merge or an override has replaced the state, and its changes are known.
pub(super) fn of_merged(how: &str, at: Position, history: History, changes: Vec<Draft>) -> FeedEvent {
    FeedEvent::Replaced { at, history, changes, last: new_state(how, true) }
}

/// A whole snapshot has replaced the state. Its changes are not known one by one, so the event goes to all readers: they have to
/// read the state again.
pub(super) fn of_snapshot(at: Position, history: History) -> FeedEvent {
    FeedEvent::Replaced { at, history, changes: Vec::new(), last: new_state("snapshot", false) }
}

/// An election as this node sees it.
#[derive(Clone, Debug)]
pub(super) struct OngoingElection {
    since: Time,
    /// The leader that this node gave up, or this node itself if it stopped leading.
    lost: Option<NodeId>,
    cause: Option<Cause>,
    /// Why this node handed over.
    reason: Option<HandOverReason>,
}

impl OngoingElection {
    /// The members of both events.
    fn json(&self) -> String {
        let lost = id_or_null(self.lost);
        let cause = self.cause.map_or("null".to_string(), |cause| format!("\"{}\"", cause.word()));
        let reason = self.reason.as_ref().map(|reason| format!(",\"reason\":\"{}\"", reason.word()));
        let by = self.reason.as_ref().and_then(HandOverReason::by);
        let by = by.map(|by| format!(",\"ordered_by\":{}", quoted(by))).unwrap_or_default();
        format!(",\"lost_leader\":{lost},\"cause\":{cause}{}{by}", reason.unwrap_or_default())
    }
}

fn id_or_null(node: Option<NodeId>) -> String {
    node.map_or("null".to_string(), |node| node.0.to_string())
}

/// Events that are in no record, such as this node's view of elections. `electing` is the election that was announced, while it is under
/// way.
pub(super) fn of_protocol(
    event: &Event,
    me: NodeId,
    now: Time,
    electing: &mut Option<OngoingElection>,
) -> Option<FeedEvent> {
    let draft = match event {
        Event::Suspected { leader, cause, .. } => {
            let reason = None;
            started(
                me,
                OngoingElection { since: now, lost: Some(*leader), cause: Some(*cause), reason },
                electing,
            )
        }
        Event::HandsOver { reason, .. } => {
            let (cause, reason) = (Some(Cause::HandedOver), Some(reason.clone()));
            started(me, OngoingElection { since: now, lost: Some(me), cause, reason }, electing)
        }
        Event::HandedOver { leader, .. } => {
            let (lost, cause) = (Some(*leader), Some(Cause::HandedOver));
            started(me, OngoingElection { since: now, lost, cause, reason: None }, electing)
        }
        // The node goes on in a new epoch, has heard of the next leader, or claims a greater epoch at once.
        Event::SteppedDown { cause: Cause::Merged | Cause::GreaterEpoch, .. } => None,
        Event::SteppedDown { cause, .. } => {
            let (cause, reason) = (Some(*cause), None);
            started(me, OngoingElection { since: now, lost: Some(me), cause, reason }, electing)
        }
        Event::Claimed { .. } => {
            started(me, OngoingElection { since: now, lost: None, cause: None, reason: None }, electing)
        }
        Event::Opened { epoch } | Event::Following { epoch } => electing.take().map(|election| {
            let more =
                format!("{},\"leaderless_ms\":{}", election.json(), now.since(election.since).0 / 1000);
            Draft::of(Kind::ElectionCompleted, Fact::Leader { epoch: *epoch, more })
        }),
        Event::Impasse { .. } if mutant::is_on(Mutant::CalledOffUntold) => None,
        Event::Impasse { other, why } => Some(called_off(me, *other, why)),
        _ => None,
    };
    draft.map(FeedEvent::Passing)
}

fn started(me: NodeId, election: OngoingElection, electing: &mut Option<OngoingElection>) -> Option<Draft> {
    // One election may have many suspicions and claims: readers hear of it once, and then of its end.
    if electing.is_some() {
        return None;
    }
    let election = electing.insert(election);
    Some(Draft::rare(Kind::ElectionStarted, None, format!(",\"node\":{}{}", me.0, election.json())))
}

/// Two sides cannot merge for now (P48).
fn called_off(me: NodeId, other: NodeId, why: &Impasse) -> Draft {
    let why = match why {
        Impasse::NothingComes => "\"nothing_comes\"".to_string(),
        Impasse::TooLarge { bytes, most } => format!("\"too_large\",\"bytes\":{bytes},\"most\":{most}"),
        Impasse::JournalFull { entries, bytes } => {
            format!("\"journal_full\",\"entries\":{entries},\"bytes\":{bytes}")
        }
    };
    Draft::rare(
        Kind::MergeCalledOff,
        None,
        format!(",\"node\":{},\"with\":{},\"reason\":{why}", me.0, other.0),
    )
}

/// Events of the protocol's own records.
fn entry(entry: &Entry, epoch: Epoch, before: Epoch) -> Option<Draft> {
    let (kind, json) = match entry {
        Entry::Lead { .. } => {
            let previous = id_or_null(Some(before.leader).filter(|leader| leader.0 > 0));
            let more = format!(",\"previous_leader\":{previous}");
            return Some(Draft::of(Kind::NewLeader, Fact::Leader { epoch, more }));
        }
        Entry::ServiceDown { owner: who, ttl, reason } => {
            let (who, ttl_ms, reason) = (owner(*who), ttl.0 / 1000, quoted(reason));
            (Kind::ServiceDown, format!(",\"owner\":\"{who}\",\"ttl_ms\":{ttl_ms},\"reason\":{reason}"))
        }
        Entry::ServiceUp { owner: who } => (Kind::ServiceUp, format!(",\"owner\":\"{}\"", owner(*who))),
        Entry::Members { members } => {
            let members: Vec<String> = members.iter().map(member).collect();
            (Kind::MembersChanged, format!(",\"members\":[{}]", members.join(",")))
        }
        Entry::Rejoin { .. } | Entry::Settled { .. } | Entry::Client(_) => return None,
    };
    Some(Draft::rare(kind, None, json))
}

fn member(member: &Member) -> String {
    let (name, address) = (quoted(&member.name), quoted(&member.address));
    format!("{{\"id\":{},\"name\":{name},\"address\":{address},\"votes\":{}}}", member.id.0, member.votes)
}

fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::Operator => "operator",
        Owner::Merge => "merge",
    }
}

/// `told`: whether each change of the state has its own event.
fn new_state(how: &str, told: bool) -> Draft {
    let json = format!(",\"reason\":\"{how}\",\"changes_told\":{told}");
    Draft { for_all: !told, ..Draft::rare(Kind::NewState, None, json) }
}

/// One event for each changed entry, with its present value. `older`: whether records of another side may have written the
/// entries. An entry that a batch changes twice has one event, with the value that stands after the record.
fn changes(
    store: &Store,
    keys: &[Key],
    older: bool,
    ended: &BTreeMap<&Text, DocEnded>,
    drafts: &mut Vec<Draft>,
) {
    let mut seen = BTreeSet::new();
    for key in keys {
        // A typical record changes one entry.
        if keys.len() > 1 && !seen.insert(key) {
            continue;
        }
        match key {
            Key::Conflict(id) => drafts.extend(conflict(store, id)),
            key if key.is_data() => {
                let rev = if older { store.rev_of(key) } else { None };
                let why = if let Key::Doc(name) = key { ended.get(name).copied() } else { None };
                let fact = Fact::Change { key: key.clone(), value: store.value(key), rev, ended: why };
                drafts.push(Draft::of(Kind::Change, fact));
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
        LeaseEvent::ProcessChanged { .. } => Kind::ProcessChanged,
        LeaseEvent::ProcessRemoved { .. } => Kind::ProcessRemoved,
    };
    Draft::rare(kind, Some(event.name().clone()), event.members())
}

/// The event leaves out the token's hash.
fn token(event: &TokenEvent) -> Draft {
    let kind = match event {
        TokenEvent::Created { .. } => Kind::TokenCreated,
        TokenEvent::Revoked { .. } => Kind::TokenRevoked,
    };
    Draft::rare(kind, None, event.members())
}

/// The event of a new conflict. A conflict that has gone needs no event, because a client's own command removed it.
fn conflict(store: &Store, id: &str) -> Option<Draft> {
    let view = store.conflict(id)?;
    let name = match view.key.ballot() {
        Some((election, _)) => election,
        None => view.key.name(),
    };
    let table = view.key.table();
    let json = format!(",\"conflict\":{},\"table\":\"{table}\",\"key\":{}", quoted(id), quoted(&name));
    Some(Draft::rare(Kind::Conflict, Some(name.into()), json))
}

/// Encodes text as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Draft {
    fn of(kind: Kind, fact: Fact) -> Draft {
        Draft { kind, for_all: false, fact }
    }

    pub fn change(key: Key, value: Option<Text>, rev: Option<Text>) -> Draft {
        Draft::of(Kind::Change, Fact::Change { key, value, rev, ended: None })
    }

    pub fn rare(kind: Kind, name: Option<Text>, json: String) -> Draft {
        Draft::of(kind, Fact::Members { name, json })
    }
}

impl Kind {
    pub const ALL: [Kind; 17] = [
        Kind::Change,
        Kind::NewLeader,
        Kind::NewState,
        Kind::ElectionStarted,
        Kind::ElectionCompleted,
        Kind::RoleAcquired,
        Kind::RoleLost,
        Kind::ProcessRegistered,
        Kind::ProcessChanged,
        Kind::ProcessRemoved,
        Kind::Conflict,
        Kind::ServiceDown,
        Kind::ServiceUp,
        Kind::MembersChanged,
        Kind::MergeCalledOff,
        Kind::TokenCreated,
        Kind::TokenRevoked,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Change => "change",
            Kind::NewLeader => "new_leader",
            Kind::NewState => "new_state",
            Kind::ElectionStarted => "election_started",
            Kind::ElectionCompleted => "election_completed",
            Kind::RoleAcquired => "role_acquired",
            Kind::RoleLost => "role_lost",
            Kind::ProcessRegistered => "process_registered",
            Kind::ProcessChanged => "process_changed",
            Kind::ProcessRemoved => "process_removed",
            Kind::Conflict => "conflict",
            Kind::ServiceDown => "service_down",
            Kind::ServiceUp => "service_up",
            Kind::MembersChanged => "members_changed",
            Kind::MergeCalledOff => "merge_called_off",
            Kind::TokenCreated => "token_created",
            Kind::TokenRevoked => "token_revoked",
        }
    }

    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether events of this kind are about something that has a name.
    pub fn is_named(self) -> bool {
        use Kind::*;
        let of_lease =
            matches!(self, RoleAcquired | RoleLost | ProcessRegistered | ProcessChanged | ProcessRemoved);
        of_lease || matches!(self, Change | Conflict)
    }
}

impl Kinds {
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Kinds {
        Kinds(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u16))
    }

    pub fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }
}
