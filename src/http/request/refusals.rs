//! Recent refusals by the request's id: the caller has the id from the response, and may ask later for the reason.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http::answer::Problem;
use crate::store::date_text;
use crate::types::WallTime;

/// Some seconds of a node that refuses all calls, or days of a quiet one.
/// With the bounds of a path and of a detail this is some megabytes at most.
const KEPT_MOST: usize = 1024;

/// On these routes a refusal is a normal answer.
const PROBES: [&str; 3] = ["/leader", "/livez", "/readyz"];

/// The maximum length of a path, which may be any text.
const PATH_MOST: usize = 256;

#[derive(Debug, Default)]
pub struct RecentRefusals(Mutex<VecDeque<(String, Value)>>);

impl RecentRefusals {
    /// No credential is kept, and no body: any caller who may give orders can read these entries.
    pub fn add(
        &self,
        id: &str,
        at: WallTime,
        method: &Method,
        path: &str,
        status: StatusCode,
        problem: &Problem,
    ) {
        // Load balancers ask each second, and callers without a credential as often as they like: they would displace the entries people
        // look for.
        if PROBES.contains(&path) || status == StatusCode::UNAUTHORIZED {
            return;
        }
        let path: String = path.chars().take(PATH_MOST).collect();
        let told = json!({
            "request_id": id,
            "at": date_text(at),
            "method": method.as_str(),
            "path": path,
            "status": status.as_u16(),
            "code": problem.code().name(),
            "detail": problem.said(),
            "retryable": problem.code().retryable(),
        });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MOST {
            kept.pop_front();
        }
        kept.push_back((id.to_string(), told));
    }

    /// Returns all calls of that id, oldest first: a client that chooses its ids may choose one twice.
    pub fn of(&self, id: &str) -> Vec<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|(other, _)| other == id).map(|(_, told)| told.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::answer::Code;

    #[test]
    fn the_newest_refusals_are_found_by_their_ids() {
        let refusals = RecentRefusals::default();
        let problem = Problem::new(Code::NoQuorum, "this node is alone");
        let add = |id: &str, path: &str, status: StatusCode| {
            refusals.add(id, WallTime(0), &Method::PUT, path, status, &problem);
        };
        let busy = StatusCode::SERVICE_UNAVAILABLE;
        for number in 0..KEPT_MOST + 2 {
            add(&format!("r{number}"), &format!("/v1/docs/{}", "x".repeat(number)), busy);
        }
        for _ in 0..KEPT_MOST {
            add("probe", "/leader", busy);
            add("stranger", "/v1/docs/a", StatusCode::UNAUTHORIZED);
        }
        assert_eq!(refusals.of("r1"), [] as [Value; 0], "there was no more room for it");
        let found = refusals.of(&format!("r{KEPT_MOST}"));
        assert_eq!(found[0]["code"], "no_quorum");
        assert_eq!(found[0]["detail"], "this node is alone");
        assert_eq!(found[0]["path"].as_str().map(str::len), Some(PATH_MOST));
    }
}
