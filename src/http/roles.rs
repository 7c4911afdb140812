//! Roles: one holder each, for as long as it renews, with a token that rises with every grant.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Serialize;
use tokio::time::{Duration, Instant};

use super::asked::Asked;
use super::context::Context;
use super::errors::{Failure, unknown_route};
use super::leased::{self, Known, Page, Reading, holder, millis, role_shown};
use super::lists::Lookup;
use super::path::name_after;
use super::problem::Problem;
use super::query::Query;
use super::{answers, body, hold, idempotency, turn, writes};
use crate::driver::Granted;
use crate::store::{self, Acquisition, Claim, Command, Role, Store, Tenure};
use crate::types::{LeaseName, Span, Text};

type Answer = Result<Response<Body>, Problem>;

pub const PREFIX: &str = "/v1/roles/";

pub async fn list(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    const LIST: Reading =
        Reading { known: &["prefix", "limit", "after"], find: find_roles, show: show_roles };
    leased::read(&context, &asked, &LIST).await
}

/// One role, or the check of a token.
pub async fn get(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    const ONE: Reading = Reading { known: &[], find: find_role, show: show_role };
    match asked.path().strip_suffix("/check") {
        None => leased::read(&context, &asked, &ONE).await,
        Some(_) => check(&context, &asked).await,
    }
}

/// What may be done about one: how the path ends.
pub async fn order(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    match asked.path().strip_suffix("/hold") {
        Some(path) => {
            let role = role_in(path)?;
            hold::hold(context, &asked, role).await
        }
        None => answered(&context, asked).await,
    }
}

/// Those that end with their answer.
pub async fn answered(context: &Arc<Context>, asked: Asked) -> Answer {
    let path = asked.path().to_string();
    let (path, order) = path.rsplit_once('/').unwrap_or_default();
    match order {
        "acquire" => acquire(context, asked, role_in(path)?).await,
        "renew" => renew(context, &asked, role_in(path)?).await,
        "release" => release(context, &asked).await,
        "elect" => elect(context, &asked, role_in(path)?).await,
        _ => Err(unknown_route(asked.path())),
    }
}

fn role_in(path: &str) -> Result<Text, Problem> {
    Ok(store::lease_name("role", &name_after(path, PREFIX, "role")?)?)
}

/// A wait is in addition to the time that every call has.
async fn acquire(context: &Arc<Context>, mut asked: Asked, role: Text) -> Answer {
    let stay = asked.query(&["forward"])?.stay;
    body::check_media_type(&asked.parts.headers)?;
    let Acquisition { claim, priority, wait } = Acquisition::read(body::raw(&asked.body)?)?;
    let (claim, wait) = (Arc::new(claim), Duration::from_micros(wait.0));
    let until = Instant::now() + wait;
    asked.deadline += wait;
    turn::take(context, &asked, turn::Kind::Write, stay, || async {
        let call = idempotency::call(&asked.parts, &asked.body)?;
        let left = until.saturating_duration_since(Instant::now());
        let wait = Span(u64::try_from(left.as_micros()).unwrap_or_default());
        let granted = context.handle.acquire(role.clone(), claim.clone(), priority, wait, call).await?;
        Ok(show_granted(context, &role, &granted))
    })
    .await
}

async fn elect(context: &Arc<Context>, asked: &Asked, role: Text) -> Answer {
    context.admin.check(&asked.parts.headers)?;
    let stay = asked.query(&["forward"])?.stay;
    body::check_media_type(&asked.parts.headers)?;
    let claim = Arc::new(Claim::of_body(body::raw(&asked.body)?)?);
    turn::take(context, asked, turn::Kind::Write, stay, || async {
        let call = idempotency::call(&asked.parts, &asked.body)?;
        let granted = context.handle.name_holder(role.clone(), claim.clone(), call).await?;
        Ok(show_granted(context, &role, &granted))
    })
    .await
}

fn show_granted(context: &Context, role: &str, granted: &Granted<Role>) -> Response<Body> {
    #[derive(Serialize)]
    struct Shown<'a> {
        outcome: &'static str,
        role: &'a str,
        leader: leased::Holder<'a>,
        token: u64,
        expires_in_ms: u64,
    }
    let shown = Shown {
        outcome: if granted.new { "elected" } else { "already_leader" },
        role,
        leader: holder(&granted.what),
        token: granted.what.token,
        expires_in_ms: millis(granted.expires_in),
    };
    leased::granted(context, granted, StatusCode::OK, &shown)
}

