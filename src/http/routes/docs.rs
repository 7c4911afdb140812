//! Documents: any JSON under any key, with compare-and-swap. A document lasts for good, or until its ttl passes without a renewal, or
//! until a lease ends.
//!
//! ```text
//!   PUT, DELETE   a record: condition on the revision, on a role (P59), on the lease that it ends with (P54)
//!   POST ?renew   no record: a round proves that this node still leads, and the leader counts the ttl again
//!   GET           the state, and for a document with a ttl the time that the leader still gives it
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CONTENT_LENGTH};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use serde_json::json;

use crate::driver::handle::Written;
use crate::http::answer::lease::{KnownLease, millis};
use crate::http::answer::{self, Answer, Code, Problem};
use crate::http::dispatch::{self, COMMON, LeaseRead, Page};
use crate::http::request::{CallKind, ClientRequest, Context, Fresh, condition, freshness, holder};
use crate::http::url::{Query, name_after, new_name_after, url_safe};
use crate::store::{self, BadCommand, Command, DocItem, DocView, Ending, Store};
use crate::types::{LeaseName, Span, Text};

const PREFIX: &str = "/v1/docs/";
const ENDING: [&str; 3] = Ending::MEMBERS;
/// The methods without `renew`.
const ALLOWED: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,DELETE");
const LISTED: [&str; 3] = ["prefix", "limit", "after"];

pub async fn put(context: &Context, request: &ClientRequest) -> Answer {
    request.check_media_type()?;
    dispatch::write_with(context, request, &ENDING, parse_put, show_put).await
}

/// `POST …?renew` renews a document with a ttl. This makes no record.
/// It may be repeated at another leader, so it is dispatched like a read.
pub async fn renew(context: &Context, request: &ClientRequest) -> Answer {
    let query = request.query(&["forward", "renew"])?;
    if query.more("renew").is_none() {
        let detail = "a document is renewed by POST …?renew, and written by PUT";
        return Err(Problem::new(Code::MethodNotAllowed, detail).header(ALLOW, ALLOWED));
    }
    let key = key_in(request)?;
    let condition = condition(&Method::POST, &request.head.parts.headers)?;
    dispatch::at_leader(context, request, CallKind::Read, query.no_forward, || async {
        let granted = context.handle.renew_doc(key.clone(), condition.clone()).await?;
        let doc = &granted.what;
        let shown = json!({
            "key": key,
            "rev": doc.rev(),
            "ttl_ms": doc.ttl().map(millis),
            "expires_in_ms": millis(granted.expires_in),
        });
        Ok(dispatch::granted(context, &granted, StatusCode::OK, &shown))
    })
    .await
}

pub async fn delete(context: &Context, request: &ClientRequest) -> Answer {
    dispatch::write(context, request, parse_delete, |written| answer::result(written, StatusCode::OK)).await
}

pub async fn get(context: &Context, request: &ClientRequest) -> Answer {
    const ONE: LeaseRead = LeaseRead { params: &[], find: find_one, show: show_one };
    dispatch::read_leases(context, request, &ONE).await
}

pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    const LIST: LeaseRead = LeaseRead { params: &LISTED, find: find_some, show: show_some };
    dispatch::read_leases(&context, &request, &LIST).await
}

fn key_in(request: &ClientRequest) -> Result<Text, Problem> {
    Ok(name_after(request.path(), PREFIX, "key")?.into())
}

fn parse_put(request: &ClientRequest) -> Result<Command, Problem> {
    let key = new_name_after(request.path(), PREFIX, "key")?;
    let condition = condition(&request.head.parts.method, &request.head.parts.headers)?;
    let query = request.query_of(&["forward"], &ENDING)?;
    let ending = Ending::of_query(query.more("ttl_ms"), query.more("with"), query.more("token"));
    let (mut ending, holder) = (ending.map_err(BadCommand::from)?, holder(&request.head.parts.headers)?);
    ending.show(request.secret()?);
    judged(request, Command::put_doc(&key, request.raw()?, condition, holder, ending)?)
}

