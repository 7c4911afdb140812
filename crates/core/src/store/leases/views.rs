//! Readers are shown roles and processes, but for what only the leader knows.

use serde_json::Value;

use crate::store::state::Store;
use crate::store::tables::{Process, Role};
use crate::types::{Lease, LeaseName, Text};

/// What a list of processes is to show. Nothing is everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFilter<'a> {
    pub role: Option<&'a str>,
    /// A text in a list of capabilities, or a member of an object that is neither false nor null.
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

/// Names, and the one to go on after if there are more.
pub type Names = (Vec<Text>, Option<Text>);

impl Store {
    /// The roles that somebody holds.
    pub fn roles(&self, prefix: &str, after: Option<&str>, limit: usize) -> Names {
        let (rows, next) =
            self.roles.page(prefix, after, limit, |name, role| name.len() + role.value().len());
        (rows.into_iter().map(|(name, _)| name).collect(), next)
    }

    pub fn processes(&self, filter: &ProcessFilter, after: Option<&str>, limit: usize) -> Names {
        let follows = |id: &Text| after.is_none_or(|after| **id > *after);
        let wanted = self.processes.iter().filter(|(id, process)| follows(id) && filter.admits(process));
        let mut ids: Vec<Text> = wanted.take(limit + 1).map(|(id, _)| id.clone()).collect();
        let more = ids.len() > limit;
        ids.truncate(limit);
        let next = ids.last().filter(|_| more).cloned();
        (ids, next)
    }
}

impl Store {
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }

    pub fn process(&self, id: &str) -> Option<&Process> {
        self.processes.get(id)
    }

    /// All of them, roles first.
    pub fn leases(&self) -> impl Iterator<Item = (LeaseName, Lease)> + '_ {
        let roles = self.roles.iter().map(|(name, role)| (LeaseName::Role(name.clone()), role.lease()));
        let processes = self.processes.iter();
        roles.chain(processes.map(|(id, process)| (LeaseName::Process(id.clone()), process.lease())))
    }

    pub fn lease(&self, name: &LeaseName) -> Option<Lease> {
        match name {
            LeaseName::Role(name) => self.roles.get(name).map(Role::lease),
            LeaseName::Process(id) => self.processes.get(id).map(Process::lease),
        }
    }

    pub fn last_token(&self) -> u64 {
        self.last_token
    }
}
