//! What stands in the log, and what ends by itself.

use std::collections::BTreeMap;
use std::fmt;

use super::ids::{ClusterId, Incarnation, Members, NodeId, Text};
use super::position::{Epoch, Index, Position};
use super::time::{Span, WallTime};

/// The version of the record types that a node can read. A leader writes a type only once every
/// node of the topology has shown that it reads it (P23).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Format(pub u16);

/// The newest that this binary reads.
pub const FORMAT: Format = Format(4);

/// A client's command, opaque to the protocol: the seed's `type|JSON`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    pub kind: u16,
    pub format: Format,
    /// Which call this answers, so that a retry of it is known again.
    pub call: Option<KeyedCall>,
    pub text: Text,
}

/// A client's `Idempotency-Key` and what was asked under it, as hashes; and who asked, as a short one: room is made for those who have
/// few (P52). Zero where that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyedCall {
    pub key: u128,
    pub body: u64,
    pub who: u32,
}

impl KeyedCall {
    /// Whether another call is an attempt of this one, from wherever it comes.
    pub fn is_attempt_of(&self, other: &KeyedCall) -> bool {
        (self.key, self.body) == (other.key, other.body)
    }
}

/// Who stopped the service. Each owner lifts only its own hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Operator,
    Merge,
}

/// What a record says. Everything but `Client` is the protocol's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Opens a leader's epoch (P6). The first one of a cluster founds it (P9).
    Lead {
        founding: Option<Box<Founding>>,
    },
    /// Names the disk of a member that learns (P10).
    Rejoin {
        node: NodeId,
        incarnation: Incarnation,
    },
    /// Client writes stop until the owner lifts this or the ttl has passed in cluster time (P22).
    ServiceDown {
        owner: Owner,
        ttl: Span,
        /// For people.
        reason: Text,
    },
    ServiceUp {
        owner: Owner,
    },
    /// These are the nodes of the cluster from here on, committed or not (P43).
    Members {
        members: Members,
    },
    /// Every disk of the topology has had everything up to here: what it takes to tell sides apart below that is
    /// forgotten (P35).
    Settled {
        upto: Position,
    },
    /// One command or one atomic batch: never split over two records (P12).
    Client(Payload),
}

/// What the first record of a cluster says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Founding {
    /// Whose disks were there.
    pub founders: BTreeMap<NodeId, Incarnation>,
    /// Not known in what was written before clusters had one, and in available mode, where sides may begin apart.
    pub cluster: ClusterId,
    /// Who belongs to it, who was not there included. None where `cluster` is not known: there the topology file says.
    pub members: Option<Members>,
}

/// What a leader's clocks showed when it wrote a record (P17): wall time for people, never going
/// back; cluster time, which runs on through every change of leader, for every ttl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    pub wall: WallTime,
    pub cluster: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub position: Position,
    pub stamp: Stamp,
    pub entry: Entry,
}

impl Record {
    pub fn index(&self) -> Index {
        self.position.index
    }

    pub fn epoch(&self) -> Epoch {
        self.position.epoch
    }
}

impl Entry {
    /// About how many bytes this takes, in memory as on disk: what the bounds in bytes count.
    pub fn size(&self) -> usize {
        const REST: usize = 64;
        match self {
            Entry::Client(payload) => REST + payload.text.len(),
            Entry::ServiceDown { reason, .. } => REST + reason.len(),
            Entry::Lead { founding: Some(_) } => REST * 2,
            Entry::Members { members } => REST * (1 + members.len()),
            Entry::Lead { .. } | Entry::Rejoin { .. } | Entry::ServiceUp { .. } | Entry::Settled { .. } => {
                REST
            }
        }
    }

    /// The format that a reader of this entry needs.
    pub fn format(&self) -> Format {
        match self {
            Entry::Client(payload) => payload.format,
            _ => Format(1),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Lead { founding: None } => write!(f, "lead"),
            Entry::Lead { founding: Some(_) } => write!(f, "form"),
            Entry::Rejoin { node, incarnation } => write!(f, "rejoin {node} {incarnation}"),
            Entry::ServiceDown { owner, ttl, .. } => write!(f, "down {owner:?} {ttl}"),
            Entry::ServiceUp { owner } => write!(f, "up {owner:?}"),
            Entry::Members { members } => {
                write!(f, "members")?;
                members.iter().try_for_each(|member| {
                    write!(f, " {}{}", member.id, if member.votes { "" } else { " (learns)" })
                })
            }
            Entry::Settled { upto } => write!(f, "settled {upto}"),
            Entry::Client(payload) => write!(f, "{}|{}", payload.kind, payload.text),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.position, self.entry)
    }
}

/// Leases that one record ends, ages or refreshes: applied in a few milliseconds, and ten of them in a second end 10,000.
/// Names have up to 256 bytes, so a record stays far below the greatest that the log takes. Whoever proposes such a record and
/// whoever reads it go by this one bound: no node could go on beyond a record that it does not read.
pub const LEASES_MOST: usize = 1000;

/// Calls that wait for one role (P41). When it falls free the dead are sorted out one by one, in the leader's loop.
pub const WAITERS_PER_ROLE_MOST: usize = 1000;

/// Calls that wait for roles, all together: each keeps a connection and a request open on some node.
pub const WAITERS_MOST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    Role(Text),
    Process(Text),
    /// A document that ends unless somebody writes or renews it.
    Doc(Text),
}

impl LeaseName {
    pub fn text(&self) -> &Text {
        match self {
            LeaseName::Role(text) | LeaseName::Process(text) | LeaseName::Doc(text) => text,
        }
    }

    /// Whether the log says that it went past half its ttl (P40). A document's row says what somebody wrote, and where: nothing
    /// but a write changes it.
    pub fn ages(&self) -> bool {
        !matches!(self, LeaseName::Doc(_))
    }
}

/// What the log says of a lease. When it ends is for the leader to say, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Of this one grant: who has another token has another lease. A document's is the index of its last write.
    pub token: u64,
    pub ttl: Span,
    /// It went past half its ttl without being renewed, and has not been renewed since (C14).
    pub aged: bool,
}