fn parse_delete(request: &ClientRequest) -> Result<Command, Problem> {
    let key = name_after(request.path(), PREFIX, "key")?;
    let condition = condition(&Method::DELETE, &request.head.parts.headers)?;
    judged(request, Command::delete_doc(&key, condition, holder(&request.head.parts.headers)?)?)
}

/// The lease that a document is to end with needs a grant, too, and so does the role in whose name it is written.
fn judged(request: &ClientRequest, command: Command) -> Result<Command, Problem> {
    request.principal().check_command(&command)?;
    Ok(command)
}

fn show_put(written: &Written) -> Response<Body> {
    let status = if written.reply.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer::result(written, status);
    // The text is the store's own. Quotes in the key are escaped, so these words can only be the name of the member.
    let rev = written.reply.json.rsplit_once("\"rev\":\"").and_then(|(_, rest)| rest.split_once('"'));
    if let Some((rev, _)) = rev {
        answer::set_etag(response.headers_mut(), rev);
    }
    response
}

/// For documents with a ttl the leader knows the remaining time.
/// Other documents have no lease, and a page without any needs no call to the loop.
fn leases<'a>(docs: impl Iterator<Item = (&'a Text, &'a DocView)>) -> Page {
    let timed = docs.filter(|(_, doc)| doc.ttl().is_some());
    Page { names: timed.map(|(key, _)| LeaseName::Doc(key.clone())).collect(), next: None }
}

fn find_some(store: &Store, _: &ClientRequest, query: &Query) -> Result<Page, Problem> {
    Ok(leases(some(store, query).items.iter().map(|item| (&item.key, &item.doc))))
}

fn some(store: &Store, query: &Query) -> store::Page<DocItem> {
    store.docs(query.prefix.as_deref().unwrap_or_default(), query.after.as_deref(), query.limit())
}

/// The page is looked up again, in the same frozen state: it is the page whose times were fetched.
fn show_some(store: &Store, request: &ClientRequest, timed: &Page, known: &[KnownLease]) -> Answer {
    let query = request.query_of(&COMMON, &LISTED)?;
    let mut page = some(store, &query);
    let left: BTreeMap<&str, Option<Span>> =
        timed.names.iter().zip(known).map(|(name, known)| (&**name.text(), known.left)).collect();
    for item in &mut page.items {
        item.expires_in = left.get(&*item.key).copied().flatten();
    }
    Ok(answer::stored(&page))
}

fn find_one(store: &Store, request: &ClientRequest, _: &Query) -> Result<Page, Problem> {
    let key = key_in(request)?;
    let doc = store.doc(&key);
    Ok(leases(doc.iter().map(|doc| (&key, doc))))
}

fn show_one(store: &Store, request: &ClientRequest, _: &Page, known: &[KnownLease]) -> Answer {
    let Some(doc) = store.doc(&key_in(request)?) else {
        return Err(Problem::new(Code::NotFound, "there is no document with that key"));
    };
    let left = known.first().and_then(|known| known.left);
    let (ttl, with) = (doc.ttl(), doc.with());
    let rev = doc.rev().to_string();
    // A condition of a read is judged at the level of the read, so a 304 is as fresh as the document would
    // be.
    let mut response = match freshness(&request.head.parts.headers, &rev)? {
        Fresh::Send => answer::json(StatusCode::OK, answer::shared(doc.value)),
        Fresh::NotModified => not_modified(doc.value.len()),
    };
    let headers = response.headers_mut();
    answer::set_etag(headers, &rev);
    ttl.iter().for_each(|ttl| drop(headers.insert(answer::TTL, HeaderValue::from(millis(*ttl)))));
    left.iter().for_each(|left| drop(headers.insert(answer::EXPIRES_IN, HeaderValue::from(millis(*left)))));
    with.into_iter().for_each(|with| drop(headers.insert(answer::WITH, header_text(&with))));
    Ok(response)
}

/// A lease's name may hold characters that a header cannot: then it is encoded like the path of a URL.
fn header_text(with: &str) -> HeaderValue {
    answer::value_of(url_safe(with).into_owned())
}

/// The length is that of the body that is not sent.
fn not_modified(length: usize) -> Response<Body> {
    let mut response = answer::empty();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
