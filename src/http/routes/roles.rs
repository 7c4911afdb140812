//! Roles: each has one holder, for as long as it renews its lease, and a token that rises with every grant.
//!
//! ```text
//!   acquire   free: a record. held: refused after a round, or queued at the leader if the call may wait (P41)
//!   renew     no record: a round proves that this node leads, and the leader counts the ttl again (P39)
//!   release   a record; the queue moves with it
//!   untie     a record, if the lease is still tied to that connection (P45)
//!   elect     an order of an operator: a record, no matter which instance holds the role
//! ```
//!
//! The token of a role rises with each grant, and the grants of all leaders are ordered by the log. That is
//! what a resource relies on when it compares tokens (I6).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use tokio::time::{Duration, Instant};

use crate::driver::Granted;
use crate::http::answer::lease::{self, KnownLease, holder, millis, role_shown};
use crate::http::answer::{self, Answer, Code, Problem, unknown_route};
use crate::http::dispatch::{self, LeaseRead, Page, Settled};
use crate::http::request::{CallKind, ClientRequest, Context, GivesBack};
use crate::http::url::{Query, name_after, new_name_after};
use crate::store::{self, Acquisition, Command, Role, RoleClaim, Store, Tenure};
use crate::types::{LeaseName, Span, Text};

pub const PREFIX: &str = "/v1/roles/";

/// The operations on a role.
const OPERATIONS: [&str; 7] = ["acquire", "renew", "release", "elect", "hold", "tie", "untie"];

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    const LIST: LeaseRead =
        LeaseRead { params: &["prefix", "limit", "after"], find: find_roles, show: show_roles };
    dispatch::read_leases(&context, &request, &LIST).await
}

/// Shows one role, or checks a token.
pub async fn get(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    const ONE: LeaseRead = LeaseRead { params: &[], find: find_role, show: show_role };
    match request.path().strip_suffix("/check") {
        None => match request.path().rsplit_once('/') {
            // A role whose name ends like this is read with its slash encoded: %2F.
            Some((_, operation)) if OPERATIONS.contains(&operation) => Err(posted(operation)),
            _ => dispatch::read_leases(&context, &request, &ONE).await,
        },
        Some(_) => check(&context, &request).await,
    }
}

fn posted(operation: &str) -> Problem {
    let detail = format!(
        "{operation} needs POST; if the role's name ends like this, encode the slash: %2F{operation}"
    );
    Problem::new(Code::MethodNotAllowed, detail).header(ALLOW, HeaderValue::from_static("POST"))
}

/// The operations on a role that have a single response; the path ends in the operation.
pub async fn answered(context: &Arc<Context>, request: ClientRequest) -> Answer {
    let path = request.path().to_string();
    let (path, operation) = path.rsplit_once('/').unwrap_or_default();
    match operation {
        "acquire" => acquire(context, request, new_role_in(path)?).await,
        "renew" => renew(context, &request, role_in(path)?).await,
        "release" => release(context, &request).await,
        "untie" => untie(context, &request, role_in(path)?).await,
        "elect" => elect(context, &request, new_role_in(path)?).await,
        _ => Err(unknown_route(request.path())),
    }
}

pub fn role_in(path: &str) -> Result<Text, Problem> {
    Ok(store::lease_name("role", &name_after(path, PREFIX, "role")?)?)
}

/// Does the same for a role that is to be granted.
pub fn new_role_in(path: &str) -> Result<Text, Problem> {
    Ok(store::lease_name("role", &new_name_after(path, PREFIX, "role")?)?)
}

/// Reads the body of `acquire`, and the secret from the head.
/// If both name one, the body's secret counts.
pub fn acquisition(request: &ClientRequest) -> Result<Acquisition, Problem> {
    let mut acquisition = Acquisition::read(request.raw()?)?;
    acquisition.claim.secret = acquisition.claim.secret.or(request.secret()?);
    Ok(acquisition)
}

