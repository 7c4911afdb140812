//! Documents: any JSON under any key, with compare-and-swap.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use serde::Deserialize;

use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::etag::{self, Fresh};
use super::lists::{self, Lookup};
use super::path::name_after;
use super::problem::{Code, Problem};
use super::{answers, body, writes};
use crate::driver::api::Written;
use crate::store::{Command, Store};

const PREFIX: &str = "/v1/docs/";

pub async fn put(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    body::check_media_type(&asked.parts.headers)?;
    writes::take(&context, &asked, read_put, show_put).await
}

pub async fn delete(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    writes::take(&context, &asked, read_delete, |written| writes::result(written, StatusCode::OK)).await
}

pub async fn get(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    lists::take(&context, &asked, &[], |store, asked, _| one(store, asked)).await
}

pub async fn list(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    lists::take(&context, &asked, &["prefix", "limit", "after"], |store, _, query| {
        let prefix = query.prefix.as_deref().unwrap_or_default();
        Ok(lists::page(&store.docs(prefix, query.after.as_deref(), query.limit())))
    })
    .await
}

fn read_put(asked: &Asked) -> Result<Command, Failure> {
    let key = name_after(asked.path(), PREFIX, "key")?;
    let condition = etag::condition(&asked.parts.method, &asked.parts.headers)?;
    Ok(Command::put_doc(&key, body::raw(&asked.body)?, condition)?)
}

fn read_delete(asked: &Asked) -> Result<Command, Failure> {
    let key = name_after(asked.path(), PREFIX, "key")?;
    let condition = etag::condition(&Method::DELETE, &asked.parts.headers)?;
    Ok(Command::delete_doc(&key, condition)?)
}

fn show_put(written: &Written) -> Response<Body> {
    #[derive(Deserialize)]
    struct Put<'a> {
        rev: &'a str,
    }
    let status = if written.reply.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = writes::result(written, status);
    if let Ok(Put { rev }) = serde_json::from_str(&written.reply.json) {
        etag::set(response.headers_mut(), rev);
    }
    response
}

fn one(store: &Store, asked: &Asked) -> Lookup {
    let key = name_after(asked.path(), PREFIX, "key")?;
    let Some(doc) = store.doc(&key) else {
        return Err(Problem::new(Code::NotFound, "there is no document of that key"));
    };
    let rev = doc.rev().to_string();
    let mut response = match etag::freshness(&asked.parts.headers, &rev)? {
        Fresh::Send => answers::json(StatusCode::OK, answers::shared(doc.value)),
        Fresh::NotModified => not_modified(doc.value.len()),
    };
    etag::set(response.headers_mut(), &rev);
    Ok(response)
}

/// The length is that of what is not sent.
fn not_modified(length: usize) -> Response<Body> {
    let mut response = answers::empty();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
