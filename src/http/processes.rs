//! Processes: who is there, for as long as it says so.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::json;

use super::asked::Asked;
use super::context::Context;
use super::errors::{Failure, unknown_route};
use super::leased::{self, Known, Page, Reading, just_now, millis, process_shown};
use super::lists::Lookup;
use super::operator::Nothing;
use super::path::name_after;
use super::problem::{Code, Problem};
use super::query::Query;
use super::{answers, body, idempotency, turn, writes};
use crate::store::{self, Command, NewProcess, ProcessFilter, Store};
use crate::types::{LeaseName, Text};

type Answer = Result<Response<Body>, Problem>;

const PREFIX: &str = "/v1/processes/";

pub async fn list(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    const LIST: Reading = Reading {
        known: &["role", "capability", "identifier", "limit", "after"],
        find: find_processes,
        show: |store, page, known| Ok(leased::list(shown(store, page, known), page.next.as_ref())),
    };
    leased::read(&context, &asked, &LIST).await
}

pub async fn get(State(context): State<Arc<Context>>, asked: Asked) -> Lookup {
    const ONE: Reading = Reading {
        known: &[],
        find: find_process,
        show: |store, page, known| Ok(shown(store, page, known).collect()),
    };
    leased::read(&context, &asked, &ONE).await
}

pub async fn put(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    let stay = asked.query(&["forward"])?.stay;
    body::check_media_type(&asked.parts.headers)?;
    let (id, process) = (id_in(asked.path())?, Arc::new(NewProcess::of_body(body::raw(&asked.body)?)?));
    turn::take(&context, &asked, turn::Kind::Write, stay, || async {
        let call = idempotency::call(&asked.parts, &asked.body)?;
        let granted = context.handle.register(id.clone(), process.clone(), call).await?;
        let status = if granted.new { StatusCode::CREATED } else { StatusCode::OK };
        let shown = process_shown(&id, &granted.what, just_now(granted.expires_in));
        Ok(leased::granted(&context, &granted, status, &shown))
    })
    .await
}

/// `…/{id}/heartbeat`. In no record.
pub async fn order(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    let Some(path) = asked.path().strip_suffix("/heartbeat") else {
        return Err(unknown_route(asked.path()));
    };
    let stay = asked.query(&["forward"])?.stay;
    asked.object::<Nothing>()?;
    let id = id_in(path)?;
    turn::take(&context, &asked, turn::Kind::Read, stay, || async {
        let granted = context.handle.renew_process(id.clone()).await?;
        let shown = json!({"id": id, "expires_in_ms": millis(granted.expires_in)});
        Ok(leased::granted(&context, &granted, StatusCode::OK, &shown))
    })
    .await
}

pub async fn delete(State(context): State<Arc<Context>>, asked: Asked) -> Answer {
    let id = id_in(asked.path())?;
    let mut response =
        writes::take(&context, &asked, read_delete, |written| writes::result(written, StatusCode::OK))
            .await?;
    if response.status() == StatusCode::OK {
        *response.body_mut() = answers::data(&json!({ "id": id })).into_body();
    }
    Ok(response)
}

fn read_delete(asked: &Asked) -> Result<Command, Failure> {
    Ok(Command::remove_process(id_in(asked.path())?))
}

fn id_in(path: &str) -> Result<Text, Problem> {
    Ok(store::lease_name("id", &name_after(path, PREFIX, "id")?)?)
}

fn find_processes(store: &Store, _: &Asked, query: &Query) -> Result<Page, Problem> {
    let filter = ProcessFilter {
        role: query.more("role"),
        capability: query.more("capability"),
        identifier: query.more("identifier"),
    };
    let (names, next) = store.processes(&filter, query.after.as_deref(), query.limit());
    Ok(Page { names: names.into_iter().map(LeaseName::Process).collect(), next })
}

fn find_process(store: &Store, asked: &Asked, _: &Query) -> Result<Page, Problem> {
    let id = id_in(asked.path())?;
    match store.process(&id) {
        Some(_) => Ok(Page { names: vec![LeaseName::Process(id)], next: None }),
        None => Err(Problem::new(Code::NotFound, "there is no process of that id")),
    }
}

fn shown<'a>(store: &'a Store, page: &'a Page, known: &'a [Known]) -> impl Iterator<Item = String> + 'a {
    page.names.iter().zip(known).filter_map(|(name, known)| {
        let shown = process_shown(name.text(), store.process(name.text())?, *known);
        serde_json::to_string(&shown).ok()
    })
}
