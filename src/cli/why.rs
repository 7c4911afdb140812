//! `eldest why`: explains in sentences what has happened, and what would happen.

mod leader;
mod node;

use clap::Parser;
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use super::local_time::local;
use super::out::clean;
use super::output::Output;
use crate::client::{Request, encoded};
use node::Subject;
use node::{list, silent, text};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest why
  eldest why leader --changes 3
  eldest why role/billing
  eldest why node/node-3
  eldest why conflict/doc:app/config:8.2@41
  eldest why call/4f2a-1

The request id of a refused call is in its answer, as request_id and in the header X-Request-Id. Times are local,
by each node's own clock.")]
pub struct WhyArgs {
    /// leader, role/NAME, node/NAME, conflict/ID or call/REQUEST-ID
    #[arg(default_value = "leader", value_parser = node::parse)]
    what: Subject,
    /// Number of leader changes to show, newest first
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    changes: u16,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &WhyArgs) -> Result<(), Failure> {
    let target = &args.target;
    let (told, lines): (Value, fn(&Value) -> Vec<String>) = match &args.what {
        Subject::Leader => {
            let path = format!("/v1/explain/leader?limit={}", args.changes);
            (target.ask(&Request::get(path)).await?, leader::lines)
        }
        Subject::Role(role) => {
            let path = format!("/v1/explain/roles/{}", encoded(role));
            (target.ask(&Request::get(path)).await?, role_lines)
        }
        Subject::Call(id) => {
            let path = format!("/v1/explain/calls/{}", encoded(id));
            (target.ask(&Request::get(path)).await?, call_lines)
        }
        Subject::Conflict(id) => {
            let path = format!("/v1/explain/conflicts/{}", encoded(id));
            (target.ask(&Request::get(path)).await?, said)
        }
        Subject::Node(wanted) => {
            let path = format!("/v1/explain/nodes/{}", encoded(wanted));
            let told = target.ask(&Request::get(path)).await;
            (told.map_err(|failure| node::named(failure, wanted))?, node::lines)
        }
    };
    args.output.show(&told, |told| lines(told).iter().map(|line| clean(line) + "\n").collect())
}

fn role_lines(told: &Value) -> Vec<String> {
    let role = text(told, "role");
    let holder = &told["holder"];
    let mut lines = vec![match holder.is_null() {
        true => format!("{role} has no holder."),
        false => {
            let (instance, way) = (text(holder, "instance_id"), way(&told["held_by"]));
            format!("{instance} holds {role} with token {}{way}.", holder["token"])
        }
    }];
    match told["waiting"].as_u64() {
        Some(0) => lines.push("No instance waits for it.".to_string()),
        Some(1) => lines.push("1 instance waits for it.".to_string()),
        Some(count) => lines.push(format!("{count} instances wait for it.")),
        None => {}
    }
    let turns = list(told, "turns");
    match turns.is_empty() {
        true => lines.push("Earlier holders are unknown.".to_string()),
        false => lines.push("\nNewest first:".to_string()),
    }
    lines.extend(
        turns.iter().rev().map(|turn| format!("  {}  {}", local(text(turn, "at")), text(turn, "says"))),
    );
    lines
}

/// The stream by which a role is held. A holder that only renews its lease is the usual one, and nothing is said.
fn way(held: &Value) -> String {
    let node = text(&held["node"], "name");
    match text(held, "by") {
        "stream" => format!(", by a stream at {node}"),
        "tie" => format!(", tied to a connection to {node}"),
        _ => String::new(),
    }
}

fn call_lines(told: &Value) -> Vec<String> {
    let calls = list(told, "refused");
    let mut lines = Vec::new();
    if calls.is_empty() {
        lines.push(format!(
            "No node knows of a refusal with request id {}: the call was not refused, it was too long ago, or \
                the node has restarted since.",
            text(told, "request_id")
        ));
    }
    for call in calls {
        lines.push(format!(
            "{}  node {} refused {} {} with {} ({}): {}",
            local(text(call, "at")),
            call["node"],
            text(call, "method"),
            text(call, "path"),
            call["status"],
            text(call, "code"),
            text(call, "detail")
        ));
        let again = "The same call may succeed later.";
        let never = "It will be refused until that changes.";
        lines.push(if call["retryable"] == true { again } else { never }.to_string());
    }
    lines.extend(silent(told));
    lines
}

fn said(told: &Value) -> Vec<String> {
    list(told, "says").iter().filter_map(Value::as_str).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_role_is_told_in_sentences() {
        let told = json!({"role": "x", "holder": {"instance_id": "a", "token": 7}, "waiting": 2, "turns": [
            {"at": "T1", "says": "b did not renew it in time (token 6)"}, {"at": "T2", "says": "a got it, with the token 7"}]});
        let lines = role_lines(&told);
        assert_eq!(lines[0], "a holds x with token 7.");
        assert_eq!(lines[1], "2 instances wait for it.");
        assert_eq!(lines[3], "  T2  a got it, with the token 7");
        let way = |by: &str| {
            let held = json!({"by": by, "node": {"id": 2, "name": "node-2"}});
            let told = json!({"role": "x", "holder": {"instance_id": "a", "token": 7}, "held_by": held});
            role_lines(&told).remove(0)
        };
        assert_eq!(way("stream"), "a holds x with token 7, by a stream at node-2.");
        assert_eq!(way("tie"), "a holds x with token 7, tied to a connection to node-2.");
        assert_eq!(way("calls"), "a holds x with token 7.");
        let nobody = role_lines(&json!({"role": "x", "holder": null, "waiting": 0, "turns": []}));
        assert_eq!(nobody[0], "x has no holder.");
        assert_eq!(nobody[2], "Earlier holders are unknown.");
    }

    #[test]
    fn a_call_that_nobody_knows_is_told_so() {
        let told = json!({"request_id": "r1", "refused": [], "silent": [{"name": "node-3", "why": "cannot connect to it"}]});
        let lines = call_lines(&told);
        assert!(lines[0].starts_with("No node knows of a refusal with request id r1"), "{lines:?}");
        assert_eq!(lines[1], "node-3 did not answer: cannot connect to it.");
    }
}
