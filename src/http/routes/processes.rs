//! Processes: each one is registered for as long as it sends heartbeats.
//!
//! A process is a lease without a queue: it is registered by a record, and renewed by heartbeats without one.
//! Any caller that is granted the name may register it; under a secret only a caller that shows the secret
//! may do so again (P53).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use crate::driver::handle::Level;
use crate::http::answer::lease::{self, KnownLease, just_now, millis, process_shown};
use crate::http::answer::{self, Answer, Code, Problem, unknown_route};
use crate::http::dispatch::{self, LeaseRead, Page};
use crate::http::request::{CallKind, ClientRequest, Context, NoFields};
use crate::http::url::{Query, name_after, new_name_after};
use crate::store::{self, Command, NewProcess, ProcessFilter, Store};
use crate::types::{LeaseName, Text};

const PREFIX: &str = "/v1/processes/";

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    const LIST: LeaseRead = LeaseRead {
        params: &["role", "capability", "identifier", "limit", "after"],
        find: find_processes,
        show: |store, _, page, known| {
            Ok(answer::json(StatusCode::OK, lease::list(shown(store, page, known), page.next.as_ref())))
        },
    };
    dispatch::read_leases(&context, &request, &LIST).await
}

pub async fn get(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    const ONE: LeaseRead = LeaseRead {
        params: &[],
        find: find_process,
        show: |store, _, page, known| {
            Ok(answer::json(StatusCode::OK, shown(store, page, known).collect::<String>()))
        },
    };
    dispatch::read_leases(&context, &request, &ONE).await
}

/// Makes a record only if something changes; a process that registers again unchanged renews its lease.
pub async fn put(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let no_forward = request.no_forward()?;
    request.check_media_type()?;
    let mut process = NewProcess::of_body(request.raw()?)?;
    process.secret = process.secret.or(request.secret()?);
    let id = store::lease_name("id", &new_name_after(request.path(), PREFIX, "id")?)?;
    let process = Arc::new(process);
    dispatch::at_leader(&context, &request, CallKind::Write, no_forward, || async {
        let call = request.idempotent_call()?;
        let granted = context.handle.register(id.clone(), process.clone(), call).await?;
        let status = if granted.new { StatusCode::CREATED } else { StatusCode::OK };
        let shown = process_shown(&id, &granted.what, just_now(granted.expires_in));
        Ok(dispatch::granted(&context, &granted, status, &shown))
    })
    .await
}

/// A heartbeat makes no record.
/// So it may be repeated at another leader.
async fn heartbeat(context: &Context, request: &ClientRequest) -> Answer {
    let path = request.path().strip_suffix("/heartbeat").unwrap_or_default();
    let no_forward = request.no_forward()?;
    request.object::<NoFields>()?;
    let (id, secret) = (id_in(path)?, request.secret()?);
    dispatch::at_leader(context, request, CallKind::Read, no_forward, || async {
        let granted = context.handle.renew_process(id.clone(), secret).await?;
        let shown = json!({"id": id, "expires_in_ms": millis(granted.expires_in)});
        Ok(dispatch::granted(context, &granted, StatusCode::OK, &shown))
    })
    .await
}

/// Handles the operations of a process: `…/{id}/heartbeat`, or an operator's `…/{id}/remove`.
pub async fn operation(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    match request.path().rsplit_once('/') {
        Some((_, "heartbeat")) => heartbeat(&context, &request).await,
        Some((_, "remove")) => remove(&context, &request).await,
        _ => Err(unknown_route(request.path())),
    }
}

/// An operator removes a process, whatever its secret. A process that has registered under this id since
/// then, under another secret, stays.
async fn remove(context: &Context, request: &ClientRequest) -> Answer {
    let no_forward = request.no_forward()?;
    request.object::<NoFields>()?;
    let id = id_in(request.path().strip_suffix("/remove").unwrap_or_default())?;
    dispatch::at_leader(context, request, CallKind::Write, no_forward, || async {
        let call = request.idempotent_call()?;
        // The secret of the process that stands now. If one with another secret registers before the command
        // is applied, the command is rejected.
        let view = context.handle.read(Level::Leader).await?;
        let secret = view.store.process(&id).and_then(|process| process.new.secret);
        let written = context.handle.write(Command::remove_process(id.clone(), secret), call).await?;
        let mut response = answer::data(&json!({ "id": id }));
        dispatch::set_record(response.headers_mut(), context, written.position, written.acks);
        Ok(response)
    })
    .await
}

pub async fn delete(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let id = id_in(request.path())?;
    let mut response =
        dispatch::write(&context, &request, parse_delete, |written| answer::result(written, StatusCode::OK))
            .await?;
    if response.status() == StatusCode::OK {
        *response.body_mut() = answer::data(&json!({ "id": id })).into_body();
    }
    Ok(response)
}

fn parse_delete(request: &ClientRequest) -> Result<Command, Problem> {
    Ok(Command::remove_process(id_in(request.path())?, request.secret()?))
}

fn id_in(path: &str) -> Result<Text, Problem> {
    Ok(store::lease_name("id", &name_after(path, PREFIX, "id")?)?)
}

fn find_processes(store: &Store, _: &ClientRequest, query: &Query) -> Result<Page, Problem> {
    let filter = ProcessFilter {
        role: query.more("role"),
        capability: query.more("capability"),
        identifier: query.more("identifier"),
    };
    let (names, next) = store.processes(&filter, query.after.as_deref(), query.limit());
    Ok(Page { names: names.into_iter().map(LeaseName::Process).collect(), next })
}

fn find_process(store: &Store, request: &ClientRequest, _: &Query) -> Result<Page, Problem> {
    let id = id_in(request.path())?;
    match store.process(&id) {
        Some(_) => Ok(Page { names: vec![LeaseName::Process(id)], next: None }),
        None => Err(Problem::new(Code::NotFound, "there is no process with that id")),
    }
}

fn shown<'a>(store: &'a Store, page: &'a Page, known: &'a [KnownLease]) -> impl Iterator<Item = String> + 'a {
    page.names.iter().zip(known).filter_map(|(name, known)| {
        let shown = process_shown(name.text(), store.process(name.text())?, *known);
        serde_json::to_string(&shown).ok()
    })
}