/// Does the same for `renew`, `untie` and `release`. Another node's proof covers a path, a token and a tie: a body with other
/// values would use the proof for another lease.
fn tenure(request: &ClientRequest) -> Result<Tenure, Problem> {
    let tenure = Tenure::read(request.raw()?)?;
    let said = GivesBack { token: tenure.token, tie: tenure.tie };
    if request.head.asker.gives_back.is_some_and(|proved| proved != said) {
        return Err(Problem::new(Code::Forbidden, "the node's proof is for another token"));
    }
    Ok(Tenure { secret: tenure.secret.or(request.secret()?), ..tenure })
}

async fn acquire(context: &Context, request: ClientRequest, role: Text) -> Answer {
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    let acquisition = acquisition(&request)?;
    match acquired(context, request, no_forward, &role, acquisition).await? {
        Settled::Here(granted) => Ok(show_granted(context, &role, &granted)),
        Settled::Elsewhere(response) => Ok(response),
    }
}

/// Acquires the role. The wait is added to the time that every call has.
/// The call leaves the places for writes before it waits, so that callers that wait for roles keep no writer
/// out. What is left of the wait is computed for each attempt: a call that moves to another leader waits no
/// longer in all.
pub async fn acquired(
    context: &Context,
    mut request: ClientRequest,
    no_forward: bool,
    role: &Text,
    acquisition: Acquisition,
) -> Result<Settled<Granted<Role>>, Problem> {
    let Acquisition { claim, priority, wait } = acquisition;
    let (claim, wait) = (Arc::new(claim), Duration::from_micros(wait.0));
    let until = Instant::now() + wait;
    request.deadline += wait;
    if !wait.is_zero() {
        request.wait()?;
    }
    dispatch::settle(context, &request, CallKind::Write, no_forward, || async {
        let call = request.idempotent_call()?;
        let left = until.saturating_duration_since(Instant::now());
        let wait = Span(u64::try_from(left.as_micros()).unwrap_or_default());
        // The queue of waiting callers is the leader's.
        let _place = match wait {
            Span(0) => None,
            _ => Some(context.lines.take(role, request.sharers())?),
        };
        // The replica looks at this token again before it proposes the grant (P41).
        let by = request.principal().token();
        Ok(context.handle.acquire(role.clone(), claim.clone(), priority, wait, by, call).await?)
    })
    .await
}

