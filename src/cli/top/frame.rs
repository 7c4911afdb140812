//! The contents of the screen at one moment: for people cut to its size, for scripts as one object.

use serde_json::{Value, json};

use super::events::ShownEvent;
use super::rates::Rate;
use crate::cli::out::clean;
use crate::cli::pages::cell;
use crate::cli::table::Table;

#[derive(Debug)]
pub struct ScreenFrame {
    pub status: String,
    /// The cluster for scripts, or why no node has answered.
    pub cluster: Result<Value, String>,
    pub rate: Option<Rate>,
    /// `None` if the roles cannot be read.
    pub roles: Option<Vec<Value>>,
    /// The events, the newest first.
    pub events: Vec<ShownEvent>,
}

/// The number of lines for events, if there are that many. The roles get the rest.
const EVENTS_LEAST: usize = 6;

impl ScreenFrame {
    /// At most `rows` lines of at most `columns` characters: the nodes, then roles and events.
    pub fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.status.lines().map(str::to_string).collect();
        lines.extend(["".to_string(), self.rate_line()]);
        let left = rows.saturating_sub(lines.len());
        let events = self.events.len().min(EVENTS_LEAST);
        // Each of the two lists has a heading and an empty line.
        let for_roles = left.saturating_sub(events + 4);
        lines.extend(self.role_lines(for_roles));
        if !self.events.is_empty() {
            lines.extend(["".to_string(), "EVENTS, newest first".to_string()]);
            let room = rows.saturating_sub(lines.len());
            lines.extend(self.events.iter().take(room).map(|event| event.line.clone()));
        }
        lines.truncate(rows);
        lines.iter().map(|line| clean(line).chars().take(columns).collect()).collect()
    }

    /// What is missing is null: `error` says why the cluster is, and the roles are if the token may not read them.
    pub fn json(&self) -> Value {
        json!({
            "cluster": self.cluster.as_ref().ok(),
            "error": self.cluster.as_ref().err(),
            "records_per_second": self.rate.map(|rate| rate.records_a_second),
            "commit_ms": self.rate.and_then(|rate| rate.commit_ms),
            "roles": self.roles,
            "events": self.events.iter().map(|event| &event.document).collect::<Vec<_>>(),
        })
    }

    fn rate_line(&self) -> String {
        let Some(rate) = self.rate else { return "records -/s   commit - ms".to_string() };
        let commit = rate.commit_ms.map_or("-".to_string(), |ms| format!("{ms:.1}"));
        format!("records {:.0}/s   commit {commit} ms", rate.records_a_second)
    }

    fn role_lines(&self, room: usize) -> Vec<String> {
        let Some(roles) = self.roles.as_ref().filter(|roles| !roles.is_empty()) else { return Vec::new() };
        let mut table = Table::new(["ROLE", "HOLDER", "TOKEN", "EXPIRES IN MS", "WAITING"]);
        for role in roles.iter().take(room) {
            let leader = &role["leader"];
            let holder = if leader.is_null() { "nobody".to_string() } else { cell(&leader["instance_id"]) };
            let [token, expires, waiting] =
                [&role["token"], &role["expires_in_ms"], &role["waiting"]].map(cell);
            table.row([cell(&role["role"]), holder, token, expires, waiting]);
        }
        let mut lines = vec![String::new()];
        lines.extend(table.to_string().lines().map(str::to_string));
        if roles.len() > room {
            lines.push(format!("… and {} more", roles.len() - room));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> ShownEvent {
        ShownEvent { line: format!("event {number}\u{1b}[31m"), document: json!({"kind": "conflict"}) }
    }

    #[test]
    fn scripts_get_one_object() {
        let role = json!({"role": "r0", "leader": {"instance_id": "i"}, "token": 0, "expires_in_ms": 9, "waiting": 0});
        let expected = json!({"cluster": {"name": "dev"}, "error": null, "records_per_second": 1234.4,
            "commit_ms": 3.21, "roles": [role], "events": [{"kind": "conflict"}]});
        assert_eq!(frame(1, 1).json(), expected);
        let cluster = Err("no node could be reached".to_string());
        let frame = ScreenFrame { cluster, rate: None, roles: None, ..frame(0, 0) };
        let expected = json!({"cluster": null, "error": "no node could be reached", "records_per_second": null,
            "commit_ms": null, "roles": null, "events": []});
        assert_eq!(frame.json(), expected);
    }

    fn frame(roles: usize, events: usize) -> ScreenFrame {
        let role = |n: usize| json!({"role": format!("r{n}"), "leader": {"instance_id": "i"}, "token": n, "expires_in_ms": 9, "waiting": 0});
        ScreenFrame {
            status: "cluster dev\n1  node-1\n".to_string(),
            cluster: Ok(json!({"name": "dev"})),
            rate: Some(Rate { records_a_second: 1234.4, commit_ms: Some(3.21) }),
            roles: Some((0..roles).map(role).collect()),
            events: (0..events).map(event).collect(),
        }
    }

    #[test]
    fn it_fits_whatever_there_is() {
        for (roles, events) in [(0, 0), (3, 2), (100, 50)] {
            for rows in 0..40 {
                let lines = frame(roles, events).lines(12, rows);
                assert!(
                    lines.len() <= rows && lines.iter().all(|line| line.chars().count() <= 12),
                    "{lines:?}"
                );
            }
        }
        let lines = frame(100, 50).lines(80, 24);
        assert_eq!(lines[..4], ["cluster dev", "1  node-1", "", "records 1234/s   commit 3.2 ms"]);
        assert!(
            lines.iter().any(|line| line.starts_with("r0 "))
                && lines.iter().any(|line| line.contains(" more"))
        );
        assert!(lines.iter().filter(|line| line.starts_with("event")).count() >= 5, "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "nobody's words move the cursor");
    }
}
