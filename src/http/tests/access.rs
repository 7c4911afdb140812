//! Authorization: each route of the table with each kind of credential. The expected results are derived from the table.

use axum::http::Uri;
use serde_json::{Value, json};

use super::Answer;
use super::node::{Control, Node, Options, TOKEN};
use crate::http::access::needs::{Asked, Need, Row, TABLE};
use crate::store::{Area, Verb};
use crate::types::NodeId;

/// A call without a credential may do nothing.
fn closed() -> Options {
    Options { token: Some(TOKEN), anonymous: Some(""), ..Options::default() }
}

/// A call of a route.
struct Sample {
    method: &'static str,
    target: String,
    body: &'static str,
    asked: Asked<'static>,
}

/// The bodies are valid even if nothing is stored.
fn samples((method, pattern, need): &Row) -> Vec<Sample> {
    let fixed = pattern.split_once("{*").map_or(*pattern, |(fixed, _)| fixed);
    let targets: Vec<String> = match (fixed == *pattern, need, *method) {
        (_, Need::OnRole, _) => ["acquire", "renew", "release", "untie", "hold", "tie", "elect"]
            .map(|end| format!("{fixed}app/a/{end}"))
            .to_vec(),
        (_, Need::OnProcess, _) => ["heartbeat", "remove"].map(|end| format!("{fixed}app/a/{end}")).to_vec(),
        (false, Need::Named(_, _, ends), _) if !ends.is_empty() => {
            vec![format!("{fixed}app/a{}", ends[0]), format!("{fixed}app/a")]
        }
        (false, ..) => vec![format!("{fixed}app/a")],
        (true, Need::Below(..), _) => vec![pattern.to_string(), format!("{pattern}?prefix=app%2F")],
        // A path without a key is not a valid call.
        (true, Need::Named(..), _) => Vec::new(),
        (true, ..) => vec![pattern.to_string()],
    };
    let sample = |target: String| {
        let uri: Uri = target.parse().expect("a target");
        Sample { method, asked: need.of(pattern, &uri).expect("a need"), target, body: "{}" }
    };
    targets.into_iter().map(sample).collect()
}

/// Returns grants that allow the call, and grants that nearly do.
fn grants(asked: &Asked) -> (Vec<String>, Vec<String>) {
    let verbs = [Verb::Read, Verb::Write, Verb::Watch];
    let all = |verb: Verb| format!("{} *", verb.name());
    let others = |right: Verb| verbs.into_iter().filter(move |verb| *verb != right);
    match asked {
        Asked::Nothing => (vec!["read docs/nothing".to_string()], Vec::new()),
        Asked::Order => (vec!["order".to_string()], vec!["read,write,watch *".to_string()]),
        Asked::Some(verb) => (
            vec![format!("{} channels/x", verb.name())],
            others(*verb).map(all).chain(["order".to_string()]).collect(),
        ),
        Asked::Below(verb, area, name) | Asked::Named(verb, area, name) => {
            let (verb, text) = (*verb, area.name());
            let prefix = |prefix: &str| if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
            let right = vec![format!("{} {text}{}", verb.name(), prefix(name)), all(verb)];
            let elsewhere = Area::ALL.into_iter().filter(|other| other != area && *other != Area::All);
            let mut wrong: Vec<String> = others(verb).map(all).chain(["order".to_string()]).collect();
            wrong.extend(elsewhere.map(|other| format!("{} {}", verb.name(), other.name())));
            if *area != Area::Status {
                wrong.push(format!("{} {text}{}", verb.name(), prefix(&format!("{name}x"))));
                wrong.push(format!("{} {text}/other/", verb.name()));
            }
            (right, wrong)
        }
    }
}

