//! Texts that every node contains: the files of the dashboard, which get their data by the same calls as any client, and
//! `/openapi.json`, which describes the API for tools.
//!
//! The files are part of the binary and load nothing from elsewhere: the page works in a network without a
//! way out, and always fits the node that serves it.

use std::iter;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Response, StatusCode};

use bytes::Bytes;

use super::health;
use crate::http::answer::{self, Answer, JSON, empty, unknown_route, value_of};
use crate::http::openapi::document;
use crate::http::request::Context;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Allows no external sources, no inline code, and no frames. The page may call the members, so that it can go on with another node.
/// Documents and names are text of clients, and a page that shows them must not run them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; connect-src 'self'";
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal $kind:expr),* $(,)?) => {
        [$(File { name: $name, kind: $kind, text: include_str!(concat!("../dashboard/", $name)) }),*]
    };
}

const FILES: [File; 25] = files![
    "index.html" HTML,
    "style.css" CSS,
    "app.js" JS,
    "api.js" JS,
    "backups.js" JS,
    "boot.js" JS,
    "charts.js" JS,
    "cluster.js" JS,
    "conflicts.js" JS,
    "diff.js" JS,
    "documents.js" JS,
    "dom.js" JS,
    "elections.js" JS,
    "feed.js" JS,
    "leases.js" JS,
    "lists.js" JS,
    "members.js" JS,
    "orders.js" JS,
    "overview.js" JS,
    "processes.js" JS,
    "rights.js" JS,
    "roles.js" JS,
    "timeline.js" JS,
    "tokens.js" JS,
    "why.js" JS,
];

/// One tag for all files: they belong together.
/// A browser that had one file of an older node and another one of a newer node would mix them. `no-cache`
/// makes it ask each time, and an equal tag spares the body.
static TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for file in &FILES {
        hasher.update(file.text.as_bytes());
    }
    value_of(format!("\"{}\"", &hasher.finalize().to_hex()[..32]))
});

/// A browser gets the page, and any other client a text with the available routes.
/// The page is always sent whole: its policy changes with the members, and a browser may keep the headers of a page that is unchanged.
pub async fn root(State(context): State<Arc<Context>>, request: Request) -> Response<Body> {
    let headers = request.headers();
    let mut response = match takes_html(headers) {
        true => page(&context.member_urls()),
        false => health::root(),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

pub async fn file(Path(name): Path<String>, request: Request) -> Answer {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => {
            let kind = HeaderValue::from_static(file.kind);
            Ok(guarded(unless_known(&TAG, request.headers(), kind, file.text), &[]))
        }
        None => Err(unknown_route(request.uri().path())),
    }
}

/// A browser names HTML itself; tools send `*/*`.
fn takes_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.split(',').any(|kind| kind.trim().starts_with("text/html")))
}

fn page(members: &[String]) -> Response<Body> {
    let File { kind, text, .. } = FILES[0];
    let mut response = answer::typed(StatusCode::OK, HeaderValue::from_static(kind), text);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    guarded(response, members)
}

/// Adds the headers that keep other texts and pages away. The page may call these members.
fn guarded(mut response: Response<Body>, members: &[String]) -> Response<Body> {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy(members)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (OPENER, HeaderValue::from_static("same-origin")),
    ] {
        headers.insert(name, value);
    }
    response
}

fn policy(members: &[String]) -> HeaderValue {
    let all = iter::once(POLICY).chain(members.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    value_of(all)
}

/// Sends the text, or 304 if the client has it already.
fn unless_known(
    tag: &HeaderValue,
    headers: &HeaderMap,
    kind: HeaderValue,
    text: impl Into<Bytes>,
) -> Response<Body> {
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|given| given == tag);
    let mut response = if is_known { empty() } else { answer::typed(StatusCode::OK, kind, text) };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    response.headers_mut().insert(ETAG, tag.clone());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The description of the API is built once: it does not change while the process lives.
static API: LazyLock<(Bytes, HeaderValue)> = LazyLock::new(|| {
    let text = document().to_string();
    let tag = value_of(format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]));
    (text.into(), tag)
});

pub async fn openapi(request: Request) -> Response<Body> {
    let (text, tag) = &*API;
    unless_known(tag, request.headers(), JSON, text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_small_and_holds_nothing_that_the_policy_forbids() {
        let bytes: usize = FILES.iter().map(|file| file.text.len()).sum();
        assert!(bytes <= 150 << 10, "{bytes} bytes");
        for file in &FILES {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "eval(",
                "style=",
                " onclick=\"",
                "document.write",
            ] {
                assert!(!file.text.contains(forbidden), "{} in {}", forbidden, file.name);
            }
            let elsewhere = file.text.match_indices("http").filter(|(at, _)| {
                file.text[*at..].starts_with("http://") || file.text[*at..].starts_with("https://")
            });
            let own = elsewhere.filter(|(at, _)| !file.text[*at..].starts_with("http://www.w3.org/2000/svg"));
            assert_eq!(own.count(), 0, "{} names another place", file.name);
        }
    }

    #[test]
    fn every_file_that_is_named_is_there() {
        for file in &FILES {
            let imports =
                file.text.lines().filter_map(|line| line.split_once("from \"./")?.1.split('"').next());
            let later = file.text.split("import(\"./").skip(1).filter_map(|rest| rest.split('"').next());
            let loaded = file.text.split("\"/ui/").skip(1).filter_map(|rest| rest.split('"').next());
            for name in imports.chain(later).chain(loaded) {
                assert!(FILES.iter().any(|other| other.name == name), "{name}, of {}", file.name);
            }
        }
    }

    #[test]
    fn browsers_get_the_page_and_tools_the_text() {
        let takes = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            takes_html(&headers)
        };
        assert!(takes("text/html,application/xhtml+xml,*/*;q=0.8"));
        assert!(!takes("*/*") && !takes("application/json") && !takes_html(&HeaderMap::new()));
    }
}
