//! `POST /v1/commands`: one command, or an array as one atomic batch.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::problem::Problem;
use super::{answers, body, writes};
use crate::driver::api::Written;
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

pub async fn run(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    body::check_media_type(&asked.parts.headers)?;
    writes::take(&context, &asked, read, show).await
}

fn read(asked: &Asked) -> Result<Command, Failure> {
    let raw = body::raw(&asked.body)?;
    if raw.get().starts_with('[') {
        return Ok(Command::parse_batch(raw)?);
    }
    let single: Single = body::object(raw.get().as_bytes())?;
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
    answers::json(StatusCode::OK, json)
}
