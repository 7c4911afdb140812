//! A write turns a call into a command, and the verdict on it into a response.
//!
//! The response of a write says which record it made (`Eldest-Epoch`, `Eldest-Index`) and how many disks have
//! that record (`Eldest-Acks`). A replayed call made none: its response repeats the first result, and says
//! so.

use std::cell::RefCell;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::leader::at_leader;
use crate::driver::Granted;
use crate::driver::handle::Written;
use crate::http::answer::{self, ACKS, Answer, CallFailure, Problem, REPLAYED};
use crate::http::request::{CallKind, ClientRequest, Context};
use crate::store::Command;
use crate::types::Position;

/// Parses a call into a command. It runs again at each attempt, because proposing a command consumes it.
pub type Parse = fn(&ClientRequest) -> Result<Command, Problem>;

/// Turns the verdict into a response.
pub type Show = fn(&Written) -> Response<Body>;

pub async fn write(context: &Context, request: &ClientRequest, parse: Parse, show: Show) -> Answer {
    write_with(context, request, &[], parse, show).await
}

/// Does the same for a route with its own parameters.
pub async fn write_with(
    context: &Context,
    request: &ClientRequest,
    params: &[&str],
    parse: Parse,
    show: Show,
) -> Answer {
    let no_forward = request.query_of(&["forward"], params)?.no_forward;
    at_leader(context, request, CallKind::Write, no_forward, || write_here(context, request, parse, show))
        .await
}

async fn write_here(
    context: &Context,
    request: &ClientRequest,
    parse: Parse,
    show: Show,
) -> Result<Response<Body>, CallFailure> {
    let call = request.idempotent_call()?;
    // A command that cannot be parsed is refused here, at the leader: a follower forwards it unread.
    let written = context.handle.write(parse(request)?, call).await?;
    let mut response = show(&written);
    let headers = response.headers_mut();
    set_record(headers, context, written.position, written.acks);
    if written.acks.is_none() {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Returns the answer to a grant or a renewal.
pub fn granted<T>(
    context: &Context,
    granted: &Granted<T>,
    status: StatusCode,
    shown: &impl Serialize,
) -> Response<Body> {
    let mut response = answer::data(shown);
    *response.status_mut() = status;
    set_record(response.headers_mut(), context, granted.position, granted.acks);
    response
}

/// Sets the position of the record, and the number of nodes that have it, if this call made one.
pub fn set_record(headers: &mut HeaderMap, context: &Context, position: Position, acks: Option<usize>) {
    answer::set_position(headers, position);
    answer::set_leader(headers, Some(context.me()));
    if let Some(acks) = acks {
        headers.insert(ACKS, acks_value(acks, context.setup.known().voters()));
    }
}

/// The same few values are shown again and again, so the last one is kept.
fn acks_value(acks: usize, voters: usize) -> HeaderValue {
    thread_local! {
        static LAST: RefCell<((usize, usize), HeaderValue)> =
            const { RefCell::new(((0, 0), HeaderValue::from_static("0/0"))) };
    }
    LAST.with_borrow_mut(|(last, value)| {
        if *last != (acks, voters) {
            (*last, *value) = ((acks, voters), answer::value_of(format!("{acks}/{voters}")));
        }
        value.clone()
    })
}
