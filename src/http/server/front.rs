//! Every request passes here first. A call of another node goes to `peer`. A client's call gets an id, the size of its head is checked, and
//! it is admitted or refused. Its response passes here last: problems are written, and the headers about this node are added.
//!
//! ```text
//!   credential ─► host, origin ─┬─ with an envelope ──► peer
//!                               └─ id ─► size of the head ─► path ─► class ─► seat ─► router ─► problem ─► memory ─► headers
//! ```
//!
//! The order matters. The credential is read first, because the check of the host and the use of a reserve
//! connection depend on it. The seat comes before the router: a call without a seat costs no lookup and no
//! body.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ALLOW, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, Version};
use axum::response::IntoResponse;
use hyper::body::Body as _;

use super::call::Call;
use super::held::Account;
use super::held::Seated;
use crate::http::access::Shown;
use crate::http::admission::{Class, Seat, Sharer, Sharers, no_memory};
use crate::http::answer::{
    Code, EPOCH, LEADER, NODE, Problem, REQUEST_ID, empty, set_leader, set_view, value_of,
};
use crate::http::peer::PeerEndpoint;
use crate::http::request::{
    Asker, ClientCall, ClientHead, Connection, Context, allow, check_cluster, host, is_preflight, origin,
    preflight,
};
use crate::http::routes::Routes;
use crate::http::url::has_dot_segments;
use crate::wire::{Route, header};

/// The length of a body that is not accounted for on HTTP/1: a connection has one such response at a time, so the bound of connections
/// is their bound. Most responses are shorter.
const SMALL_BODY_MOST: u64 = 4 << 10;

/// The memory of a waiting response in addition to its body: its head, and the state that HTTP keeps for it.
const RESPONSE_OVERHEAD_BYTES: usize = 1024;

#[derive(Debug)]
pub struct Front {
    pub context: Arc<Context>,
    routes: Routes,
    peers: PeerEndpoint,
}

impl Front {
    pub fn new(context: Arc<Context>) -> Front {
        Front { routes: Routes::new(context.clone()), peers: PeerEndpoint::new(&context), context }
    }

