//! Counts the calls to this node and their responses, by route.
//!
//! Each route has its counters from the start, so counting takes no lock. Counters by problem code have a
//! lock: there are some 40 codes, and problems are rare.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::{Counter, Histogram};

/// The first words of routes, without `/v1/`. The list is fixed, so unknown paths cannot add a route.
/// A label for each path would let any caller make as many time series as it likes. A route that is not
/// listed counts as `other`.
const ROUTES: [&str; 36] = [
    "commands",
    "docs",
    "users",
    "elections",
    "conflicts",
    "roles",
    "processes",
    "channels",
    "feed",
    "status",
    "members",
    "backup",
    "restore",
    "tokens",
    "livez",
    "readyz",
    "leader",
    "metrics",
    "heartbeat",
    "writesync",
    "declare_capability",
    "recv_elect",
    "catch_up",
    "is_leader",
    "merge_conflict",
    "override_all_data",
    "elect",
    "handoff",
    "service_down",
    "service_up",
    "form",
    "explain",
    "diagnostics",
    "openapi.json",
    "ui",
    OTHER,
];
const OTHER: &str = "other";

/// The statuses in use; the last entry stands for all others.
const STATUSES: [u16; 27] = [
    200, 201, 204, 304, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415, 421, 422, 429, 431, 499, 500,
    502, 503, 504, 505, 507, 0,
];

#[derive(Debug)]
pub struct Traffic {
    routes: [RouteTraffic; ROUTES.len()],
    /// Problems by their code. Problems are few, or they are a flood of one kind, from calls that do no other
    /// work.
    problems: Mutex<BTreeMap<&'static str, u64>>,
    /// Calls of other nodes.
    pub peers: Counter,
}

impl Default for Traffic {
    fn default() -> Traffic {
        let routes = std::array::from_fn(|_| RouteTraffic::default());
        Traffic { routes, problems: Mutex::default(), peers: Counter::default() }
    }
}

#[derive(Debug, Default)]
struct RouteTraffic {
    answers: [Counter; STATUSES.len()],
    took: Histogram,
}

/// An open call.
#[derive(Debug)]
pub struct Counted {
    route: usize,
    began: Instant,
}

impl Counted {
    pub fn begin(path: &str) -> Counted {
        let path = path.trim_start_matches('/');
        let first = path.strip_prefix("v1/").unwrap_or(path).split('/').next().unwrap_or_default();
        let route = ROUTES.iter().position(|known| *known == first).unwrap_or(ROUTES.len() - 1);
        Counted { route, began: Instant::now() }
    }
}

impl Counted {
    /// Returns its name among the counted routes.
    pub fn route(&self) -> &'static str {
        ROUTES[self.route]
    }

    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Traffic {
    /// Counts a response that has begun: the duration of streams is not counted.
    pub fn answered(&self, call: &Counted, status: u16) {
        self.count(call, status);
        self.routes[call.route].took.observe(call.began.elapsed());
    }

    /// Counts a call that has ended, with a response or without one.
    /// A call without a response adds no duration: how long its caller waited says nothing about the node.
    pub fn count(&self, call: &Counted, status: u16) {
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        self.routes[call.route].answers[status].add(1);
    }

    pub fn refused(&self, code: &'static str) {
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// Returns route, status and count of all responses.
    pub fn answers(&self) -> impl Iterator<Item = (&'static str, u16, u64)> + '_ {
        let routes = ROUTES.iter().zip(&self.routes);
        let answers = routes.flat_map(|(route, traffic)| {
            STATUSES.iter().zip(&traffic.answers).map(|(status, count)| (*route, *status, count.get()))
        });
        answers.filter(|(.., count)| *count > 0)
    }

    pub fn took(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let used = |(_, traffic): &(&&str, &RouteTraffic)| traffic.took.upto().1 > 0;
        ROUTES.iter().zip(&self.routes).filter(used).map(|(route, traffic)| (*route, &traffic.took))
    }

    pub fn problems(&self) -> BTreeMap<&'static str, u64> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_counted_under_few_names() {
        let traffic = Traffic::default();
        for (path, status) in
            [("/v1/docs/a/b", 200), ("/v1/docs", 200), ("/elect", 401), ("/v1/%00", 404), ("/", 799)]
        {
            traffic.answered(&Counted::begin(path), status);
        }
        let answers: Vec<_> = traffic.answers().collect();
        assert_eq!(answers, [("docs", 200, 2), ("elect", 401, 1), ("other", 404, 1), ("other", 0, 1)]);
    }
}
