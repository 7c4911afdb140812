//! Rules about all members together: no member occurs twice, and this node is one of them.

use std::collections::BTreeMap;

use super::mistakes::Findings;
use super::place::{ChosenNode, Found, SettingPlace};
use super::wrong::quoted;
use super::{Address, ConfigRemark, Host, MemberSettings, WrongTopology, WrongValue};
use crate::types::NodeId;

pub const ID_MOST: u64 = 1 << 31;

/// The largest cluster. Every node talks to every other one, and a majority of more nodes is too slow to be worth it.
const MEMBERS_MOST: usize = 101;

/// A name appears in logs and tables.
const NAME_CHARS_MOST: usize = 128;

/// One entry of `clusters`. A field with a mistake is `None`.
#[derive(Debug)]
pub struct Draft {
    /// The path of the entry, such as `clusters[1]`.
    pub path: String,
    pub name: Option<Found<String>>,
    pub id: Option<Found<u64>>,
    pub host: Option<Found<Host>>,
    pub port: Option<u16>,
}

/// The node that the topology itself names as this one.
#[derive(Debug)]
pub struct Own {
    pub id: Found<u64>,
    pub name: Found<String>,
}

impl Draft {
    pub fn member(self) -> Option<MemberSettings> {
        let (address, id) = (self.address()?, self.node_id()?);
        Some(MemberSettings { id, name: self.name?.value, address })
    }

    pub fn address_place_of(&self, node: NodeId) -> Option<SettingPlace> {
        let host = self.host.as_ref().filter(|_| self.node_id() == Some(node));
        host.map(|host| host.place.clone())
    }

    fn node_id(&self) -> Option<NodeId> {
        let id = self.id.as_ref()?;
        id.value.try_into().ok().map(NodeId)
    }

    fn address(&self) -> Option<Address> {
        Some(Address { host: self.host.as_ref()?.value.clone(), port: self.port? })
    }
}

pub fn name(name: Found<String>, findings: &mut Findings) -> Option<Found<String>> {
    let chars = name.value.chars().count();
    if (1..=NAME_CHARS_MOST).contains(&chars) && !name.value.chars().any(char::is_control) {
        return Some(name);
    }
    let wrong = WrongTopology::MemberName { found: quoted(&name.value), most: NAME_CHARS_MOST };
    findings.mistake(name.place, wrong);
    None
}

pub fn host(text: Found<String>, findings: &mut Findings) -> Option<Found<Host>> {
    match Host::parse_callable(&text.value) {
        Ok(value) => Some(Found { value, place: text.place }),
        Err(hint) => {
            let wrong = WrongValue::NotAnAddress { found: quoted(&text.value), hint };
            findings.mistake(text.place, wrong);
            None
        }
    }
}

/// Checks the number of members, and that no two share an id, a name or an address.
pub fn check(drafts: &[Draft], place: &SettingPlace, findings: &mut Findings) {
    let members = drafts.len();
    if members == 0 {
        findings.mistake(place.clone(), WrongTopology::NoMembers);
    } else if members > MEMBERS_MOST {
        findings.mistake(place.clone(), WrongTopology::TooManyMembers { members, most: MEMBERS_MOST });
    }
    let (mut ids, mut names, mut addresses) = (Taken::default(), Taken::default(), Taken::default());
    for draft in drafts {
        if let Some(id) = &draft.id {
            ids.take(id.value.to_string(), &id.place, &draft.path, findings);
        }
        if let Some(name) = &draft.name {
            names.take(quoted(&name.value), &name.place, &draft.path, findings);
        }
        if let (Some(address), Some(host)) = (draft.address(), &draft.host) {
            addresses.take(address.to_string(), &host.place, &draft.path, findings);
        }
    }
    check_loopback(drafts, findings);
}

fn check_loopback(drafts: &[Draft], findings: &mut Findings) {
    let is_loopback = |draft: &&Draft| draft.host.as_ref().is_some_and(|host| host.value.is_loopback());
    let loopback: Vec<&Draft> = drafts.iter().filter(is_loopback).collect();
    if loopback.len() == drafts.len() {
        return;
    }
    for draft in loopback {
        if let (Some(name), Some(address)) = (&draft.name, draft.address()) {
            findings.remark(ConfigRemark::LoopbackAmongOthers { name: name.value.clone(), address });
        }
    }
}

/// This node: the one that the command line or the environment names in `chosen`, or else the one that the topology
/// names. Returns `None` after a mistake.
pub fn own(
    drafts: &[Draft],
    own: Option<Own>,
    chosen: Option<ChosenNode>,
    findings: &mut Findings,
) -> Option<NodeId> {
    if let Some(ChosenNode { id, source }) = chosen {
        return find(drafts, id, source.at("node"), findings).and_then(Draft::node_id);
    }
    let Own { id, name } = own?;
    let draft = find(drafts, id.value, id.place, findings)?;
    if let Some(other) = draft.name.as_ref().filter(|other| other.value != name.value) {
        let (found, by) = (quoted(&name.value), draft.path.clone());
        findings.mistake(name.place, WrongTopology::OtherName { found, name: quoted(&other.value), by });
    }
    draft.node_id()
}

fn find<'a>(drafts: &'a [Draft], id: u64, place: SettingPlace, findings: &mut Findings) -> Option<&'a Draft> {
    let draft = drafts.iter().find(|draft| draft.id.as_ref().is_some_and(|found| found.value == id));
    let ids: Option<Vec<u32>> = drafts.iter().map(|draft| draft.node_id().map(|id| id.0)).collect();
    // A member whose id could not be read might be this node. If there are no members, that is reported already.
    if let (None, Some(ids)) = (draft, ids.filter(|ids| !ids.is_empty())) {
        findings.mistake(place, WrongTopology::NoSuchNode { id, ids });
    }
    draft
}

/// The values that were seen, each with the place where it was first seen.
#[derive(Default)]
struct Taken(BTreeMap<String, String>);

impl Taken {
    fn take(&mut self, found: String, place: &SettingPlace, path: &str, findings: &mut Findings) {
        match self.0.get(&found) {
            Some(by) => findings.mistake(place.clone(), WrongTopology::Taken { found, by: by.clone() }),
            None => {
                self.0.insert(found, path.to_string());
            }
        }
    }
}
