//! The router: it says which handler answers which route.

mod backup;
mod bulk;
mod catch_up;
mod channels;
mod commands;
mod conflicts;
mod docs;
mod feed;
mod hold;
mod members;
pub mod metrics;
mod operators;
mod pieces;
mod probes;
mod processes;
mod restore;
mod restore_backup;
mod role_calls;
mod roles;
mod tie;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::{get, post};

use crate::http::answer::{Answer, Code, Problem, unknown_route};
use crate::http::request::{ClientRequest, Context};

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
    let document = || get(docs::get).put(docs::put).delete(docs::delete).post(docs::renew);
    let process =
        || get(processes::get).put(processes::put).delete(processes::delete).post(processes::heartbeat);
    Router::new()
        .route("/v1/commands", post(commands::run))
        .route("/v1/users", get(commands::users))
        .route("/v1/users/{*name}", get(commands::user))
        .route("/v1/elections", get(commands::elections))
        .route("/v1/elections/{*name}", get(commands::election))
        .route("/v1/docs", get(docs::list))
        .route("/v1/docs/", document())
        .route("/v1/docs/{*key}", document())
        .route("/v1/conflicts", get(conflicts::list))
        .route("/v1/conflicts/{*id}", get(conflicts::get).post(conflicts::resolve))
        .route("/v1/roles", get(roles::list))
        .route("/v1/roles/{*role}", get(roles::get).post(role_operation))
        .route("/v1/processes", get(processes::list))
        .route("/v1/processes/{*id}", process())
        .route("/v1/feed", get(feed::follow))
        .route("/v1/channels/{*name}", get(channels::listen).post(channels::publish))
        .route("/v1/status", get(probes::status))
        .route("/livez", get(probes::livez))
        .route("/readyz", get(probes::readyz))
        .route("/leader", get(probes::leader))
        .route("/metrics", get(metrics::scrape))
        .route("/", get(probes::root))
}

/// The seed's own routes, as an operator calls them. A peer's calls never come here.
fn seed() -> Router<Arc<Context>> {
    Router::new()
        .route("/heartbeat", post(operators::heartbeat))
        .route("/hearbeat", post(operators::heartbeat))
        .route("/writesync", post(operators::writesync))
        .route("/declare_capability", post(operators::declare_capability))
        .route("/recv_elect", post(operators::recv_elect))
        .route("/catch_up", post(catch_up::catch_up))
        .route("/is_leader", post(operators::is_leader))
        .route("/merge_conflict", post(restore::merge_conflict))
        .route("/override_all_data", post(restore::override_all_data))
        .route("/service_down", post(operators::service_down))
        .route("/service_up", post(operators::service_up))
}

fn operators() -> Router<Arc<Context>> {
    Router::new()
        .route("/elect", post(operators::elect))
        .route("/handoff", post(operators::handoff))
        .route("/form", post(operators::form))
        .route("/v1/backup", get(backup::backup))
        .route("/v1/restore", post(restore_backup::restore))
        .route("/v1/members", get(members::list).post(members::change))
}

/// `…/{role}/hold` and `…/{role}/tie` answer with a stream, the others with one response.
async fn role_operation(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let path = request.path();
    if let Some(path) = path.strip_suffix("/hold") {
        let role = roles::role_in(path)?;
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
