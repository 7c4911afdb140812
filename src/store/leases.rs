//! Roles and processes: who holds what, under which token, and for how long at a time.
//!
//! What is written here is granted, replaced or ended by records. Whether a lease has been renewed lately is for the leader
//! to know (`crate::leases`), which proposes the records that end those that were not. No two sides merge leases: a role
//! has one holder afterwards, and none of this goes to the journal, because a claim that lapses by itself is no data.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::fields::Fields;
use super::hash::{Hash, Mix};
use super::json::write_text;
use super::key::{Key, written};
use super::lease_command::{Claim, NewProcess};
use super::limits::TOKENS_END;
use super::rows::parts;
use super::state::Store;
use super::table::Row;
use crate::types::{Lease, LeaseName, Position, Text, WallTime};

/// A role that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub at: Position,
    pub claim: Arc<Claim>,
    pub token: u64,
    pub since: WallTime,
    pub aged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub at: Position,
    pub new: Arc<NewProcess>,
    /// Of this registration: what an end of an earlier one does not concern.
    pub token: u64,
    pub since: WallTime,
    pub aged: bool,
}

impl Role {
    pub fn lease(&self) -> Lease {
        Lease { token: self.token, ttl: self.claim.ttl, aged: self.aged }
    }

    /// `{"instance_id","ttl_ms","address"?,"metadata"?,"token","since_us","aged"?}`
    pub fn value(&self) -> String {
        let mut text = String::new();
        self.claim.write(&mut text).expect("a string takes everything");
        finished(&text, self.token, self.since, self.aged)
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn from_entry(json: &str) -> Option<Role> {
        let (at, value) = parts(json)?;
        Role::read(at, value)
    }

    pub fn read(at: Position, value: &RawValue) -> Option<Role> {
        let fields = Fields::read(value).ok()?;
        fields.only(&["instance_id", "ttl_ms", "address", "metadata", "token", "since_us", "aged"]).ok()?;
        let (token, since, aged) = rest(&fields)?;
        Some(Role { at, claim: Claim::read(&fields).ok()?.into(), token, since, aged })
    }
}

impl Process {
    pub fn lease(&self) -> Lease {
        Lease { token: self.token, ttl: self.new.ttl, aged: self.aged }
    }

    /// `{"identifier","role"?,"capabilities"?,"metadata"?,"ttl_ms","token","since_us","aged"?}`
    pub fn value(&self) -> String {
        let mut text = String::new();
        self.new.write(&mut text).expect("a string takes everything");
        finished(&text, self.token, self.since, self.aged)
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn from_entry(json: &str) -> Option<Process> {
        let (at, value) = parts(json)?;
        Process::read(at, value)
    }

    pub fn read(at: Position, value: &RawValue) -> Option<Process> {
        let fields = Fields::read(value).ok()?;
        let known = ["identifier", "role", "capabilities", "metadata", "ttl_ms", "token", "since_us", "aged"];
        fields.only(&known).ok()?;
        let (token, since, aged) = rest(&fields)?;
        Some(Process { at, new: NewProcess::read(&fields).ok()?.into(), token, since, aged })
    }
}

/// An object of these members, each of which has its comma before it, and what both kinds of leases have.
fn finished(members: &str, token: u64, since: WallTime, aged: bool) -> String {
    let aged = if aged { ",\"aged\":true" } else { "" };
    format!("{{{},\"token\":{token},\"since_us\":{}{aged}}}", &members[1..], since.0)
}

fn rest(fields: &Fields) -> Option<(u64, WallTime, bool)> {
    let since = fields.needed("since_us").ok()?.get().parse().ok()?;
    Some((fields.token("token").ok()?, WallTime(since), fields.flag("aged").ok()?))
}

/// Roles and processes as readers are shown them, but for what only the leader knows.
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

