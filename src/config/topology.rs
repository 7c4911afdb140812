//! The topology file: the nodes of the cluster, and which of them this node is.
//!
//! The file is JSON in the seed's shape, with comments. `port` and `cluster` may be left out. `node` may be left out
//! if the command line or the environment names the node, so that one file serves all nodes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value as Json;

use super::files::File;
use super::json::{Document, Item};
use super::members::{self, Draft};
use super::mistakes::Findings;
use super::place::{ChosenNode, Found, SettingPlace, Source};
use super::suggest::closest;
use super::wrong::{described, named, quoted};
use super::{Address, MemberSettings, Want, WrongFile, WrongKey, WrongTopology, WrongValue};
use crate::types::NodeId;

const DEFAULT_CLUSTER: &str = "eldest";

/// The name of the cluster is in every message between nodes.
const CLUSTER_BYTES_MOST: usize = 64;

#[derive(Debug)]
pub struct Topology {
    pub cluster: String,
    pub me: NodeId,
    /// In ascending order of ids.
    pub members: Vec<MemberSettings>,
    /// The place of this node's own address in the file.
    pub own_place: SettingPlace,
    /// The place of the list of all nodes.
    pub list_place: SettingPlace,
}

impl Topology {
    pub fn own_address(&self) -> Address {
        let own = self.members.iter().find(|member| member.id == self.me);
        own.expect("this node is one of the members").address.clone()
    }
}

/// Reads a topology. Returns `None` only after a mistake. After some mistakes there is a topology all the same, for
/// other rules to judge.
pub fn read(file: File, chosen: Option<ChosenNode>, findings: &mut Findings) -> Option<Topology> {
    let source = Source::File(file.path);
    let text = match file.text {
        Ok(text) => text,
        Err(wrong) => {
            findings.mistake(source.whole(), wrong);
            return None;
        }
    };
    let document = Document::new(&text);
    match document.root() {
        Ok(root) => Reader { document: &document, source, findings }.topology(root, chosen),
        Err((spot, why)) => {
            let place = SettingPlace { spot: Some(spot), ..source.whole() };
            findings.mistake(place, WrongFile::Syntax { why });
            None
        }
    }
}

/// Reads values, and reports those of the wrong type.
struct Reader<'a> {
    document: &'a Document<'a>,
    source: Source,
    findings: &'a mut Findings,
}

type Fields<'a> = BTreeMap<String, Found<Item<'a>>>;

impl<'a> Reader<'a> {
    fn topology(mut self, root: Item<'a>, chosen: Option<ChosenNode>) -> Option<Topology> {
        let root = self.found(root, String::new());
        let fields = self.fields(&root, &["node", "clusters", "cluster"])?;
        let cluster = self.cluster(&fields);
        let node = self.node(&root, &fields, chosen.is_some());
        let list = self.required(&root, &fields, "clusters", Want::List)?;
        let Some(elements) = list.value.elements() else {
            return self.wrong_type(&list, Want::List);
        };
        let drafts: Vec<Draft> =
            elements.into_iter().enumerate().map(|(at, item)| self.member(at, item)).collect();
        members::check(&drafts, &list.place, self.findings);
        let me = members::own(&drafts, node, chosen, self.findings)?;
        let own_place = drafts.iter().find_map(|draft| draft.address_place_of(me))?;
        let mut members: Vec<MemberSettings> =
            drafts.into_iter().map(Draft::member).collect::<Option<_>>()?;
        members.sort_by_key(|member| member.id);
        Some(Topology { cluster: cluster?, me, members, own_place, list_place: list.place })
    }

