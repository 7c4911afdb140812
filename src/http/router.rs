//! Which handler answers which route.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use super::context::Context;
use super::errors::unknown_route;
use super::problem::{Code, Problem};
use super::{
    channels, commands, conflicts, docs, feed, lists, operator, probes, processes, restore, roles, steer,
};

pub fn router(context: Arc<Context>) -> Router {
    Router::new()
        .merge(clients())
        .merge(seed())
        .merge(operators())
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .with_state(context)
}

fn clients() -> Router<Arc<Context>> {
    let document = || get(docs::get).put(docs::put).delete(docs::delete);
    let process = || get(processes::get).put(processes::put).delete(processes::delete).post(processes::order);
    Router::new()
        .route("/v1/commands", post(commands::run))
        .route("/v1/users", get(lists::users))
        .route("/v1/users/{*name}", get(lists::user))
        .route("/v1/elections", get(lists::elections))
        .route("/v1/elections/{*name}", get(lists::election))
        .route("/v1/docs", get(docs::list))
        .route("/v1/docs/", document())
        .route("/v1/docs/{*key}", document())
        .route("/v1/conflicts", get(conflicts::list))
        .route("/v1/conflicts/{*id}", get(conflicts::get).post(conflicts::order))
        .route("/v1/roles", get(roles::list))
        .route("/v1/roles/{*role}", get(roles::get).post(roles::order))
        .route("/v1/processes", get(processes::list))
        .route("/v1/processes/{*id}", process())
        .route("/v1/feed", get(feed::follow))
        .route("/v1/channels/{*name}", get(channels::listen).post(channels::publish))
        .route("/v1/status", get(probes::status))
        .route("/livez", get(probes::livez))
        .route("/readyz", get(probes::readyz))
        .route("/leader", get(probes::leader))
        .route("/", get(probes::root))
}

/// The seed's own routes, as an operator calls them. A peer's calls never come here.
fn seed() -> Router<Arc<Context>> {
    Router::new()
        .route("/heartbeat", post(operator::heartbeat))
        .route("/hearbeat", post(operator::heartbeat))
        .route("/writesync", post(operator::writesync))
        .route("/declare_capability", post(operator::declare_capability))
        .route("/recv_elect", post(operator::recv_elect))
        .route("/catch_up", post(operator::catch_up))
        .route("/is_leader", post(operator::is_leader))
        .route("/merge_conflict", post(restore::merge_conflict))
        .route("/override_all_data", post(restore::override_all_data))
        .route("/service_down", post(steer::service_down))
        .route("/service_up", post(steer::service_up))
}

fn operators() -> Router<Arc<Context>> {
    Router::new()
        .route("/elect", post(steer::elect))
        .route("/handoff", post(steer::handoff))
        .route("/form", post(steer::form))
}

async fn not_found(uri: Uri) -> Problem {
    unknown_route(uri.path())
}

/// The router adds `Allow`. To ask for just that is no mistake.
async fn not_allowed(method: Method) -> Response<Body> {
    match method {
        Method::OPTIONS => StatusCode::OK.into_response(),
        method => {
            let detail = format!("this route does not take {method}; Allow says what it takes");
            Problem::new(Code::MethodNotAllowed, detail).into_response()
        }
    }
}
