//! The rows of roles and processes: the holders, their tokens, and the ttls of their leases.
//!
//! Records grant, replace and end leases. Leases of two sides are not combined: a role has one holder after a merge, and the
//! journal has no entry about it, because a claim that expires is not data.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::data::parts;
use super::key::written;
use super::table::Row;
use crate::store::command::{NewProcess, RoleClaim};
use crate::store::encoding::{Fields, Hash, Mix};
use crate::types::{Lease, Position, Text, WallTime};

/// A role that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub at: Position,
    pub claim: Arc<RoleClaim>,
    pub token: u64,
    pub since: WallTime,
    pub aged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub at: Position,
    pub new: Arc<NewProcess>,
    /// The token of this registration. An end that was proposed for an earlier registration does not apply to it.
    pub token: u64,
    pub since: WallTime,
    pub aged: bool,
}

impl Role {
    pub fn lease(&self) -> Lease {
        Lease { token: self.token, ttl: self.claim.ttl, aged: self.aged }
    }

    /// `{"instance_id","ttl_ms","address"?,"metadata"?,"secret_hash"?,"token","since_us","aged"?}`
    pub fn value(&self) -> String {
        let mut text = String::new();
        self.claim.write(&mut text).expect("writing to a String cannot fail");
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
        fields
            .only(&[
                "instance_id",
                "ttl_ms",
                "address",
                "metadata",
                "secret_hash",
                "token",
                "since_us",
                "aged",
            ])
            .ok()?;
        let (token, since, aged) = rest(&fields)?;
        Some(Role { at, claim: RoleClaim::read(&fields).ok()?.into(), token, since, aged })
    }
}

impl Process {
    pub fn lease(&self) -> Lease {
        Lease { token: self.token, ttl: self.new.ttl, aged: self.aged }
    }

    /// `{"identifier","role"?,"capabilities"?,"metadata"?,"ttl_ms","secret_hash"?,"token","since_us","aged"?}`
    pub fn value(&self) -> String {
        let mut text = String::new();
        self.new.write(&mut text).expect("writing to a String cannot fail");
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
        let known = [
            "identifier",
            "role",
            "capabilities",
            "metadata",
            "ttl_ms",
            "secret_hash",
            "token",
            "since_us",
            "aged",
        ];
        fields.only(&known).ok()?;
        let (token, since, aged) = rest(&fields)?;
        Some(Process { at, new: NewProcess::read(&fields).ok()?.into(), token, since, aged })
    }
}

/// An object with these members, each of which has its comma before it, and the members that both kinds of leases have.
fn finished(members: &str, token: u64, since: WallTime, aged: bool) -> String {
    let aged = if aged { ",\"aged\":true" } else { "" };
    format!("{{{},\"token\":{token},\"since_us\":{}{aged}}}", &members[1..], since.0)
}

fn rest(fields: &Fields) -> Option<(u64, WallTime, bool)> {
    let since = fields.needed("since_us").ok()?.get().parse().ok()?;
    Some((fields.token("token").ok()?, WallTime(since), fields.flag("aged").ok()?))
}

fn length(text: &Option<Text>) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}

impl Row for Role {
    const TABLE: &'static str = "role";

    /// The weight does not include the mark that a lease has aged: the replica's own records must not make the state larger.
    fn weight(&self) -> usize {
        let RoleClaim { instance, address, metadata, .. } = &*self.claim;
        instance.len() + length(address) + length(metadata)
    }
}

impl Row for Process {
    const TABLE: &'static str = "process";

    fn weight(&self) -> usize {
        let NewProcess { identifier, role, capabilities, metadata, .. } = &*self.new;
        identifier.len() + length(role) + length(capabilities) + length(metadata)
    }
}

impl Mix for Role {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        // The digest covers the text of the row: a change of the text is another computation (P25).
        self.value().as_str().mix(hash);
    }
}

impl Mix for Process {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.value().as_str().mix(hash);
    }
}
