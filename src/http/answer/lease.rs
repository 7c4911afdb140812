//! Roles and processes as responses show them: fields from the state, and fields that only the leader knows.
//!
//! The state has what records say: the holder, its token, the ttl. How much of a lease is left is counted by
//! the leader alone, in memory (P38, P39). So these fields are null in an answer of another node, and never a
//! guess.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::store::{Process, Role, date_text};
use crate::types::{Span, Text, WallTime};

#[derive(Serialize)]
pub struct Holder<'a> {
    instance_id: &'a str,
    address: Option<&'a str>,
    metadata: Option<&'a RawValue>,
}

/// A role as it is shown in a list.
#[derive(Serialize)]
pub struct RoleShown<'a> {
    role: &'a str,
    leader: Option<Holder<'a>>,
    token: Option<u64>,
    ttl_ms: Option<u64>,
    acquired_at: Option<String>,
    expires_in_ms: Option<u64>,
    waiting: Option<usize>,
}

#[derive(Serialize)]
pub struct ProcessShown<'a> {
    id: &'a str,
    identifier: &'a str,
    role: Option<&'a str>,
    capabilities: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    channel: String,
    ttl_ms: u64,
    registered_at: String,
    /// Null if only the leader knows it.
    last_seen: Option<String>,
    expires_in_ms: Option<u64>,
}

/// The leader's knowledge of one lease: the remaining time, the number of waiting callers, and the leader's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownLease {
    pub left: Option<Span>,
    pub waiting: Option<usize>,
    pub wall: WallTime,
}

pub fn millis(span: Span) -> u64 {
    span.0 / 1000
}

/// The text in the state is JSON.
fn raw(text: &Option<Text>) -> Option<&RawValue> {
    text.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

pub fn holder(role: &Role) -> Holder<'_> {
    let claim = &role.claim;
    Holder { instance_id: &claim.instance, address: claim.address.as_deref(), metadata: raw(&claim.metadata) }
}

pub fn role_shown<'a>(name: &'a str, role: Option<&'a Role>, known: KnownLease) -> RoleShown<'a> {
    RoleShown {
        role: name,
        leader: role.map(holder),
        token: role.map(|role| role.token),
        ttl_ms: role.map(|role| millis(role.claim.ttl)),
        acquired_at: role.map(|role| date_text(role.since)),
        expires_in_ms: role.and(known.left).map(millis),
        waiting: known.waiting,
    }
}

pub fn process_shown<'a>(id: &'a str, process: &'a Process, known: KnownLease) -> ProcessShown<'a> {
    let new = &process.new;
    // A process was last heard when its lease began again: the used part of the ttl is the time since then.
    let seen = |left: Span| {
        let silent = new.ttl.0.saturating_sub(left.0);
        date_text(WallTime(known.wall.0.saturating_sub(silent)))
    };
    ProcessShown {
        id,
        identifier: &new.identifier,
        role: new.role.as_deref(),
        capabilities: raw(&new.capabilities),
        metadata: raw(&new.metadata),
        channel: format!("worker:slave:{id}"),
        ttl_ms: millis(new.ttl),
        registered_at: date_text(process.since),
        last_seen: known.left.map(seen),
        expires_in_ms: known.left.map(millis),
    }
}

/// The lease right after a grant or a renewal.
/// The node that grants is the leader, so its own clock is the leader's clock.
pub fn just_now(left: Span) -> KnownLease {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let wall = WallTime(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX));
    KnownLease { left: Some(left), waiting: None, wall }
}

/// Writes `{"items","next"}`.
pub fn list(items: impl Iterator<Item = String>, next: Option<&Text>) -> String {
    let mut text = String::from("{\"items\":[");
    for (number, item) in items.enumerate() {
        text.push_str(if number > 0 { "," } else { "" });
        text.push_str(&item);
    }
    let next = next.map_or(Value::Null, |next| Value::from(&**next));
    write!(text, "],\"next\":{next}}}").unwrap_or_default();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_items_and_where_the_next_one_begins() {
        let items =
            |items: &[&str]| items.iter().map(|item| item.to_string()).collect::<Vec<_>>().into_iter();
        assert_eq!(list(items(&[]), None), r#"{"items":[],"next":null}"#);
        assert_eq!(list(items(&["1", "{}"]), Some(&"a\"b".into())), r#"{"items":[1,{}],"next":"a\"b"}"#);
    }
}