    /// Answers a call that came over this connection. A call with an envelope whose host or origin is refused is answered like a
    /// client's: so the refusal gets an id, and is counted.
    pub async fn answer(&self, connection: Option<Arc<Connection>>, request: Request) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let shown = self.context.look(&parts.headers);
        let route = peer_route(&parts.headers, parts.uri.path());
        let page = self.check_web(&parts, &shown, route.is_some());
        match (&page, route) {
            (Ok(_), Some(route)) => {
                self.context.traffic.peers.add(1);
                connection.iter().for_each(|connection| connection.timeouts.answers_small(false));
                Box::pin(self.peers.answer(&self.context, route, connection.as_deref(), parts, body)).await
            }
            _ => self.answer_client(page, self.client_call(connection, shown, parts, body)).await,
        }
    }

    /// Refuses a client's call for a reason that lies in its connection.
    pub async fn refuse(
        &self,
        connection: Arc<Connection>,
        request: Request,
        why: Problem,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let shown = self.context.look(&parts.headers);
        self.answer_client(Err(why), self.client_call(Some(connection), shown, parts, body)).await
    }

    fn client_call(
        &self,
        connection: Option<Arc<Connection>>,
        shown: Shown,
        parts: Parts,
        body: Body,
    ) -> ClientCall {
        let id = request_id(&parts.headers, &self.context);
        ClientCall { head: Box::new(ClientHead { parts, asker: Asker::new(connection, shown, id) }), body }
    }

    async fn answer_client(
        &self,
        page: Result<Option<HeaderValue>, Problem>,
        mut call: ClientCall,
    ) -> Response<Body> {
        let ClientHead { parts, asker } = &mut *call.head;
        let begun = Call::begin(parts, &self.context, &asker.request_id);
        asker.entry = begun.entry.clone();
        let reader = Reader::of(&call.head);
        let (page, mut response) = match page {
            Ok(page) => (page, self.admitted(call).await),
            Err(problem) => (None, problem.into_response()),
        };
        let mut problem = response.extensions_mut().remove::<Problem>();
        if let Some(problem) = &problem {
            begun.refused(response.status(), problem);
            response = self.render(problem, &response, &begun.id);
        }
        // The problem is rendered before its memory is counted, and the counters come after that: they show
        // what the client gets, not what the handler wanted.
        response = reader.account(response).unwrap_or_else(|denied| {
            let response = self.render(&denied, &empty(), &begun.id);
            problem = Some(denied);
            response
        });
        let id = begun.id.clone();
        begun.answered(&response, problem.map(|problem| problem.code().name()));
        complete(response.headers_mut(), &self.context, id);
        // Refusals get these headers, too: without them an allowed page could not read why it was refused.
        if let Some(page) = page {
            allow(response.headers_mut(), page);
        }
        response
    }

    /// Checks the host and the origin that a browser states. Returns the origin of a page that may read the response, if it is another
    /// origin.
    fn check_web(&self, parts: &Parts, shown: &Shown, of_peer: bool) -> Result<Option<HeaderValue>, Problem> {
        let (context, host) = (&self.context, host(parts)?);
        // A foreign page has no credential: the Host check is skipped for a caller that shows one, or that must prove that it has one.
        if !(of_peer && context.setup.secret.is_some() || matches!(shown, Shown::Right(_))) {
            context.web.check_host(host, |name| context.is_member_name(name))?;
        }
        context.web.check_origin(parts, |origin| context.is_member_origin(origin))
    }

    async fn admitted(&self, mut call: ClientCall) -> Response<Body> {
        match self.admit(&call.head) {
            Ok(_) if is_preflight(&call.head.parts) => preflight(),
            Ok(None) => self.routes.answer(call).await,
            // The request has only a weak reference, so the seat becomes free when the response's head
            // exists. Lists keep it in their body until that is sent: each holds megabytes.
            Ok(Some((class, seat))) => {
                call.head.asker.admitted = seat.admitted();
                let response = self.routes.answer(call).await;
                match class {
                    Class::Lists => response.map(|body| Seated::body(body, seat)),
                    _ => response,
                }
            }
            Err(problem) => problem.into_response(),
        }
    }

    fn admit(&self, head: &ClientHead) -> Result<Option<(Class, Arc<Seat>)>, Problem> {
        let ClientHead { parts, asker } = head;
        let most = self.context.limits.head_bytes;
        if size_of_head(parts) > most {
            let detail = format!("the head of the request has more than {most} bytes");
            return Err(Problem::new(Code::RequestHeaderFieldsTooLarge, detail));
        }
        let path = parts.uri.path();
        if has_dot_segments(path) {
            return Err(Problem::field(
                "path",
                "path segments . and .. are not allowed: many clients rewrite them",
            ));
        }
        check_cluster(&parts.headers, || self.context.setup.known().cluster)?;
        let Some(class) = Class::of(&parts.method, path) else {
            return Ok(None);
        };
        // An unknown token does not count here: it would first have to be looked up at the leader, and any
        // caller can make one up.
        let may_order = || matches!(&asker.shown, Shown::Right(principal) if principal.may_order());
        if asker.connection.as_ref().is_some_and(|connection| connection.is_reserve) && !may_order() {
            return Err(beyond("connections to this node"));
        }
        let caller = asker.connection.as_ref().map(|connection| connection.caller.origin);
        let origin = origin(&parts.headers, &self.context.setup, asker.certified(), caller);
        let sharers = Sharers { origin, principal: Some(principal_of(&asker.shown)) };
        Ok(Some((class, self.context.seats.take(class, sharers)?)))
    }

    fn render(&self, problem: &Problem, response: &Response<Body>, id: &HeaderValue) -> Response<Body> {
        self.context.traffic.refused(problem.code().name());
        let request_id = id.to_str().unwrap_or_default();
        let mut rendered = self.context.explain(problem, request_id, Problem::render);
        if let Some(allow) = response.headers().get(ALLOW) {
            rendered.headers_mut().insert(ALLOW, allow.clone());
        }
        rendered
    }
}

