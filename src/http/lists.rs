//! Reading: a view of the wanted level, and what is looked up in it. Users and elections.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode};

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::headers::{AGE, set_leader, set_view};
use super::path::name_after;
use super::problem::{Code, Problem};
use super::query::Query;
use super::{answers, turn};
use crate::driver::api::Level;
use crate::store::{Json, Store};

pub type Lookup = Result<Response<Body>, Problem>;

/// Looks something up in a frozen state. Runs after the read was confirmed: what is wrong with the call is said then, and
/// not before the leader has been found.
pub type Look = fn(&Store, &Asked, &Query) -> Lookup;

/// What every read takes, besides what the route adds.
const COMMON: [&str; 2] = ["level", "forward"];

pub async fn users(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    take(&context, &asked, &["limit", "after"], |store, _, query| {
        Ok(page(&store.users(query.after.as_deref(), query.limit())))
    })
    .await
}

pub async fn user(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    take(&context, &asked, &[], |store, asked, _| {
        let name = name_after(asked.path(), "/v1/users/", "name")?;
        store.user(&name).map(|user| page(&user)).ok_or_else(|| missing("user"))
    })
    .await
}

pub async fn elections(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    take(&context, &asked, &["limit", "after"], |store, _, query| {
        Ok(page(&store.elections(query.after.as_deref(), query.limit())))
    })
    .await
}

pub async fn election(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    take(&context, &asked, &[], |store, asked, _| {
        let name = name_after(asked.path(), "/v1/elections/", "name")?;
        store.election(&name).map(|election| page(&election)).ok_or_else(|| missing("election"))
    })
    .await
}

/// Reads at the level that the call asks for: a local read is answered here, the others by the leader.
pub async fn take(context: &Context, asked: &Asked, known: &[&str], look: Look) -> Lookup {
    let known = [&COMMON, known].concat();
    let query = asked.query(&known)?;
    let level = query.level();
    if level == Level::Local {
        return Ok(asked.in_time(here(context, asked, &query, look)).await??);
    }
    turn::take(context, asked, turn::Kind::Read, query.stay, || here(context, asked, &query, look)).await
}

async fn here(
    context: &Context,
    asked: &Asked,
    query: &Query<'_>,
    look: Look,
) -> Result<Response<Body>, Failure> {
    let view = context.handle.read(query.level()).await?;
    let mut response = look(&view.store, asked, query)?;
    let headers = response.headers_mut();
    set_view(headers, view.epoch, view.index);
    set_leader(headers, view.leader);
    if query.level() == Level::Local {
        headers.insert(AGE, HeaderValue::from(view.age_ms));
    }
    Ok(response)
}

/// Anything that writes itself as JSON.
pub fn page(value: &impl Json) -> Response<Body> {
    answers::json(StatusCode::OK, value.to_json())
}

fn missing(what: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no {what} of that name"))
}
