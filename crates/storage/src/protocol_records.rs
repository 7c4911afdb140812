//! The texts of the protocol's own records. They are rare, so plain JSON with member names is enough.
//!
//! A type number keeps its meaning forever, because logs keep it. These numbers belong to the protocol only in format 1;
//! clients' commands have other types (`docs/disk-format.md` has the list), and a test keeps the two apart.
//!
//! A text with a member that this program does not know is refused. Read without it, the record would have another effect
//! here than on the other nodes (I5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::meta::{MemberText, cluster, members, owner_name, owner_named};
use crate::types::{ClusterId, Entry, Founding, Incarnation, NodeId, Span, Text};

const LEAD: u16 = 0;
const REJOIN: u16 = 110;
const SERVICE_DOWN: u16 = 111;
const SERVICE_UP: u16 = 112;
const SETTLED: u16 = 115;
const MEMBERS: u16 = 116;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lead {
    /// Node, and its incarnation in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    founders: Option<BTreeMap<u32, String>>,
    /// The id in hexadecimal; missing in records from before clusters had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberText>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    members: Vec<MemberText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settled {
    upto: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rejoin {
    node: u32,
    incarnation: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceDown {
    owner: String,
    ttl_us: u64,
    reason: Text,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceUp {
    owner: String,
}

pub fn is_own(kind: u16) -> bool {
    matches!(kind, LEAD | REJOIN | SERVICE_DOWN | SERVICE_UP | SETTLED | MEMBERS)
}

pub fn push(out: &mut Vec<u8>, entry: &Entry) {
    let (kind, text) = match entry {
        Entry::Lead { founding: None } => (LEAD, "{}".to_string()),
        Entry::Lead { founding: Some(founding) } => {
            let founders = founding.founders.iter().map(|(node, life)| (node.0, hex(*life))).collect();
            // In available mode a cluster has no id, and the text does not mention one.
            let cluster = Some(founding.cluster).filter(|cluster| cluster.is_known());
            let lead = Lead {
                founders: Some(founders),
                cluster: cluster.map(|cluster| cluster.to_string()),
                members: founding.members.as_ref().map(MemberText::all),
            };
            (LEAD, json(&lead))
        }
        Entry::Members { members } => (MEMBERS, json(&Members { members: MemberText::all(members) })),
        Entry::Rejoin { node, incarnation } => {
            (REJOIN, json(&Rejoin { node: node.0, incarnation: hex(*incarnation) }))
        }
        Entry::ServiceDown { owner, ttl, reason } => {
            let owner = owner_name(*owner).to_string();
            (SERVICE_DOWN, json(&ServiceDown { owner, ttl_us: ttl.0, reason: reason.clone() }))
        }
        Entry::ServiceUp { owner } => {
            (SERVICE_UP, json(&ServiceUp { owner: owner_name(*owner).to_string() }))
        }
        Entry::Settled { upto } => (SETTLED, json(&Settled { upto: upto.to_string() })),
        Entry::Client(_) => unreachable!("a client's record has its own text"),
    };
    super::digits::push_decimal(out, u64::from(kind));
    out.push(b'|');
    out.extend_from_slice(text.as_bytes());
}

pub fn parse(kind: u16, text: &str) -> Option<Entry> {
    match kind {
        // Any other text must have the founders: `lead` refuses it without them.
        LEAD if text == "{}" => Some(Entry::Lead { founding: None }),
        LEAD => lead(serde_json::from_str(text).ok()?),
        REJOIN => {
            let rejoin: Rejoin = serde_json::from_str(text).ok()?;
            let incarnation = incarnation(&rejoin.incarnation)?;
            Some(Entry::Rejoin { node: NodeId(rejoin.node), incarnation })
        }
        SERVICE_DOWN => {
            let down: ServiceDown = serde_json::from_str(text).ok()?;
            let owner = owner_named(&down.owner)?;
            Some(Entry::ServiceDown { owner, ttl: Span(down.ttl_us), reason: down.reason })
        }
        SERVICE_UP => {
            let up: ServiceUp = serde_json::from_str(text).ok()?;
            Some(Entry::ServiceUp { owner: owner_named(&up.owner)? })
        }
        MEMBERS => {
            let text: Members = serde_json::from_str(text).ok()?;
            Some(Entry::Members { members: members(text.members) })
        }
        SETTLED => {
            let settled: Settled = serde_json::from_str(text).ok()?;
            Some(Entry::Settled { upto: settled.upto.parse().ok()? })
        }
        _ => None,
    }
}

fn lead(lead: Lead) -> Option<Entry> {
    let founder = |(node, life): (u32, String)| Some((NodeId(node), incarnation(&life)?));
    let founders = lead.founders?.into_iter().map(founder).collect::<Option<BTreeMap<_, _>>>()?;
    let cluster = lead.cluster.map_or(Some(ClusterId::NONE), |hex| cluster(&hex))?;
    let founding = Founding { founders, cluster, members: lead.members.map(members) };
    Some(Entry::Lead { founding: Some(Box::new(founding)) })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and strings always serialize")
}

pub fn hex(incarnation: Incarnation) -> String {
    format!("{:x}", incarnation.0)
}

pub fn incarnation(hex: &str) -> Option<Incarnation> {
    u64::from_str_radix(hex, 16).ok().map(Incarnation)
}