    /// Beats every token that was ever given out, here or, by the wall time, in what a restored backup has never heard of
    /// (P30). Where sides are told apart no two of them give the same one: each leader has a remainder of its own.
    pub(super) fn next_token(&self, at: Position, wall: WallTime) -> u64 {
        const LEADERS: u64 = 1024;
        let least = (self.last_token + 1).max(wall.0);
        let token = match self.tells_sides_apart() {
            false => least,
            true => {
                let own = u64::from(at.epoch.leader.0) % LEADERS;
                least + (own + LEADERS - least % LEADERS) % LEADERS
            }
        };
        debug_assert!(token < TOKENS_END);
        token
    }

    pub fn last_token(&self) -> u64 {
        self.last_token
    }
}

impl Key {
    /// The lease that it names.
    pub fn lease(&self) -> Option<LeaseName> {
        match self {
            Key::Role(name) => Some(LeaseName::Role(name.clone())),
            Key::Process(id) => Some(LeaseName::Process(id.clone())),
            _ => None,
        }
    }
}

impl From<&LeaseName> for Key {
    fn from(name: &LeaseName) -> Key {
        match name {
            LeaseName::Role(name) => Key::Role(name.clone()),
            LeaseName::Process(id) => Key::Process(id.clone()),
        }
    }
}

impl Row for Role {
    const TABLE: &'static str = "role";
}

impl Row for Process {
    const TABLE: &'static str = "process";
}

impl Mix for Role {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.value().as_str().mix(hash);
    }
}

impl Mix for Process {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.value().as_str().mix(hash);
    }
}

/// What became of leases, for those who are told one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    RoleAcquired { role: Text, instance: Text, token: u64 },
    RoleLost { role: Text, instance: Text, token: u64, why: Ended },
    ProcessRegistered { id: Text, process: Arc<NewProcess> },
    ProcessRemoved { id: Text, process: Arc<NewProcess>, why: Ended },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By the holder's own word.
    Released,
    /// By its own or an operator's word.
    Removed,
    /// It was not renewed.
    Expired,
    /// Another was named.
    Replaced,
    /// Another side's stays.
    Merged,
}

impl Ended {
    pub fn name(self) -> &'static str {
        match self {
            Ended::Released => "released",
            Ended::Removed => "removed",
            Ended::Expired => "expired",
            Ended::Replaced => "replaced",
            Ended::Merged => "merged",
        }
    }
}

impl LeaseEvent {
    /// As JSON members, each with its comma before it.
    pub fn members(&self) -> String {
        let mut out = String::new();
        let mut text = |name: &str, text: &str| {
            write!(out, ",\"{name}\":")
                .and_then(|()| write_text(&mut out, text))
                .expect("a string takes everything");
        };
        match self {
            LeaseEvent::RoleAcquired { role, instance, .. } | LeaseEvent::RoleLost { role, instance, .. } => {
                text("role", role);
                text("instance_id", instance);
            }
            LeaseEvent::ProcessRegistered { id, process }
            | LeaseEvent::ProcessRemoved { id, process, .. } => {
                text("process", id);
                text("identifier", &process.identifier);
                process.role.iter().for_each(|role| text("role", role));
            }
        }
        let rest = match self {
            LeaseEvent::RoleAcquired { token, .. } => format!(",\"token\":{token}"),
            LeaseEvent::RoleLost { token, why, .. } => {
                format!(",\"token\":{token},\"reason\":\"{}\"", why.name())
            }
            LeaseEvent::ProcessRegistered { .. } => String::new(),
            LeaseEvent::ProcessRemoved { why, .. } => format!(",\"reason\":\"{}\"", why.name()),
        };
        out + &rest
    }

    /// The role's name or the process's id.
    pub fn name(&self) -> &Text {
        match self {
            LeaseEvent::RoleAcquired { role, .. } | LeaseEvent::RoleLost { role, .. } => role,
            LeaseEvent::ProcessRegistered { id, .. } | LeaseEvent::ProcessRemoved { id, .. } => id,
        }
    }
}
