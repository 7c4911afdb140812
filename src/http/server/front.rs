//! Every request passes here first: it gets an id, the size of its head is checked, and it is admitted or refused. Every
//! response passes here last: problems are written, and the headers about this node are added.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse;
use tower::Service;

use crate::http::answer::{Code, EPOCH, LEADER, NODE, Problem, REQUEST_ID, set_leader, set_view, value_of};
use crate::http::peer::PeerEndpoint;
use crate::http::request::{Context, Permit, has_dot_segments};
use crate::http::routes;
use crate::wire::{Route, header};

/// Routes that answer even when there is no room for clients: who asks them decides where to send clients.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/leader"];

#[derive(Debug)]
pub struct Front {
    pub context: Arc<Context>,
    router: Router,
    peers: PeerEndpoint,
}

impl Front {
    pub fn new(context: Arc<Context>) -> Front {
        Front { router: routes::router(context.clone()), peers: PeerEndpoint::new(&context), context }
    }

    pub async fn answer(&self, mut request: Request) -> Response<Body> {
        if let Some(route) = peer_route(&request) {
            let (parts, body) = request.into_parts();
            return self.peers.answer(&self.context, route, parts, body).await;
        }
        let id = request_id(request.headers_mut(), &self.context);
        let line = AccessLog::begin(&request);
        let mut response = match self.admit(&request) {
            Ok(permit) => {
                let response = self.route(request).await;
                drop(permit);
                response
            }
            Err(problem) => problem.into_response(),
        };
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            response = self.render(&problem, &response, &id);
        }
        if let Some(line) = line {
            line.end(response.status(), &id);
        }
        complete(response.headers_mut(), &self.context, id);
        response
    }

    fn admit(&self, request: &Request) -> Result<Option<Permit<'_>>, Problem> {
        let most = self.context.limits.head_bytes;
        if size_of_head(request) > most {
            let detail = format!("the head of the request has more than {most} bytes");
            return Err(Problem::new(Code::RequestHeaderFieldsTooLarge, detail));
        }
        let path = request.uri().path();
        if has_dot_segments(path) {
            return Err(Problem::field(
                "path",
                "segments of . and .. do not survive every client; use other names",
            ));
        }
        if PROBES.contains(&path) {
            return Ok(None);
        }
        match self.context.admission.enter() {
            Some(permit) => Ok(Some(permit)),
            None => {
                let bound = "calls under way on this node";
                Err(Problem::new(Code::TooManyRequests, format!("a bound is reached: {bound}"))
                    .with("bound", bound))
            }
        }
    }

    async fn route(&self, request: Request) -> Response<Body> {
        match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn render(&self, problem: &Problem, response: &Response<Body>, id: &HeaderValue) -> Response<Body> {
        let request_id = id.to_str().unwrap_or_default();
        let mut rendered = self.context.explain(problem, request_id, Problem::render);
        if let Some(allow) = response.headers().get(ALLOW) {
            rendered.headers_mut().insert(ALLOW, allow.clone());
        }
        rendered
    }
}

/// A call with an envelope is a peer's.
fn peer_route(request: &Request) -> Option<Route> {
    if !request.headers().contains_key(header::MESSAGE) {
        return None;
    }
    match request.uri().path() {
        "/hearbeat" => Some(Route::Heartbeat),
        path => Route::ALL.into_iter().find(|route| route.path() == path),
    }
}

/// As it would stand on an HTTP/1 line, roughly.
fn size_of_head(request: &Request) -> usize {
    /// `GET`, `HTTP/1.1` and blanks; or `: ` and the end of a line.
    const FRAME: usize = 4;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + FRAME);
    lines.sum::<usize>() + target + 4 * FRAME
}

/// One line in the log a call, where somebody wants it.
struct AccessLog {
    method: axum::http::Method,
    path: String,
    began: Instant,
}

impl AccessLog {
    fn begin(request: &Request) -> Option<AccessLog> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| AccessLog {
            method: request.method().clone(),
            path: request.uri().path().to_string(),
            began: Instant::now(),
        })
    }

    fn end(self, status: StatusCode, id: &HeaderValue) {
        let took_us = self.began.elapsed().as_micros() as u64;
        let (AccessLog { method, path, .. }, id) = (self, id.to_str().unwrap_or_default());
        tracing::debug!(%method, path, status = status.as_u16(), took_us, request_id = id, "call");
    }
}

/// A request id of a client's own. It is repeated in answers, problems and logs, so it is short and plain.
const REQUEST_ID_MOST: usize = 128;

/// Adds what the handler did not say itself. An answer from another node says it all about that node.
fn complete(headers: &mut HeaderMap, context: &Context, request_id: HeaderValue) {
    if !headers.contains_key(NODE) {
        headers.insert(NODE, context.node_value());
        let pulse = context.handle.pulse();
        if !headers.contains_key(LEADER) {
            set_leader(headers, pulse.leader());
        }
        if !headers.contains_key(EPOCH) {
            set_view(headers, pulse.epoch(), pulse.applied());
        }
    }
    headers.insert(REQUEST_ID, request_id);
}

/// The client's own id if it is usable, or a new one. The request carries it from here on.
fn request_id(headers: &mut HeaderMap, context: &Context) -> HeaderValue {
    let usable = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_MOST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    if let Some(given) = headers.get(REQUEST_ID).filter(usable) {
        return given.clone();
    }
    let made = value_of(context.request_id());
    headers.insert(REQUEST_ID, made.clone());
    made
}
