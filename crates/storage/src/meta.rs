//! The protocol's part of a state as one line of JSON: in the head of every segment and of every snapshot.
//!
//! Each head has all of it, so that no file depends on one that may be trimmed or merged away. Members that came with later
//! versions are optional: files from before do not have them. An unknown member is refused, because a log that continues
//! without it would differ from the logs of the other nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::{Holds, Roster, Seat, SnapshotMeta};
use crate::types::{
    ClusterId, Epoch, Format, INDEX_MOST, Incarnation, Index, Member, Members, NUMBER_MOST, NodeId, Owner,
    Position, Span, Stamp, Text as Words, WallTime,
};

/// The point from which a log or a snapshot continues: the state's meta, and the checksum of its last line, which the next line
/// is chained to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    pub meta: SnapshotMeta,
    pub chain: u32,
    /// The index of the newest override: a restore, or a merge of two sides. Zero if there was none. The boundaries of
    /// `/catch_up` are numbered from there (P47).
    pub origin: Index,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    epoch: (u64, u32),
    index: Index,
    chain: u32,
    origin: Index,
    wall_us: u64,
    cluster_us: u64,
    format: u16,
    /// Node, incarnation in hexadecimal, and the record since which it is in the roster. The incarnation has 64 bits, more than
    /// many readers of JSON take in a number.
    seats: Vec<(u32, String, Index)>,
    /// The owner, and the cluster time at which its hold expires.
    holds: BTreeMap<String, u64>,
    /// In available mode: the vector of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vector: Option<String>,
    /// The cluster's id in hexadecimal, if the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// The members of the cluster and the record since which they are valid, if the log has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<(Index, Vec<MemberText>)>,
}

/// A member, in the form that records and states have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberText {
    id: u32,
    name: Words,
    address: Words,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    votes: bool,
}

impl MemberText {
    pub fn all(members: &Members) -> Vec<MemberText> {
        let text = |member: &Member| MemberText {
            id: member.id.0,
            name: member.name.clone(),
            address: member.address.clone(),
            pinned: member.pinned,
            votes: member.votes,
        };
        members.iter().map(text).collect()
    }
}

pub fn members(texts: Vec<MemberText>) -> Members {
    let member = |text: MemberText| Member {
        id: NodeId(text.id),
        name: text.name,
        address: text.address,
        pinned: text.pinned,
        votes: text.votes,
    };
    texts.into_iter().map(member).collect()
}

pub fn cluster(hex: &str) -> Option<ClusterId> {
    u128::from_str_radix(hex, 16).ok().map(ClusterId)
}

impl Boundary {
    pub fn index(&self) -> Index {
        self.meta.at.index
    }

    pub fn to_json(&self) -> String {
        let Boundary { meta, chain, origin } = self;
        let seat = |(node, seat): (NodeId, Seat)| (node.0, format!("{:x}", seat.incarnation.0), seat.since);
        let text = Text {
            epoch: (meta.at.epoch.counter, meta.at.epoch.leader.0),
            index: meta.at.index,
            chain: *chain,
            origin: *origin,
            wall_us: meta.stamp.wall.0,
            cluster_us: meta.stamp.cluster.0,
            format: meta.format.0,
            seats: meta.roster.seats().map(seat).collect(),
            holds: meta.holds.iter().map(|(owner, until)| (owner_name(owner).to_string(), until.0)).collect(),
            vector: meta.vector.as_ref().map(ToString::to_string),
            cluster: Some(meta.roster.cluster()).filter(|id| id.is_known()).map(|id| id.to_string()),
            members: meta.roster.members().map(|all| (meta.roster.members_since(), MemberText::all(all))),
        };
        serde_json::to_string(&text).expect("numbers and strings always serialize")
    }

    pub fn from_json(json: &str) -> Option<Boundary> {
        let text: Text = serde_json::from_str(json).ok()?;
        // The log continues counting from these, so a number beyond the bound is refused even if the line checks (P50).
        if text.epoch.0 > NUMBER_MOST || text.index > INDEX_MOST {
            return None;
        }
        let seat = |(node, incarnation, since): (u32, String, Index)| {
            let incarnation = Incarnation(u64::from_str_radix(&incarnation, 16).ok()?);
            Some((NodeId(node), Seat { incarnation, since }))
        };
        let seats = text.seats.into_iter().map(seat).collect::<Option<Roster>>()?;
        let id = text.cluster.map_or(Some(ClusterId::NONE), |hex| cluster(&hex))?;
        let (since, belong) = text.members.map_or((0, None), |(since, texts)| (since, Some(members(texts))));
        let meta = SnapshotMeta {
            at: Position::new(Epoch::new(text.epoch.0, NodeId(text.epoch.1)), text.index),
            stamp: Stamp { wall: WallTime(text.wall_us), cluster: Span(text.cluster_us) },
            roster: seats.with_members(id, belong, since),
            holds: text
                .holds
                .into_iter()
                .map(|(owner, until)| Some((owner_named(&owner)?, Span(until))))
                .collect::<Option<Holds>>()?,
            format: Format(text.format),
            vector: text.vector.map(|vector| vector.parse()).transpose().ok()?,
        };
        Some(Boundary { meta, chain: text.chain, origin: text.origin })
    }
}

pub fn owner_name(owner: Owner) -> &'static str {
    match owner {
        Owner::Operator => "operator",
        Owner::Merge => "merge",
    }
}

pub fn owner_named(name: &str) -> Option<Owner> {
    match name {
        "operator" => Some(Owner::Operator),
        "merge" => Some(Owner::Merge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_survives_its_text() {
        let meta = SnapshotMeta {
            at: Position::new(Epoch::new(7, NodeId(1)), 120),
            stamp: Stamp { wall: WallTime(1_763_737_161_123_456), cluster: Span(5) },
            roster: [(NodeId(2), Seat { incarnation: Incarnation(u64::MAX), since: 3 })]
                .into_iter()
                .collect(),
            holds: [(Owner::Operator, Span(9))].into_iter().collect(),
            format: Format(1),
            vector: Some("7.1@120,8.2@90;1-6.3@50".parse().expect("a vector")),
        };
        let boundary = Boundary { meta, chain: 0xdead_beef, origin: 0 };
        assert_eq!(Boundary::from_json(&boundary.to_json()), Some(boundary));
        assert_eq!(Boundary::from_json("{}"), None);
    }
}