/// Returns the sharer by the credential of a call, before the call is judged.
/// All unknown and wrong credentials are one sharer. If each were another one, a caller could take a new
/// share with every token that it makes up.
fn principal_of(shown: &Shown) -> Sharer {
    match shown {
        Shown::Nothing => Sharer::NoToken,
        Shown::Right(principal) => Sharer::of(&principal.who),
        Shown::UnknownToken(_) | Shown::Wrong => Sharer::UnknownToken,
    }
}

fn beyond(bound: &'static str) -> Problem {
    Problem::new(Code::TooManyRequests, format!("limit reached: {bound}")).with("bound", bound)
}

/// The reader of a response.
struct Reader {
    connection: Option<Arc<Connection>>,
    version: Version,
    /// The call has changed nothing, so its response may be replaced by a refusal.
    only_reads: bool,
}

impl Reader {
    fn of(head: &ClientHead) -> Reader {
        let only_reads = [Method::GET, Method::HEAD].contains(&head.parts.method);
        Reader { connection: head.asker.connection.clone(), version: head.parts.version, only_reads }
    }

    /// Accounts for the body of the response until its reader has it, if there is memory for it. A streamed body has no known length, and
    /// has its own bounds.
    fn account(&self, response: Response<Body>) -> Result<Response<Body>, Problem> {
        let Some(connection) = &self.connection else {
            return Ok(response);
        };
        let length = response.body().size_hint().exact();
        let is_small = self.version < Version::HTTP_2 && length.is_some_and(|bytes| bytes <= SMALL_BODY_MOST);
        connection.timeouts.answers_small(is_small);
        let Some(length) = length.filter(|length| !is_small && *length > 0) else {
            return Ok(response);
        };
        let bytes = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(RESPONSE_OVERHEAD_BYTES);
        // A read may be replaced by 429: it changed nothing. The outcome of a write is sent in any case, since 429 would say that
        // the write was surely not applied (P15). Its memory still counts, and keeps further bodies out.
        let held = match self.only_reads && response.status().is_success() {
            true => connection.caller.hold(bytes).ok_or_else(no_memory)?,
            false => connection.caller.hold_anyway(bytes),
        };
        let untaken = || Some(connection.timeouts.answer());
        let account = Account { held: Some(held), untaken: untaken() };
        Ok(response.map(|body| super::held::held(body, length, account, untaken())))
    }
}

/// A call with an envelope comes from a peer.
/// A client can send such a header, too; `peer` decides whether the caller is a node.
pub fn peer_route(headers: &HeaderMap, path: &str) -> Option<Route> {
    if !headers.contains_key(header::MESSAGE) {
        return None;
    }
    match path {
        "/hearbeat" => Some(Route::Heartbeat),
        path => Route::ALL.into_iter().find(|route| route.path() == path),
    }
}

/// Returns the approximate size of the head on HTTP/1.
fn size_of_head(parts: &Parts) -> usize {
    /// `GET`, `HTTP/1.1` and blanks; or `: ` and the end of a line.
    const FRAME: usize = 4;
    let target = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let lines = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FRAME);
    lines.sum::<usize>() + target + 4 * FRAME
}

/// The maximum length of a client's request id. The id is repeated in responses, problems and logs, so it is short and plain.
const REQUEST_ID_MOST: usize = 128;

/// Adds the headers that the handler has not set. A response from another node has set all of them about that node.
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

/// Returns the client's own id if it is usable, or a new one. It is forwarded with the call: the lines, spans and refusals of both nodes
/// name the same id.
fn request_id(headers: &HeaderMap, context: &Context) -> HeaderValue {
    let usable = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_MOST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    if let Some(given) = headers.get(REQUEST_ID).filter(usable) {
        return given.clone();
    }
    value_of(context.request_id())
}
