//! `POST /v1/commands` runs one command, or an array of them as one atomic batch; `bulk` runs a stream of them. This module also reads users and
//! elections, which commands write.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};

use crate::driver::handle::Written;
use crate::http::answer::{self, Answer, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, command};
use crate::http::url::name_after;
use crate::store::Command;

pub async fn run(context: &Context, request: &ClientRequest) -> Answer {
    request.check_media_type()?;
    dispatch::write(context, request, judged, show).await
}

/// Each operation is authorized separately.
/// It is judged where it is parsed, at the leader. The guard in front has only seen that the caller may write
/// something.
fn judged(request: &ClientRequest) -> Result<Command, Problem> {
    let command = command(&request.body)?;
    request.principal().check_command(&command)?;
    Ok(command)
}

fn show(written: &Written) -> Response<Body> {
    const REST: usize = 96;
    let mut json = String::with_capacity(written.reply.json.len() + REST);
    answer::push_command(&mut json, written);
    answer::json(StatusCode::OK, json)
}

pub async fn users(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::list(&context, &request, &["prefix", "limit", "after"], |store, _, query| {
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
    dispatch::list(&context, &request, &["prefix", "limit", "after"], |store, _, query| {
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
    Problem::new(Code::NotFound, format!("there is no {what} with that name"))
}