/// Answered without a record, whatever its `Idempotency-Key`: it can be repeated as it is.
async fn renew(context: &Arc<Context>, asked: &Asked, role: Text) -> Answer {
    let stay = asked.query(&["forward"])?.stay;
    body::check_media_type(&asked.parts.headers)?;
    let tenure = Tenure::read(body::raw(&asked.body)?)?;
    turn::take(context, asked, turn::Kind::Read, stay, || async {
        let granted = context.handle.renew_role(role.clone(), tenure.clone()).await?;
        let (token, expires_in_ms) = (granted.what.token, millis(granted.expires_in));
        let shown = Renewed { role: &role, token, expires_in_ms };
        Ok(leased::granted(context, &granted, StatusCode::OK, &shown))
    })
    .await
}

async fn release(context: &Arc<Context>, asked: &Asked) -> Answer {
    body::check_media_type(&asked.parts.headers)?;
    let (role, tenure) = (role_in(without_order(asked))?, Tenure::read(body::raw(&asked.body)?)?);
    let mut response =
        writes::take(context, asked, read_release, |written| writes::result(written, StatusCode::OK)).await?;
    // One that the leader has answered for another node is whole already.
    let shown = Released { role: &role, token: tenure.token, released: true };
    if response.status() == StatusCode::OK {
        *response.body_mut() = answers::data(&shown).into_body();
    }
    Ok(response)
}

fn read_release(asked: &Asked) -> Result<Command, Failure> {
    let tenure = Tenure::read(body::raw(&asked.body)?)?;
    Ok(tenure.release(role_in(without_order(asked))?))
}

fn without_order(asked: &Asked) -> &str {
    asked.path().rsplit_once('/').map_or("", |(path, _)| path)
}

#[derive(Serialize)]
struct Checked {
    valid: bool,
    token: Option<u64>,
}

#[derive(Serialize)]
struct Renewed<'a> {
    role: &'a str,
    token: u64,
    expires_in_ms: u64,
}

#[derive(Serialize)]
struct Released<'a> {
    role: &'a str,
    token: u64,
    released: bool,
}

/// For a resource that is handed a token: is it still the newest?
async fn check(context: &Arc<Context>, asked: &Asked) -> Lookup {
    super::lists::take(context, asked, &["token"], |store, asked, query| {
        let role = role_in(without_order(asked))?;
        let token = query.more("token").ok_or_else(|| Problem::field("token", "token is missing"))?;
        let token: u64 = token.parse().map_err(|_| Problem::field("token", "token is a whole number"))?;
        let current = store.role(&role).map(|role| role.token);
        Ok(answers::data(&Checked { valid: current == Some(token), token: current }))
    })
    .await
}

fn find_roles(store: &Store, _: &Asked, query: &Query) -> Result<Page, Problem> {
    let prefix = query.prefix.as_deref().unwrap_or_default();
    let (names, next) = store.roles(prefix, query.after.as_deref(), query.limit());
    Ok(Page { names: names.into_iter().map(LeaseName::Role).collect(), next })
}

fn show_roles(store: &Store, page: &Page, known: &[Known]) -> Result<String, Problem> {
    Ok(leased::list(shown(store, page, known), page.next.as_ref()))
}

fn find_role(_: &Store, asked: &Asked, _: &Query) -> Result<Page, Problem> {
    Ok(Page { names: vec![LeaseName::Role(role_in(asked.path())?)], next: None })
}

fn show_role(store: &Store, page: &Page, known: &[Known]) -> Result<String, Problem> {
    Ok(shown(store, page, known).collect())
}

fn shown<'a>(store: &'a Store, page: &'a Page, known: &'a [Known]) -> impl Iterator<Item = String> + 'a {
    page.names.iter().zip(known).map(|(name, known)| {
        let shown = role_shown(name.text(), store.role(name.text()), *known);
        serde_json::to_string(&shown).unwrap_or_default()
    })
}
