//! The router assigns a handler to each route of the table of needs.
//!
//! ```text
//!   a row of `needs::TABLE` ─► guarded: who calls, and is it granted? ─► the handler ─► dispatch
//!                    short ──────┘
//! ```
//!
//! A route exists only with a row in the table, so none is without a guard. The files:
//!
//! - `guarded` judges the caller of every route. `short` takes the calls that clients make most often past the router.
//! - `docs`, `commands` with `bulk`, `conflicts`, `roles`, `processes` and `tokens` are the data.
//!   `role_calls`, `hold` and `tie` hold a role for a client with a stream.
//! - `feed` and `channels` are streams for readers.
//! - `health`, `metrics`, `explain` (with `explain_health`, `explain_nodes` and `explain_roles`) and `members` show the cluster.
//!   `operators`, `backups`, `restore` and `catch_up` take orders.
//! - `embedded` has the files that are part of the binary, and `pieces` sends bodies as large as the state.

mod backups;
mod bulk;
mod catch_up;
mod channels;
mod commands;
mod conflicts;
mod docs;
mod embedded;
mod explain;
mod explain_health;
mod explain_nodes;
mod explain_roles;
mod feed;
mod guarded;
mod health;
mod hold;
mod members;
pub mod metrics;
mod operators;
mod pieces;
mod processes;
mod restore;
mod role_calls;
mod roles;
mod short;
mod tie;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Response, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, delete, get, post, put};

use guarded::{Guarded, guard};
pub use short::Short;
use short::ShortGuards;
use tower::Service;

use crate::http::access::needs::{Row, TABLE};
use crate::http::answer::{Answer, Code, Problem, unknown_route};
use crate::http::request::{ClientCall, ClientRequest, Context};

/// The routes of a node.
#[derive(Debug)]
pub struct Routes {
    context: Arc<Context>,
    short: ShortGuards,
    router: Router,
}

impl Routes {
    pub fn new(context: Arc<Context>) -> Routes {
        Routes { router: router(context.clone()), short: ShortGuards::new(), context }
    }