impl Sample {
    async fn call(&self, node: &Node, credential: Option<&str>) -> Answer {
        let bearer = credential.map(|credential| format!("Bearer {credential}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        // Streams have no end, so only their heads are checked.
        let request = super::request(&format!("{} {}", self.method, self.target), &headers, self.body);
        let (parts, body) = node.front.answer(None, request).await.into_parts();
        let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok());
        match kind {
            Some("text/event-stream") => {
                Answer { status: parts.status, headers: parts.headers, text: String::new() }
            }
            _ => Answer::of(axum::http::Response::from_parts(parts, body)).await,
        }
    }

    async fn expect(&self, node: &Node, credential: Option<&str>, wanted: Option<(u16, &str)>, why: &str) {
        let answer = self.call(node, credential).await;
        let said: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let refused = ["unauthorized", "forbidden", "too_many_requests"]
            .contains(&said["code"].as_str().unwrap_or_default());
        let place = format!("{} {} by {why}: {} {}", self.method, self.target, answer.status, answer.text);
        match wanted {
            None => assert!(!refused, "{place}"),
            Some((status, code)) => {
                assert_eq!((answer.status.as_u16(), said["code"].as_str()), (status, Some(code)), "{place}");
                if code == "forbidden" || why == "nobody" {
                    assert_eq!(said["needs"], self.asked.to_string(), "{place}");
                }
            }
        }
    }
}

/// A token with these grants.
pub async fn token(node: &Node, grants: &[&str]) -> (String, String) {
    let body = json!({"name": "test", "grants": grants}).to_string();
    let made = node.call("POST /v1/tokens", &[("authorization", &format!("Bearer {TOKEN}"))], &body).await;
    assert_eq!(made.status.as_u16(), 201, "{made:?}");
    assert_eq!(made.header("cache-control"), "no-store");
    let text = |name: &str| made.json()[name].as_str().unwrap_or_default().to_string();
    (text("id"), text("token"))
}

async fn revoke(node: &Node, id: &str) {
    let line = format!("DELETE /v1/tokens/{id}");
    assert_eq!(
        node.call(&line, &[("authorization", &format!("Bearer {TOKEN}"))], "").await.status.as_u16(),
        200
    );
}

#[tokio::test]
async fn each_route_with_each_credential() {
    for row in &TABLE {
        for sample in samples(row) {
            let node = Node::with(closed()).await;
            let open = sample.asked == Asked::Nothing;
            let refused = |status, code| (!open).then_some((status, code));
            let (id, revoked) = token(&node, &["read,write,watch *", "order"]).await;
            revoke(&node, &id).await;
            sample.expect(&node, None, refused(401, "unauthorized"), "nobody").await;
            let unauthorized = (row.2 != Need::Nothing).then_some((401, "unauthorized"));
            sample.expect(&node, Some("wrong"), unauthorized, "a wrong credential").await;
            sample.expect(&node, Some("eldest_0123456789abcdef"), unauthorized, "a malformed token").await;
            sample.expect(&node, Some("eldest_0123456789abcdef_00"), unauthorized, "an unknown token").await;
            sample.expect(&node, Some(&revoked), unauthorized, "a revoked token").await;
            sample.expect(&node, Some(TOKEN), None, "the admin token").await;
            let (right, wrong) = grants(&sample.asked);
            for grant in &right {
                let (_, token) = token(&node, &[grant]).await;
                sample.expect(&node, Some(&token), None, grant).await;
                let other = token.replace(|sign: char| sign == token.chars().last().unwrap_or('0'), "x");
                sample.expect(&node, Some(&other), unauthorized, "a wrong secret").await;
            }
            for grant in &wrong {
                let (_, token) = token(&node, &[grant]).await;
                sample.expect(&node, Some(&token), refused(403, "forbidden"), grant).await;
            }
        }
    }
}

#[tokio::test]
async fn each_command_is_judged_for_itself() {
    let node = Node::with(closed()).await;
    let (_, token) = token(&node, &["write docs/app/", "write users/ada", "write elections/lunch"]).await;
    let bearer = format!("Bearer {token}");
    let put = |key: &str| json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": 1}});
    let user = |name: &str| json!({"storage_cmd": "CreateUser", "payload": {"name": name}});
    for (body, needs) in [
        (put("app/a"), None),
        (put("other"), Some("write docs/other")),
        (json!([put("app/b"), user("ada")]), None),
        (json!([put("app/c"), user("bob")]), Some("write users/bob")),
        (json!({"storage_cmd": "DropConflict", "payload": {"id": "doc:app/a:1"}}), Some("write docs")),
    ] {
        let answer = node.call("POST /v1/commands", &[("authorization", &bearer)], &body.to_string()).await;
        match needs {
            None => assert_eq!(answer.status.as_u16(), 200, "{body} {answer:?}"),
            Some(needs) => {
                assert_eq!(answer.problem(), (403, "forbidden".to_string()), "{body}");
                assert_eq!(answer.json()["needs"], needs, "{body}");
                assert_eq!(answer.json()["grants"][0], "write docs/app/", "{body}");
            }
        }
    }
    let lines = format!("{}\n{}\n{}\n", put("app/d"), put("other"), put("app/e"));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/x-ndjson")];
    let answer = node.call("POST /v1/commands", &headers, &lines).await;
    let said: Vec<Value> =
        answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(said.len(), 3, "{answer:?}");
    assert_eq!((&said[1]["code"], &said[1]["line"]), (&json!("forbidden"), &json!(2)));
    assert!(said[0]["index"].is_u64() && said[2]["index"].is_u64(), "{answer:?}");
    assert!(!node.seen().iter().any(|seen| seen.contains("other") || seen.contains("bob")));
}

#[tokio::test]
async fn a_token_is_shown_once_and_ends_when_it_is_revoked() {
    let node = Node::with(closed()).await;
    let (id, token) = token(&node, &["read docs"]).await;
    let admin = format!("Bearer {TOKEN}");
    let listed = node.call("GET /v1/tokens", &[("authorization", &admin)], "").await;
    assert_eq!(listed.json()["items"][0]["id"], id);
    assert_eq!(listed.json()["items"][0]["grants"], json!(["read docs"]));
    let secret = token.rsplit('_').next().unwrap_or_default();
    assert!(secret.len() == 64 && !listed.text.contains(secret) && !listed.text.contains("hash"));
    assert!(!node.seen().iter().any(|seen| seen.contains(secret)), "a record has the hash alone");
    let bearer = format!("Bearer {token}");
    assert_eq!(node.call("GET /v1/docs", &[("authorization", &bearer)], "").await.status.as_u16(), 200);
    revoke(&node, &id).await;
    let refused = node.call("GET /v1/docs", &[("authorization", &bearer)], "").await;
    assert_eq!(refused.problem(), (401, "unauthorized".to_string()));
    assert_eq!(refused.header("www-authenticate"), "Bearer realm=\"eldest\"");
}

#[tokio::test]
async fn each_caller_learns_what_it_may_do() {
    let node = Node::with(closed()).await;
    let (id, token) = token(&node, &["write docs/app/", "order"]).await;
    let told = async |credential: Option<&str>| {
        let bearer = credential.map(|credential| format!("Bearer {credential}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        node.call("GET /v1/caller", &headers, "").await
    };
    let grants = json!(["write docs/app/", "order"]);
    assert_eq!(told(Some(&token)).await.json(), json!({"name": "test", "token_id": id, "grants": grants}));
    let everything = json!(["read,write,watch *", "order"]);
    assert_eq!(
        told(Some(TOKEN)).await.json(),
        json!({"name": "admin", "token_id": null, "grants": everything})
    );
    assert_eq!(told(None).await.json(), json!({"name": "anonymous", "token_id": null, "grants": []}));
    assert_eq!(told(Some("a guess")).await.problem(), (401, "unauthorized".to_string()));
}

#[tokio::test]
async fn wrong_tokens_are_not_made() {
    let node = Node::leader().await;
    let key = [("idempotency-key", "1")];
    for (headers, body, field) in [
        (&[][..], json!({"grants": []}), "name"),
        (&[], json!({"name": "a"}), "grants"),
        (&[], json!({"name": "a", "grants": ["reed docs"]}), "grants[0]"),
        (&[], json!({"name": "a", "grants": ["read docs"], "ttl": 1}), "ttl"),
        (&key, json!({"name": "a", "grants": ["read docs"]}), "Idempotency-Key"),
    ] {
        let answer = node.call("POST /v1/tokens", headers, &body.to_string()).await;
        assert_eq!(answer.problem(), (400, "bad_field".to_string()), "{body}");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
    assert_eq!(node.call("DELETE /v1/tokens/x", &[], "").await.problem(), (400, "bad_field".to_string()));
    let unknown = node.call("DELETE /v1/tokens/0123456789abcdef", &[], "").await;
    assert_eq!(unknown.problem(), (404, "not_found".to_string()));
    assert!(node.seen().iter().all(|seen| !seen.starts_with("write 121")));
}

#[tokio::test]
async fn who_goes_on_guessing_is_told_to_stop_and_nobody_else() {
    let node = Node::with(closed()).await;
    let (_, token) = token(&node, &["read docs"]).await;
    let call = async |credential: &str| {
        let bearer = format!("Bearer {credential}");
        node.call("GET /v1/docs", &[("authorization", &bearer)], "").await
    };
    for _ in 0..20 {
        assert_eq!(call("guess").await.problem(), (401, "unauthorized".to_string()));
    }
    assert_eq!(call("guess").await.problem(), (429, "too_many_requests".to_string()));
    let unknown = call("eldest_0123456789abcdef_00").await;
    assert_eq!(unknown.problem(), (429, "too_many_requests".to_string()));
    assert_eq!(call(&token).await.status.as_u16(), 200);
    assert_eq!(call(TOKEN).await.status.as_u16(), 200);
}

#[tokio::test]
async fn everybody_may_do_what_is_granted_to_everybody() {
    let node = Node::with(Options { anonymous: Some("read docs/public/"), ..closed() }).await;
    assert_eq!(node.call("GET /v1/docs?prefix=public/", &[], "").await.status.as_u16(), 200);
    for (line, status) in [("GET /v1/docs", 401), ("PUT /v1/docs/public/a", 401), ("POST /v1/tokens", 401)] {
        assert_eq!(node.call(line, &[], "1").await.status.as_u16(), status, "{line}");
    }
}

#[tokio::test]
async fn a_token_that_only_the_leader_knows_is_waited_for() {
    let mut nodes = Node::several(2, closed()).await;
    let _serving = nodes[0].serve();
    let (_, token) = token(&nodes[0], &["read docs"]).await;
    // This follower never learns of the token: it asks the leader for its position, and does not reach it.
    nodes[1].control(Control::Show(Some(NodeId(1)))).await;
    nodes[1].deny([crate::driver::handle::Denied::NotLeader { leader: NodeId(1) }]).await;
    let bearer = format!("Bearer {token}");
    let answer = nodes[1].call("GET /v1/docs", &[("authorization", &bearer)], "").await;
    assert_eq!(answer.problem(), (503, "catching_up".to_string()));
}
