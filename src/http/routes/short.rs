//! The short way of the calls that clients make most often: from the front to the handler without the router.
//!
//! ```text
//!   front ─┬─ short ─────────────────┬─► guarded ─► handler
//!          └─ router: any other call ┘
//! ```
//!
//! The router has these routes too, because it names the methods of a path. Both ways end in the same handler, and a test compares
//! their guards.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Response};
use axum::response::IntoResponse;

use super::guarded::Guarded;
use super::{bulk, commands, docs, processes, roles};
use crate::http::access::needs::TABLE;
use crate::http::answer::Answer;
use crate::http::request::{ClientCall, Context, is_ndjson};

const DOC: &str = "/v1/docs/{*key}";
const ROLE: &str = "/v1/roles/{*role}";
const PROCESS: &str = "/v1/processes/{*id}";
const COMMANDS: &str = "/v1/commands";

/// A call that is decided within some microseconds, apart from the time for which it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    GetDoc,
    PutDoc,
    DeleteDoc,
    RenewDoc,
    Commands,
    /// Acquires, renews or releases a role.
    Role,
    Heartbeat,
}

impl Short {
    const ALL: [Short; 7] = [
        Short::GetDoc,
        Short::PutDoc,
        Short::DeleteDoc,
        Short::RenewDoc,
        Short::Commands,
        Short::Role,
        Short::Heartbeat,
    ];

    pub fn of(method: &Method, path: &str) -> Option<Short> {
        let after = |prefix| path.strip_prefix(prefix).is_some_and(|rest: &str| !rest.is_empty());
        let operation = || path.rsplit_once('/').map_or("", |(_, operation)| operation);
        match *method {
            Method::GET if after("/v1/docs/") => Some(Short::GetDoc),
            Method::PUT if after("/v1/docs/") => Some(Short::PutDoc),
            Method::DELETE if after("/v1/docs/") => Some(Short::DeleteDoc),
            Method::POST if path == COMMANDS => Some(Short::Commands),
            Method::POST if after("/v1/docs/") => Some(Short::RenewDoc),
            Method::POST if after("/v1/roles/") => {
                matches!(operation(), "acquire" | "renew" | "release").then_some(Short::Role)
            }
            Method::POST if after("/v1/processes/") => {
                (operation() == "heartbeat").then_some(Short::Heartbeat)
            }
            _ => None,
        }
    }

    /// The handler as the router calls it.
    pub async fn routed(self, State(context): State<Arc<Context>>, call: ClientCall) -> Answer {
        self.handle(&context, call).await
    }

    async fn handle(self, context: &Arc<Context>, call: ClientCall) -> Answer {
        if self == Short::Commands && is_ndjson(&call.head.parts.headers) {
            return Box::pin(bulk::run(context.clone(), call)).await;
        }
        let request = call.whole(context).await?;
        match self {
            Short::GetDoc => docs::get(context, &request).await,
            Short::PutDoc => docs::put(context, &request).await,
            Short::DeleteDoc => docs::delete(context, &request).await,
            Short::RenewDoc => docs::renew(context, &request).await,
            Short::Role => Box::pin(roles::answered(context, request)).await,
            Short::Commands => commands::run(context, &request).await,
            Short::Heartbeat => Box::pin(processes::operation(State(context.clone()), request)).await,
        }
    }

    /// Returns the method and the pattern of its row in the table of needs.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Short::GetDoc => ("GET", DOC),
            Short::PutDoc => ("PUT", DOC),
            Short::DeleteDoc => ("DELETE", DOC),
            Short::RenewDoc => ("POST", DOC),
            Short::Commands => ("POST", COMMANDS),
            Short::Role => ("POST", ROLE),
            Short::Heartbeat => ("POST", PROCESS),
        }
    }
}

/// The guards of the short calls, looked up once.
#[derive(Debug)]
pub struct ShortGuards([Guarded; Short::ALL.len()]);

impl ShortGuards {
    pub fn new() -> ShortGuards {
        ShortGuards(Short::ALL.map(|short| {
            let (method, pattern) = short.row();
            let row = TABLE.iter().find(|row| row.0 == method && row.1 == pattern);
            let (_, pattern, need) = row.unwrap_or_else(|| unreachable!("no route {method} {pattern}"));
            Guarded { pattern, need: *need }
        }))
    }

    pub async fn answer(&self, context: &Arc<Context>, short: Short, call: ClientCall) -> Response<Body> {
        let handler = |call| async { short.handle(context, call).await.into_response() };
        self.0[short as usize].judge(context, call, handler).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_call_is_judged_by_the_row_of_its_route() {
        let mut found = 0;
        for (method, pattern, _) in TABLE {
            let fixed = pattern.split_once("{*").map_or(pattern, |(fixed, _)| fixed);
            for rest in
                ["", "a", "a/b", "a/acquire", "a/renew", "a/release", "a/heartbeat", "a/elect", "a/hold"]
            {
                let (path, takes_more) = (format!("{fixed}{rest}"), fixed != pattern);
                if takes_more == rest.is_empty() {
                    continue;
                }
                let method: Method = method.parse().expect("a method");
                if let Some(short) = Short::of(&method, &path) {
                    assert_eq!(short.row(), (method.as_str(), pattern), "{path}");
                    found += 1;
                }
            }
        }
        // Eight names of a document for each of four methods, three operations on a role, a heartbeat, and the commands.
        assert_eq!(found, 4 * 8 + 3 + 1 + 1);
        let guards = ShortGuards::new();
        for short in Short::ALL {
            assert_eq!(guards.0[short as usize].pattern, short.row().1);
        }
    }

    #[test]
    fn what_may_last_or_gives_an_order_takes_the_long_way() {
        for call in [
            "GET /v1/docs",
            "GET /v1/docs/",
            "HEAD /v1/docs/a",
            "POST /v1/roles/a/hold",
            "POST /v1/roles/a/tie",
            "POST /v1/roles/a/elect",
            "POST /v1/processes/a/remove",
            "PUT /v1/processes/a",
        ] {
            let (method, path) = call.split_once(' ').expect("a method and a path");
            let short = Short::of(&method.parse().expect("a method"), path);
            assert_eq!(short, None, "{call}");
        }
    }
}