async fn elect(context: &Arc<Context>, request: &ClientRequest, role: Text) -> Answer {
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    let claim = Arc::new(RoleClaim::of_body(request.raw()?)?);
    dispatch::at_leader(context, request, CallKind::Write, no_forward, || async {
        let call = request.idempotent_call()?;
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
        leader: lease::Holder<'a>,
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
    dispatch::granted(context, granted, StatusCode::OK, &shown)
}

async fn renew(context: &Context, request: &ClientRequest, role: Text) -> Answer {
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    let tenure = tenure(request)?;
    match renewed(context, request, no_forward, &role, &tenure).await? {
        Settled::Here(granted) => {
            let (token, expires_in_ms) = (granted.what.token, millis(granted.expires_in));
            let shown = Renewed { role: &role, token, expires_in_ms };
            Ok(dispatch::granted(context, &granted, StatusCode::OK, &shown))
        }
        Settled::Elsewhere(response) => Ok(response),
    }
}

/// Makes no record, whatever its `Idempotency-Key`: a renewal can be repeated as it is.
pub async fn renewed(
    context: &Context,
    request: &ClientRequest,
    no_forward: bool,
    role: &Text,
    tenure: &Tenure,
) -> Result<Settled<Granted<Role>>, Problem> {
    dispatch::settle(context, request, CallKind::Read, no_forward, || async {
        Ok(context.handle.renew_role(role.clone(), tenure.clone()).await?)
    })
    .await
}

/// The connection that the holder relies on has closed; the node that served it reports this.
async fn untie(context: &Context, request: &ClientRequest, role: Text) -> Answer {
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    let tenure = tenure(request)?;
    match untied(context, request, no_forward, &role, &tenure).await? {
        Settled::Here(()) => Ok(answer::data(&Released { role: &role, token: tenure.token, released: true })),
        Settled::Elsewhere(response) => Ok(response),
    }
}

/// The call may be repeated as it is: a holder that continues without that connection has named another one.
pub async fn untied(
    context: &Context,
    request: &ClientRequest,
    no_forward: bool,
    role: &Text,
    tenure: &Tenure,
) -> Result<Settled<()>, Problem> {
    let tie = tenure.tie.ok_or_else(|| Problem::field("tie", "tie is missing"))?;
    dispatch::settle(context, request, CallKind::Read, no_forward, || async {
        Ok(context.handle.untie_role(role.clone(), tenure.clone(), tie).await?)
    })
    .await
}

async fn release(context: &Arc<Context>, request: &ClientRequest) -> Answer {
    request.check_media_type()?;
    let (role, tenure) = (role_in(without_operation(request))?, tenure(request)?);
    let mut response =
        dispatch::write(context, request, parse_release, |written| answer::result(written, StatusCode::OK))
            .await?;
    // A response that the leader has produced for another node is complete already.
    let shown = Released { role: &role, token: tenure.token, released: true };
    if response.status() == StatusCode::OK {
        *response.body_mut() = answer::data(&shown).into_body();
    }
    Ok(response)
}

fn parse_release(request: &ClientRequest) -> Result<Command, Problem> {
    let tenure = tenure(request)?;
    Ok(tenure.release(role_in(without_operation(request))?))
}

fn without_operation(request: &ClientRequest) -> &str {
    request.path().rsplit_once('/').map_or("", |(path, _)| path)
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

/// Checks for a resource whether a token that it got is still the newest.
/// A resource that has seen the greatest token need not ask; this route is for one that has not. The answer
/// is as fresh as the level of the read.
async fn check(context: &Arc<Context>, request: &ClientRequest) -> Answer {
    dispatch::read(context, request, &["token"], |store, request, query| {
        let role = role_in(without_operation(request))?;
        let token = query.more("token").ok_or_else(|| Problem::field("token", "token is missing"))?;
        let token: u64 = token.parse().map_err(|_| Problem::field("token", "token must be an integer"))?;
        let current = store.role(&role).map(|role| role.token);
        Ok(answer::data(&Checked { valid: current == Some(token), token: current }))
    })
    .await
}

fn find_roles(store: &Store, _: &ClientRequest, query: &Query) -> Result<Page, Problem> {
    let prefix = query.prefix.as_deref().unwrap_or_default();
    let (names, next) = store.roles(prefix, query.after.as_deref(), query.limit());
    Ok(Page { names: names.into_iter().map(LeaseName::Role).collect(), next })
}

fn show_roles(store: &Store, _: &ClientRequest, page: &Page, known: &[KnownLease]) -> Answer {
    Ok(answer::json(StatusCode::OK, lease::list(shown(store, page, known), page.next.as_ref())))
}

/// A role that is not held has a page, too: it shows that the role is free, and how many callers wait.
fn find_role(_: &Store, request: &ClientRequest, _: &Query) -> Result<Page, Problem> {
    Ok(Page { names: vec![LeaseName::Role(role_in(request.path())?)], next: None })
}

fn show_role(store: &Store, _: &ClientRequest, page: &Page, known: &[KnownLease]) -> Answer {
    Ok(answer::json(StatusCode::OK, shown(store, page, known).collect::<String>()))
}

fn shown<'a>(store: &'a Store, page: &'a Page, known: &'a [KnownLease]) -> impl Iterator<Item = String> + 'a {
    page.names.iter().zip(known).map(|(name, known)| {
        let shown = role_shown(name.text(), store.role(name.text()), *known);
        serde_json::to_string(&shown).unwrap_or_default()
    })
}