    fn cluster(&mut self, fields: &Fields<'a>) -> Option<String> {
        let Some(item) = fields.get("cluster") else {
            return Some(DEFAULT_CLUSTER.to_string());
        };
        let name = self.text(item)?;
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=CLUSTER_BYTES_MOST).contains(&name.value.len()) && name.value.bytes().all(allowed) {
            return Some(name.value);
        }
        self.findings.mistake(name.place, WrongTopology::ClusterName { found: quoted(&name.value) });
        None
    }

    /// The node that the file names as this one. If another source names the node, the file may leave it out, but
    /// what it says must not be wrong.
    fn node(&mut self, root: &Found<Item<'a>>, fields: &Fields<'a>, is_chosen: bool) -> Option<members::Own> {
        if is_chosen && !fields.contains_key("node") {
            return None;
        }
        let node = self.required(root, fields, "node", Want::OwnNode)?;
        let fields = self.fields(&node, &["name", "id"])?;
        let name = self.required(&node, &fields, "name", Want::Text).and_then(|item| self.text(&item));
        let id = self.required(&node, &fields, "id", Want::Whole);
        let id = id.and_then(|item| self.whole(&item, 1, members::ID_MOST));
        Some(members::Own { id: id?, name: name? })
    }

    fn member(&mut self, at: usize, item: Item<'a>) -> Draft {
        let item = self.found(item, format!("clusters[{at}]"));
        let path = item.place.path.clone();
        let Some(fields) = self.fields(&item, &["name", "ip", "id", "port"]) else {
            return Draft { path, name: None, id: None, host: None, port: None };
        };
        let name = self.required(&item, &fields, "name", Want::Text).and_then(|item| self.text(&item));
        let host = self.required(&item, &fields, "ip", Want::Text).and_then(|item| self.text(&item));
        let id = self.required(&item, &fields, "id", Want::Whole);
        Draft {
            path,
            name: name.and_then(|name| members::name(name, self.findings)),
            host: host.and_then(|host| members::host(host, self.findings)),
            id: id.and_then(|item| self.whole(&item, 1, members::ID_MOST)),
            port: match fields.get("port") {
                None => Some(super::address::DEFAULT_PORT),
                Some(item) => {
                    self.whole(item, 1, u16::MAX.into()).and_then(|port| port.value.try_into().ok())
                }
            },
        }
    }

    fn found(&self, item: Item<'a>, path: String) -> Found<Item<'a>> {
        let place = SettingPlace { spot: Some(self.document.spot(item)), ..self.source.clone().at(path) };
        Found { value: item, place }
    }

    /// The known fields of an object. If a field occurs twice, the first one counts.
    fn fields(&mut self, object: &Found<Item<'a>>, known: &[&str]) -> Option<Fields<'a>> {
        let Some(entries) = object.value.entries() else {
            return self.wrong_type(object, Want::Object);
        };
        let mut fields = Fields::new();
        for (key, item) in entries {
            let item = self.found(item, inside(&object.place.path, &named(&key)));
            if !known.contains(&key.as_str()) {
                let close = closest(&key, known.iter().copied()).map(str::to_string);
                let known = known.iter().map(|key| key.to_string()).collect();
                self.findings.mistake(item.place, WrongKey::Unknown { close, known });
                continue;
            }
            match fields.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(item);
                }
                Entry::Occupied(_) => self.findings.mistake(item.place, WrongKey::Twice),
            }
        }
        Some(fields)
    }

    fn required(
        &mut self,
        object: &Found<Item<'a>>,
        fields: &Fields<'a>,
        key: &str,
        want: Want,
    ) -> Option<Found<Item<'a>>> {
        let field = fields.get(key).cloned();
        if field.is_none() {
            let place = SettingPlace { path: inside(&object.place.path, key), ..object.place.clone() };
            self.findings.mistake(place, WrongKey::Missing { want });
        }
        field
    }

    fn text(&mut self, item: &Found<Item<'a>>) -> Option<Found<String>> {
        match item.value.value() {
            Json::String(value) => Some(Found { value, place: item.place.clone() }),
            _ => self.wrong_type(item, Want::Text),
        }
    }

    fn whole(&mut self, item: &Found<Item<'a>>, least: u64, most: u64) -> Option<Found<u64>> {
        let json = item.value.value();
        match json.as_u64() {
            Some(value) if (least..=most).contains(&value) => {
                Some(Found { value, place: item.place.clone() })
            }
            None if !json.is_number() => self.wrong_type(item, Want::Whole),
            _ => {
                let wrong = WrongValue::OutOfRange { found: described(&json), least, most };
                self.findings.mistake(item.place.clone(), wrong);
                None
            }
        }
    }

    /// Reports a wrong type. Returns `None`, so that a reader can end with this call.
    fn wrong_type<T>(&mut self, item: &Found<Item<'a>>, want: Want) -> Option<T> {
        let wrong = WrongValue::Type { found: described(&item.value.value()), want };
        self.findings.mistake(item.place.clone(), wrong);
        None
    }
}

fn inside(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}
