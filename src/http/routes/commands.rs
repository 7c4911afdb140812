//! `POST /v1/commands` runs one command, or an array of them as one atomic batch; users and elections, which commands
//! write, are read here too.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::driver::api::Written;
use crate::http::answer::{self, Answer, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, name_after, object};
use crate::store::Command;

/// `{"storage_cmd", "payload"}`, borrowed from the body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Single<'a> {
    #[serde(borrow)]
    storage_cmd: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

pub async fn run(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.check_media_type()?;
    dispatch::write(&context, &request, parse, show).await
}

fn parse(request: &ClientRequest) -> Result<Command, Problem> {
    let raw = request.raw()?;
    if raw.get().starts_with('[') {
        return Ok(Command::parse_batch(raw)?);
    }
    let single: Single = object(raw.get().as_bytes())?;
    let missing = |field| Problem::field(field, format!("{field} is missing"));
    let storage_cmd = single.storage_cmd.ok_or_else(|| missing("storage_cmd"))?;
    let payload = single.payload.ok_or_else(|| missing("payload"))?;
    Ok(Command::parse(&storage_cmd, payload)?)
}

fn show(written: &Written) -> Response<Body> {
    const REST: usize = 96;
    let (position, reply) = (written.position, &written.reply.json);
    // A batch's result is the array of its operations' results; a single one is an object.
    let name = if reply.starts_with('[') { "results" } else { "result" };
    let mut json = String::with_capacity(reply.len() + REST);
    let begin = format_args!("{{\"index\":{},\"epoch\":\"{}\",\"{name}\":", position.index, position.epoch);
    std::fmt::Write::write_fmt(&mut json, begin).unwrap_or_default();
    json.push_str(reply);
    json.push('}');
    answer::json(StatusCode::OK, json)
}

pub async fn users(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &["prefix", "limit", "after"], |store, _, query| {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        Ok(answer::stored(&store.users(prefix, query.after.as_deref(), query.limit())))
    })
    .await
}

pub async fn user(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &[], |store, request, _| {
        let name = name_after(request.path(), "/v1/users/", "name")?;
        store.user(&name).map(|user| answer::stored(&user)).ok_or_else(|| missing("user"))
    })
    .await
}

pub async fn elections(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &["prefix", "limit", "after"], |store, _, query| {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        Ok(answer::stored(&store.elections(prefix, query.after.as_deref(), query.limit())))
    })
    .await
}

pub async fn election(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &[], |store, request, _| {
        let name = name_after(request.path(), "/v1/elections/", "name")?;
        store.election(&name).map(|election| answer::stored(&election)).ok_or_else(|| missing("election"))
    })
    .await
}

fn missing(what: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no {what} of that name"))
}
