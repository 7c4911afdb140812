//! Roles and processes as readers see them, without the parts that only the leader knows.

use serde_json::Value;

use crate::store::encoding::{PAGE_BYTES_MOST, PAGE_MOST, SCAN_BYTES_MOST, SCAN_MOST};
use crate::store::state::Store;
use crate::store::tables::{Doc, Process, Role};
use crate::types::{Lease, LeaseName, Text};

/// The filter of a list of processes. An empty filter matches all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFilter<'a> {
    pub role: Option<&'a str>,
    /// The capability is the whole text, a text in a list, or a member of an object that is neither false nor null.
    pub capability: Option<&'a str>,
    pub identifier: Option<&'a str>,
}

impl ProcessFilter<'_> {
    fn admits(&self, process: &Process) -> bool {
        let new = &process.new;
        let is =
            |wanted: Option<&str>, there: Option<&str>| wanted.is_none_or(|wanted| there == Some(wanted));
        is(self.identifier, Some(&new.identifier))
            && is(self.role, new.role.as_deref())
            && self.capability.is_none_or(|wanted| has_capability(new.capabilities.as_deref(), wanted))
    }
}

fn has_capability(capabilities: Option<&str>, wanted: &str) -> bool {
    match capabilities.and_then(|text| serde_json::from_str(text).ok()) {
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(wanted)),
        Some(Value::Object(all)) => {
            all.get(wanted).is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        }
        Some(Value::String(one)) => one == wanted,
        _ => false,
    }
}

/// The cost of a page of processes so far.
#[derive(Debug, Default)]
struct Effort {
    rows: usize,
    read: usize,
    shown: usize,
}

impl Effort {
    /// Adds the cost of this process. Its capabilities are read only if the filter has one.
    fn look(&mut self, filter: &ProcessFilter, process: &Process) {
        self.rows += 1;
        if filter.capability.is_some() {
            self.read += process.new.capabilities.as_ref().map_or(0, |text| text.len());
        }
    }

    fn show(&mut self, id: &Text, process: &Process) {
        let length = |text: &Option<Text>| text.as_ref().map_or(0, |text| text.len());
        self.shown += id.len() + length(&process.new.capabilities) + length(&process.new.metadata);
    }

    fn is_spent(&self) -> bool {
        self.rows >= SCAN_MOST || self.read >= SCAN_BYTES_MOST || self.shown >= PAGE_BYTES_MOST
    }
}

/// Names, and the name to continue after if there are more.
pub type Names = (Vec<Text>, Option<Text>);

impl Store {
    /// The roles that are held.
    pub fn roles(&self, prefix: &str, after: Option<&str>, limit: usize) -> Names {
        let (rows, next) =
            self.roles.page(prefix, after, limit, |name, role| name.len() + role.value().len());
        (rows.into_iter().map(|(name, _)| name).collect(), next)
    }

    /// Scans a bounded number of rows: a page may be short, or even empty, while more pages follow.
    pub fn processes(&self, filter: &ProcessFilter, after: Option<&str>, limit: usize) -> Names {
        let (mut ids, mut effort) = (Vec::new(), Effort::default());
        let mut last: Option<&Text> = None;
        for (id, process) in self.processes.after(after) {
            // The next page begins after the last row that was looked at, not after the last one that matched. So every
            // page makes progress.
            if effort.is_spent() {
                return (ids, last.cloned());
            }
            effort.look(filter, process);
            if filter.admits(process) {
                if ids.len() >= limit.clamp(1, PAGE_MOST) {
                    return (ids, last.cloned());
                }
                effort.show(id, process);
                ids.push(id.clone());
            }
            last = Some(id);
        }
        (ids, None)
    }
}

impl Store {
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }

    pub fn process(&self, id: &str) -> Option<&Process> {
        self.processes.get(id)
    }

    /// All leases: roles first, then processes, then documents.
    pub fn leases(&self) -> impl Iterator<Item = (LeaseName, Lease)> + '_ {
        let roles = self.roles.iter().map(|(name, role)| (LeaseName::Role(name.clone()), role.lease()));
        let processes = self.processes.iter();
        let processes = processes.map(|(id, process)| (LeaseName::Process(id.clone()), process.lease()));
        let docs = self.docs.with_ttl();
        let docs = docs.filter_map(|(key, doc)| Some((LeaseName::Doc(key.clone()), doc.lease()?)));
        roles.chain(processes).chain(docs)
    }

    pub fn lease(&self, name: &LeaseName) -> Option<Lease> {
        match name {
            LeaseName::Role(name) => self.roles.get(name).map(Role::lease),
            LeaseName::Process(id) => self.processes.get(id).map(Process::lease),
            LeaseName::Doc(key) => self.docs.get(key).and_then(Doc::lease),
        }
    }

    pub fn last_token(&self) -> u64 {
        self.last_token
    }
}
