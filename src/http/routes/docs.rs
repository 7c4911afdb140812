//! Documents: any JSON under any key, with compare-and-swap.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use serde::Deserialize;

use crate::driver::api::Written;
use crate::http::answer::{self, Answer, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, Fresh, condition, freshness, name_after};
use crate::store::{Command, Store};

const PREFIX: &str = "/v1/docs/";

pub async fn put(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.check_media_type()?;
    dispatch::write(&context, &request, parse_put, show_put).await
}

pub async fn delete(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::write(&context, &request, parse_delete, |written| answer::result(written, StatusCode::OK)).await
}

pub async fn get(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &[], |store, request, _| one(store, request)).await
}

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    dispatch::read(&context, &request, &["prefix", "limit", "after"], |store, _, query| {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        Ok(answer::stored(&store.docs(prefix, query.after.as_deref(), query.limit())))
    })
    .await
}

fn parse_put(request: &ClientRequest) -> Result<Command, Problem> {
    let key = name_after(request.path(), PREFIX, "key")?;
    let condition = condition(&request.parts.method, &request.parts.headers)?;
    Ok(Command::put_doc(&key, request.raw()?, condition)?)
}

fn parse_delete(request: &ClientRequest) -> Result<Command, Problem> {
    let key = name_after(request.path(), PREFIX, "key")?;
    let condition = condition(&Method::DELETE, &request.parts.headers)?;
    Ok(Command::delete_doc(&key, condition)?)
}

fn show_put(written: &Written) -> Response<Body> {
    #[derive(Deserialize)]
    struct Put<'a> {
        rev: &'a str,
    }
    let status = if written.reply.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer::result(written, status);
    if let Ok(Put { rev }) = serde_json::from_str(&written.reply.json) {
        answer::set_etag(response.headers_mut(), rev);
    }
    response
}

fn one(store: &Store, request: &ClientRequest) -> Answer {
    let key = name_after(request.path(), PREFIX, "key")?;
    let Some(doc) = store.doc(&key) else {
        return Err(Problem::new(Code::NotFound, "there is no document of that key"));
    };
    let rev = doc.rev().to_string();
    let mut response = match freshness(&request.parts.headers, &rev)? {
        Fresh::Send => answer::json(StatusCode::OK, answer::shared(doc.value)),
        Fresh::NotModified => not_modified(doc.value.len()),
    };
    answer::set_etag(response.headers_mut(), &rev);
    Ok(response)
}

/// The length is that of what is not sent.
fn not_modified(length: usize) -> Response<Body> {
    let mut response = answer::empty();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