    /// Answers a client's call. A short call takes the short way to its handler, and any other goes through the router.
    pub async fn answer(&self, call: ClientCall) -> Response<Body> {
        let parts = &call.head.parts;
        if let Some(short) = Short::of(&parts.method, parts.uri.path()) {
            return self.short.answer(&self.context, short, call).await;
        }
        match Box::pin(self.router.clone().call(call.into_request())).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Builds a route for each row of the table of needs, behind the guard that checks the need.
fn router(context: Arc<Context>) -> Router {
    let route = |router: Router<Arc<Context>>, (method, pattern, need): &Row| {
        let state = (context.clone(), Guarded { pattern, need: *need });
        router.route(pattern, served(method, pattern).route_layer(from_fn_with_state(state, guard)))
    };
    TABLE
        .iter()
        .fold(Router::new(), route)
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(context)
}

/// Returns the handler of a row of the table.
fn served(method: &str, pattern: &str) -> MethodRouter<Arc<Context>> {
    match method {
        "GET" => served_get(pattern),
        "POST" => served_post(pattern),
        "PUT" => match pattern {
            "/v1/docs/" | "/v1/docs/{*key}" => put(|state, call| Short::PutDoc.routed(state, call)),
            "/v1/processes/{*id}" => put(processes::put),
            _ => unserved(method, pattern),
        },
        "DELETE" => match pattern {
            "/v1/docs/" | "/v1/docs/{*key}" => delete(|state, call| Short::DeleteDoc.routed(state, call)),
            "/v1/processes/{*id}" => delete(processes::delete),
            "/v1/tokens/{*id}" => delete(tokens::revoke),
            _ => unserved(method, pattern),
        },
        _ => unserved(method, pattern),
    }
}

fn served_get(pattern: &str) -> MethodRouter<Arc<Context>> {
    match pattern {
        "/" => get(embedded::root),
        "/ui/{*file}" => get(embedded::file),
        "/openapi.json" => get(embedded::openapi),
        "/livez" => get(health::livez),
        "/readyz" => get(health::readyz),
        "/leader" => get(health::leader),
        "/metrics" => get(metrics::scrape),
        "/v1/status" => get(health::status),
        "/v1/diagnostics" => get(health::tell),
        "/v1/members" => get(members::list),
        "/v1/users" => get(commands::users),
        "/v1/users/{*name}" => get(commands::user),
        "/v1/elections" => get(commands::elections),
        "/v1/elections/{*name}" => get(commands::election),
        "/v1/docs" => get(docs::list),
        "/v1/docs/" | "/v1/docs/{*key}" => get(|state, call| Short::GetDoc.routed(state, call)),
        "/v1/conflicts" => get(conflicts::list),
        "/v1/conflicts/{*id}" => get(conflicts::get),
        "/v1/roles" => get(roles::list),
        "/v1/roles/{*role}" => get(roles::get),
        "/v1/processes" => get(processes::list),
        "/v1/processes/{*id}" => get(processes::get),
        "/v1/feed" => get(feed::follow),
        "/v1/channels/{*name}" => get(channels::listen),
        "/v1/caller" => get(tokens::caller),
        "/v1/tokens" => get(tokens::list),
        "/v1/backup" => get(backups::backup),
        "/v1/explain/leader" => get(explain::leader),
        "/v1/explain/roles/{*role}" => get(explain_roles::role),
        "/v1/explain/health" => get(explain_health::health),
        "/v1/explain/nodes/{*node}" => get(explain_nodes::node),
        "/v1/explain/conflicts/{*id}" => get(conflicts::explain),
        "/v1/explain/calls/{*id}" => get(explain::call),
        _ => unserved("GET", pattern),
    }
}

/// The seed's own routes are here in their form for operators: a peer's call never arrives here.
fn served_post(pattern: &str) -> MethodRouter<Arc<Context>> {
    match pattern {
        "/v1/commands" => post(|state, call| Short::Commands.routed(state, call)),
        "/v1/docs/" | "/v1/docs/{*key}" => post(|state, call| Short::RenewDoc.routed(state, call)),
        "/v1/conflicts/{*id}" => post(conflicts::resolve),
        "/v1/roles/{*role}" => post(role_operation),
        "/v1/processes/{*id}" => post(processes::operation),
        "/v1/channels/{*name}" => post(channels::publish),
        "/v1/tokens" => post(tokens::create),
        "/v1/restore" => post(backups::restore),
        "/v1/members" => post(members::change),
        "/heartbeat" | "/hearbeat" => post(operators::heartbeat),
        "/writesync" => post(operators::writesync),
        "/declare_capability" => post(operators::declare_capability),
        "/recv_elect" => post(operators::recv_elect),
        "/catch_up" => post(catch_up::catch_up),
        "/is_leader" => post(operators::is_leader),
        "/merge_conflict" => post(restore::merge_conflict),
        "/override_all_data" => post(restore::override_all_data),
        "/service_down" => post(operators::service_down),
        "/service_up" => post(operators::service_up),
        "/elect" => post(operators::elect),
        "/handoff" => post(operators::handoff),
        "/form" => post(operators::form),
        _ => unserved("POST", pattern),
    }
}

/// The table and the handlers are both part of this binary: a test builds a router from them.
/// A row without a handler is a mistake of the program, and no call can cause it.
fn unserved(method: &str, pattern: &str) -> ! {
    unreachable!("no handler for {method} {pattern}")
}

/// `…/{role}/hold` and `…/{role}/tie` answer with a stream, the others with one response.
/// A role's name may have slashes, so the operation is what follows the last one. A role whose name ends in
/// an operation is named with that slash encoded.
async fn role_operation(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let path = request.path();
    if let Some(path) = path.strip_suffix("/hold") {
        let role = roles::new_role_in(path)?;
        return hold::hold(context, &request, role).await;
    }
    if let Some(path) = path.strip_suffix("/tie") {
        let role = roles::role_in(path)?;
        return tie::tie(context, &request, role).await;
    }
    roles::answered(&context, request).await
}

async fn not_found(uri: Uri) -> Problem {
    unknown_route(uri.path())
}

/// The router adds `Allow`. An OPTIONS call asks only for this header, and is not an error.
async fn not_allowed(method: Method) -> Response<Body> {
    match method {
        Method::OPTIONS => StatusCode::OK.into_response(),
        method => {
            let detail = format!("this route does not support {method}; see the Allow header");
            Problem::new(Code::MethodNotAllowed, detail).into_response()
        }
    }
}
