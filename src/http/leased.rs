//! How roles and processes are shown, and reading them: what is in the state, and what only the leader knows.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::headers::{ACKS, AGE, set_leader, set_position, set_view, value_of};
use super::problem::Problem;
use super::query::Query;
use super::{answers, turn};
use crate::driver::api::Level;
use crate::driver::{Granted, HeldBy, LeaseTimes};
use crate::store::{Process, Role, Store, date_text};
use crate::types::{LeaseName, Span, Text, WallTime};

/// What every read takes, besides what the route adds.
const COMMON: [&str; 2] = ["level", "forward"];

#[derive(Serialize)]
pub struct Holder<'a> {
    instance_id: &'a str,
    address: Option<&'a str>,
    metadata: Option<&'a RawValue>,
}

/// A role as a list shows it.
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
    /// Null where only the leader knows.
    last_seen: Option<String>,
    expires_in_ms: Option<u64>,
}

/// What the leader said of one lease: how much it has left, how many wait for it, and the leader's own time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    left: Option<Span>,
    waiting: Option<usize>,
    wall: WallTime,
}

pub fn millis(span: Span) -> u64 {
    span.0 / 1000
}

/// What stands in the state is JSON.
fn raw(text: &Option<Text>) -> Option<&RawValue> {
    text.as_deref().and_then(|text| serde_json::from_str(text).ok())
}

pub fn holder(role: &Role) -> Holder<'_> {
    let claim = &role.claim;
    Holder { instance_id: &claim.instance, address: claim.address.as_deref(), metadata: raw(&claim.metadata) }
}

pub fn role_shown<'a>(name: &'a str, role: Option<&'a Role>, known: Known) -> RoleShown<'a> {
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

pub fn process_shown<'a>(id: &'a str, process: &'a Process, known: Known) -> ProcessShown<'a> {
    let new = &process.new;
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

/// What a renewal or a grant has just said.
pub fn just_now(left: Span) -> Known {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let wall = WallTime(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX));
    Known { left: Some(left), waiting: None, wall }
}

/// A problem's members about who has a role: the same as in the answer of one who has it.
pub fn with_holder(problem: Problem, held: &HeldBy) -> Problem {
    let leader = held.by.as_ref().and_then(|role| serde_json::to_value(holder(role)).ok());
    problem
        .with("role", &*held.role)
        .with("leader", leader.unwrap_or(Value::Null))
        .with("token", held.by.as_ref().map(|role| role.token))
        .with("expires_in_ms", held.by.as_ref().and(held.expires_in).map(millis))
}

/// An answer with where its record stands, if it took one.
pub fn granted<T>(
    context: &Context,
    granted: &Granted<T>,
    status: StatusCode,
    shown: &impl Serialize,
) -> Response<Body> {
    let mut response = answers::data(shown);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    set_position(headers, granted.position);
    set_leader(headers, Some(context.me()));
    if let Some(acks) = granted.acks {
        headers.insert(ACKS, value_of(format!("{acks}/{}", context.setup.members.len())));
    }
    response
}

/// The names that a read is about, and how their entries are written once the leader has said what it knows.
pub struct Page {
    pub names: Vec<LeaseName>,
    pub next: Option<Text>,
}

/// A read as the two routes have it: which leases, by a frozen state; then how they are shown.
pub struct Reading {
    /// What the route takes besides.
    pub known: &'static [&'static str],
    pub find: fn(&Store, &Asked, &Query) -> Result<Page, Problem>,
    pub show: fn(&Store, &Page, &[Known]) -> Result<String, Problem>,
}

pub async fn read(
    context: &Arc<Context>,
    asked: &Asked,
    reading: &Reading,
) -> Result<Response<Body>, Problem> {
    let known = [&COMMON, reading.known].concat();
    let query = asked.query(&known)?;
    if query.level() == Level::Local {
        return Ok(asked.in_time(here(context, asked, &query, reading)).await??);
    }
    turn::take(context, asked, turn::Kind::Read, query.stay, || here(context, asked, &query, reading)).await
}

async fn here(
    context: &Context,
    asked: &Asked,
    query: &Query<'_>,
    reading: &Reading,
) -> Result<Response<Body>, Failure> {
    let view = context.handle.read(query.level()).await?;
    let page = (reading.find)(&view.store, asked, query)?;
    let times = match query.level() {
        Level::Local => None,
        Level::Linear | Level::Leader => context.handle.lease_times(page.names.clone()).await,
    };
    let shown = (reading.show)(&view.store, &page, &known_of(&page, times))?;
    let mut response = answers::json(StatusCode::OK, shown);
    let headers = response.headers_mut();
    set_view(headers, view.epoch, view.index);
    set_leader(headers, view.leader);
    if query.level() == Level::Local {
        headers.insert(AGE, HeaderValue::from(view.age_ms));
    }
    Ok(response)
}

fn known_of(page: &Page, times: Option<LeaseTimes>) -> Vec<Known> {
    match times {
        None => vec![Known::default(); page.names.len()],
        Some(LeaseTimes { wall, times }) => {
            let known = |(left, waiting)| Known { left, waiting: Some(waiting), wall };
            times.into_iter().map(known).collect()
        }
    }
}

/// `{"items","next"}`
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
