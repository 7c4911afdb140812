//! Tokens of clients (P56): orders create, list and revoke them. The secret is in one response and nowhere else.
//!
//! The secret is drawn by the leader, at the moment when the record is made, and only its hash leaves this
//! function for the log. So a call to make a token is never repeated, and has no idempotency key: the answer
//! could not be given again.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::http::{Response, StatusCode};
use serde_json::json;

use crate::http::access::{Who, written};
use crate::http::answer::{self, Answer, CallFailure, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context, IDEMPOTENCY_KEY};
use crate::http::url::name_after;
use crate::store::{Command, NewToken, TokenHash, TokenId, is_blank};

const PREFIX: &str = "/v1/tokens/";

/// Too long to be guessed.
const SECRET_BYTES: usize = 32;

pub async fn create(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    if request.head.parts.headers.contains_key(IDEMPOTENCY_KEY) {
        let detail = "a token is shown only once: a lost answer cannot be repeated, so revoke that token and \
            create another";
        return Err(Problem::field("Idempotency-Key", detail));
    }
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    dispatch::at_leader(&context, &request, CallKind::Order, no_forward, || make(&context, &request)).await
}

async fn make(context: &Context, request: &ClientRequest) -> Result<Response<Body>, CallFailure> {
    let (id, secret) =
        draw().ok_or_else(|| Problem::new(Code::CatchingUp, "cannot get random numbers from the system"))?;
    let new = NewToken::of_call(id, TokenHash::of(secret.as_bytes()), request.raw()?);
    let new = new.map_err(|bad| Problem::field(&bad.path, bad.to_string()))?;
    if is_blank(&new.name) {
        return Err(Problem::field("name", "name has no visible character").into());
    }
    let grants: Vec<String> = new.grants.iter().map(ToString::to_string).collect();
    let shown =
        json!({"id": id.to_string(), "name": *new.name, "grants": grants, "token": written(id, &secret)});
    let made = context.handle.write(Command::create_token(new), None).await?;
    let mut response = answer::json(StatusCode::CREATED, shown.to_string());
    dispatch::set_record(response.headers_mut(), context, made.position, made.acks);
    // A cache on the way would keep the secret.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn draw() -> Option<(TokenId, String)> {
    let (id, mut bytes) = (getrandom::u64().ok()?, [0; SECRET_BYTES]);
    getrandom::fill(&mut bytes).ok()?;
    let mut secret = String::with_capacity(2 * SECRET_BYTES);
    for byte in bytes {
        // Writing into a string never fails.
        let _ = write!(secret, "{byte:02x}");
    }
    Some((TokenId(id), secret))
}

/// Tells the caller its name and its grants, by the token that it shows. A page needs them to show only actions that will be allowed.
pub async fn caller(request: ClientRequest) -> Response<Body> {
    let principal = request.principal();
    let name = match &principal.who {
        Who::Token { name, .. } => name.to_string(),
        who => who.to_string(),
    };
    let token = principal.token().map(|id| id.to_string());
    let told = json!({"name": name, "token_id": token, "grants": principal.written_grants()});
    let mut response = answer::json(StatusCode::OK, told.to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::list(&context, &request, &["limit", "after"], |store, _, query| {
        let after = query.after.as_deref().map(|after| id("after", after)).transpose()?;
        Ok(answer::stored(&store.tokens(after, query.limit())))
    })
    .await
}

/// A revocation is a record like any other write, so it may be repeated with a key. From the moment it is
/// applied, each node that has applied it refuses the token and ends its streams.
pub async fn revoke(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::write(&context, &request, parse_revoke, |written| answer::result(written, StatusCode::OK)).await
}

fn parse_revoke(request: &ClientRequest) -> Result<Command, Problem> {
    Ok(Command::revoke_token(id("id", &name_after(request.path(), PREFIX, "id")?)?))
}

fn id(field: &str, text: &str) -> Result<TokenId, Problem> {
    text.parse()
        .map_err(|()| Problem::field(field, "a token's id must have 16 lower-case hexadecimal digits"))
}
