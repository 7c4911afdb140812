//! A read takes a view of the state at the requested level; the route looks up the data that it shows.
//!
//! ```text
//!   local    this node's state, at once                                      Eldest-Age-Ms says how old it is
//!   leader   the leader's state, if its lease lasts (P11)                    one hop
//!   linear   the leader's state, after a round that began after the call     one hop, one round for all reads that wait (P13)
//! ```

use axum::body::Body;
use axum::http::{HeaderValue, Response};

use super::leader::at_leader;
use crate::driver::handle::{Level, View};
use crate::driver::{LeaseTime, LeaseTimes};
use crate::http::answer::lease::KnownLease;
use crate::http::answer::{self, AGE, Answer, CallFailure, Problem};
use crate::http::request::{CallKind, ClientRequest, Context};
use crate::http::url::Query;
use crate::store::Store;
use crate::types::{LeaseName, Text};

/// Looks something up in a frozen state. It runs after the read was confirmed, so that an error in the call is only reported once
/// the leader has been found. It is a plain function, which keeps nothing of an earlier attempt: a read may be answered by a
/// later one.
pub type Look = fn(&Store, &ClientRequest, &Query) -> Answer;

/// The parameters that every read takes, in addition to those of its route.
pub const COMMON: [&str; 2] = ["level", "forward"];

/// The names in a read of leases.
pub struct Page {
    pub names: Vec<LeaseName>,
    pub next: Option<Text>,
}

/// A read of leases: first it finds the names in a frozen state, then it shows them with the times that the leader knows.
/// The names come first, because the times are with the loop, which is asked once for all of them.
pub struct LeaseRead {
    /// The route's parameters.
    pub params: &'static [&'static str],
    pub find: fn(&Store, &ClientRequest, &Query) -> Result<Page, Problem>,
    pub show: fn(&Store, &ClientRequest, &Page, &[KnownLease]) -> Answer,
}

impl LeaseRead {
    /// Returns whether the read goes through many rows.
    fn is_list(&self) -> bool {
        self.params.contains(&"limit")
    }
}

#[derive(Clone, Copy)]
enum Wanted<'a> {
    One(Look),
    List(Look),
    Leases(&'a LeaseRead),
}

/// Reads at the level that the call requests: a local read is answered here, the others by the leader.
pub async fn read(context: &Context, request: &ClientRequest, params: &[&str], look: Look) -> Answer {
    at_level(context, request, params, Wanted::One(look)).await
}

/// Does the same for a read of many rows.
pub async fn list(context: &Context, request: &ClientRequest, params: &[&str], look: Look) -> Answer {
    at_level(context, request, params, Wanted::List(look)).await
}

/// Does the same for leases: only the leader knows some of their fields.
pub async fn read_leases(context: &Context, request: &ClientRequest, leases: &LeaseRead) -> Answer {
    at_level(context, request, leases.params, Wanted::Leases(leases)).await
}

async fn at_level(context: &Context, request: &ClientRequest, params: &[&str], wanted: Wanted<'_>) -> Answer {
    let query = request.query_of(&COMMON, params)?;
    if query.level() == Level::Local {
        return Ok(request.in_time(read_here(context, request, &query, wanted)).await??);
    }
    at_leader(context, request, CallKind::Read, query.no_forward, || {
        read_here(context, request, &query, wanted)
    })
    .await
}

async fn read_here(
    context: &Context,
    request: &ClientRequest,
    query: &Query<'_>,
    wanted: Wanted<'_>,
) -> Result<Response<Body>, CallFailure> {
    let view = context.handle.read(query.level()).await?;
    let mut response = match wanted {
        Wanted::One(look) => look(&view.store, request, query)?,
        Wanted::List(look) => Box::pin(context.long_reads.run(|| look(&view.store, request, query))).await?,
        Wanted::Leases(leases) => show_leases(context, request, query, &view, leases).await?,
    };
    let headers = response.headers_mut();
    answer::set_view(headers, view.epoch, view.index);
    answer::set_leader(headers, view.leader);
    if query.level() == Level::Local {
        headers.insert(AGE, HeaderValue::from(context.handle.age_ms(&view)));
    }
    Ok(response)
}

async fn show_leases(
    context: &Context,
    request: &ClientRequest,
    query: &Query<'_>,
    view: &View,
    leases: &LeaseRead,
) -> Answer {
    let find = || (leases.find)(&view.store, request, query);
    let page = if leases.is_list() { Box::pin(context.long_reads.run(find)).await? } else { find()? };
    let times = match query.level() {
        // No lease is shown on this page, so lease times are not fetched.
        _ if page.names.is_empty() => None,
        Level::Local => None,
        Level::Linear | Level::Leader => context.handle.lease_times(page.names.clone()).await,
    };
    let known = known_of(&page, times);
    let show = || (leases.show)(&view.store, request, &page, &known);
    if leases.is_list() { Box::pin(context.long_reads.run(show)).await } else { show() }
}

/// A local read shows no times: only the leader counts leases, and its count is not in the log (P38).
fn known_of(page: &Page, times: Option<LeaseTimes>) -> Vec<KnownLease> {
    match times {
        None => vec![KnownLease::default(); page.names.len()],
        Some(LeaseTimes { wall, times }) => {
            let known = |LeaseTime { left, waiting, .. }| KnownLease { left, waiting: Some(waiting), wall };
            times.into_iter().map(known).collect()
        }
    }
}
