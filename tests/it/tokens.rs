//! Clients that authenticate by tokens: on every node at once, and only while the token is valid.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Network, Plan, Raw, Told, problem, wait_for};
use crate::roles::{LONG, WAIT, acquire, grant, patient};

const ADMIN: &str = "admin-token-of-the-tests-0123456789";

/// A client may do nothing without a token.
fn closed(more: &str) -> String {
    format!("admin_token = \"{ADMIN}\"\nanonymous = \"none\"\n{more}")
}

fn by(call: Call, token: &str) -> Call {
    call.header("authorization", format!("Bearer {token}"))
}

/// Creates a token with the admin token.
async fn create(cluster: &Cluster, id: u32, grants: &[&str], ttl_ms: Option<u64>) -> (String, String) {
    let mut body = json!({"name": "test", "grants": grants});
    ttl_ms.into_iter().for_each(|ttl_ms| body["ttl_ms"] = json!(ttl_ms));
    let made = cluster.answer(id, by(Call::post("/v1/tokens").json(&body), ADMIN)).await.expect(201).json();
    let text = |name: &str| made[name].as_str().expect("a text").to_string();
    (text("id"), text("token"))
}

async fn revoke(cluster: &Cluster, id: u32, token: &str) {
    cluster.answer(id, by(Call::delete(format!("/v1/tokens/{token}")), ADMIN)).await.expect(200);
}

async fn leader(cluster: &Cluster) -> u32 {
    wait_for("a leader", async || {
        for id in cluster.running() {
            if cluster.answer(id, Call::get("/leader")).await.ok() {
                return Some(id);
            }
        }
        None
    })
    .await
}

async fn follower(cluster: &Cluster) -> u32 {
    cluster.others(leader(cluster).await)[0]
}

async fn put(cluster: &Cluster, id: u32, token: &str) -> Answer {
    cluster.answer(id, by(Call::put("/v1/docs/app/a").raw_json("1"), token)).await
}

#[tokio::test]
async fn a_token_is_good_on_every_node_at_once_and_after_a_restart() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let follower = follower(&cluster).await;
    // Each round uses another token: no node has had time to learn of it.
    for _ in 0..10 {
        let (_, token) = create(&cluster, follower, &["read,write docs/app/", "watch docs/app/"], None).await;
        for id in cluster.ids() {
            assert!(put(&cluster, id, &token).await.ok());
            let local = Call::get("/v1/docs/app/a?level=local");
            let read = cluster.answer(id, by(local, &token)).await;
            assert!(read.ok() || read.status == 404, "{}", read.show());
            cluster.events(id, "/v1/feed").await.expect_err("without a token");
        }
    }
    let (_, token) = create(&cluster, follower, &["read,write docs/app/"], None).await;
    for id in cluster.ids() {
        let other = cluster.answer(id, by(Call::put("/v1/docs/b").raw_json("1"), &token)).await;
        let said = problem(&other, 403, "forbidden");
        assert_eq!(
            (&said["needs"], &said["grants"]),
            (&json!("write docs/b"), &json!(["read,write docs/app/"]))
        );
        problem(&cluster.answer(id, Call::get("/v1/docs")).await, 401, "unauthorized");
    }
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    for id in cluster.ids() {
        assert!(put(&cluster, id, &token).await.ok());
    }
}

#[tokio::test]
async fn a_revoked_token_is_refused_everywhere_and_its_streams_end() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (id, token) = create(&cluster, 1, &["read,write,watch *"], None).await;
    let mut streams = Vec::new();
    for node in cluster.ids() {
        for path in ["/v1/feed", "/v1/channels/c"] {
            streams.push(cluster.events_by(node, path, &token).await.expect("a stream"));
        }
    }
    revoke(&cluster, 2, &id).await;
    for mut stream in streams {
        let last = loop {
            match stream.next().await {
                Told::Event(event) if event["kind"] != "error" => {}
                Told::Event(event) => break event,
                told => panic!("no word of why: {told:?}"),
            }
        };
        assert_eq!((&last["code"], &last["retryable"]), (&json!("unauthorized"), &json!(false)), "{last}");
        assert_eq!(stream.next().await, Told::End);
    }
    for node in cluster.ids() {
        wait_for("a node refuses", async || (put(&cluster, node, &token).await.status == 401).then_some(()))
            .await;
        problem(&put(&cluster, node, &token).await, 401, "unauthorized");
    }
}

#[tokio::test]
async fn a_token_ends_by_itself() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (_, token) = create(&cluster, 1, &["watch *", "write *"], Some(10_000)).await;
    let mut stream = cluster.events_by(2, "/v1/channels/c", &token).await.expect("a stream");
    let Told::Event(last) = stream.next().await else { panic!("no word of why") };
    assert_eq!((&last["kind"], &last["code"]), (&json!("error"), &json!("unauthorized")), "{last}");
    for node in cluster.ids() {
        wait_for("a node refuses", async || (put(&cluster, node, &token).await.status == 401).then_some(()))
            .await;
    }
}

#[tokio::test]
async fn beyond_loopback_nobody_is_let_in_who_shows_nothing() {
    let Some(network) = Network::new(3) else { return };
    let config = format!(
        "cluster_secret = \"the secret of these tests, long enough to pass\"\nadmin_token = \"{ADMIN}\"\n# anonymous: the default\n"
    );
    let plan = Plan::at(network.addresses()).launchers(network.launchers()).config(&config);
    let cluster = plan.start().await;
    for id in cluster.ids() {
        for path in ["/livez", "/"] {
            assert!(cluster.answer(id, Call::get(path)).await.ok(), "{path}");
        }
        // On a busy machine a node may not be ready for a moment.
        cluster.is_ready(id).await;
        let calls =
            ["/metrics", "/v1/status", "/v1/members", "/v1/docs", "/v1/feed", "/v1/tokens"].map(Call::get);
        for call in calls.into_iter().chain([Call::put("/v1/docs/a").raw_json("1"), Call::post("/handoff")]) {
            problem(&cluster.answer(id, call).await, 401, "unauthorized");
        }
    }
    let (_, token) = create(&cluster, 3, &["write docs/app/"], None).await;
    for id in cluster.ids() {
        assert!(put(&cluster, id, &token).await.ok());
    }
}

/// The instance that holds the role, or null if it is free.
async fn holder(cluster: &Cluster, role: &str) -> Value {
    let read = cluster.answer(1, by(Call::get(format!("/v1/roles/{role}")), ADMIN)).await;
    if read.status == 404 { Value::Null } else { read.expect(200).json()["leader"]["instance_id"].clone() }
}

#[tokio::test]
async fn who_waits_for_a_role_with_a_revoked_token_never_gets_it() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (id, token) = create(&cluster, 1, &["read,write roles"], None).await;
    let first = by(acquire("r", "first", json!({})), ADMIN);
    let held = grant(cluster.answer(1, first).await);
    let began = Instant::now();
    let waiting = cluster.ids().map(|node| {
        let call = by(patient("r", &format!("waiter-{node}"), json!({})), &token);
        cluster.answer(node, call)
    });
    let line_is = async |count: u64| {
        wait_for("the line is so long", async || {
            let shown = cluster.answer(1, by(Call::get("/v1/roles/r"), ADMIN)).await.expect(200).json();
            (shown["waiting"] == count).then_some(())
        })
        .await;
    };
    let revoked = async {
        line_is(3).await;
        revoke(&cluster, 2, &id).await;
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(waiting), revoked);
    for answer in answers {
        problem(&answer, 401, "unauthorized");
    }
    // The node that refuses a waiter needs a moment to inform the leader.
    line_is(0).await;
    assert!(began.elapsed().as_millis() < u128::from(WAIT), "they left the line when their waits were over");
    let release = json!({"instance_id": "first", "token": held});
    cluster.answer(1, by(Call::post("/v1/roles/r/release").json(&release), ADMIN)).await.expect(200);
    let next = by(acquire("r", "next", json!({})), ADMIN);
    grant(cluster.answer(2, next).await);
    assert_eq!(holder(&cluster, "r").await, "next");
}

#[tokio::test]
async fn a_role_held_by_a_stream_is_free_once_its_token_is_revoked() {
    // The cluster's secret proves to the leader which node releases the role.
    let secret = "cluster_secret = \"the secret of these tests, long enough to pass\"";
    let cluster = Plan::new(3).config(&closed(secret)).start().await;
    let (id, token) = create(&cluster, 1, &["read,write roles"], None).await;
    let mut streams = Vec::new();
    for node in cluster.ids() {
        let path = format!("/v1/roles/r{node}/hold?instance_id=me&ttl_ms={LONG}");
        streams.push(cluster.posted_by(node, &path, &token).await.expect("a stream"));
        assert_eq!(holder(&cluster, &format!("r{node}")).await, "me");
    }
    revoke(&cluster, 3, &id).await;
    for mut stream in streams {
        let last = loop {
            match stream.next().await {
                Told::Event(event) if event["code"] != "unauthorized" => {}
                Told::Event(event) => break event,
                told => panic!("no word of why: {told:?}"),
            }
        };
        assert_eq!(last["kind"], "error", "{last}");
    }
    for node in cluster.ids() {
        wait_for("the role is free", async || {
            holder(&cluster, &format!("r{node}")).await.is_null().then_some(())
        })
        .await;
    }
}

/// Rights are judged again when the last byte has come. Everything but that byte
/// arrives before the revocation.
#[tokio::test]
async fn what_is_still_arriving_when_its_token_is_revoked_changes_nothing() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let leader = leader(&cluster).await;
    let passing_on = cluster.others(leader)[0];
    let kept = by(Call::put("/v1/docs/kept").raw_json("\"by all\""), ADMIN);
    cluster.answer(leader, kept).await.expect(201);
    let backup = cluster.answer(leader, by(Call::get("/v1/backup"), ADMIN)).await.expect(200).text();
    cluster.answer(leader, by(Call::put("/v1/docs/later").raw_json("1"), ADMIN)).await.expect(201);
    let command = json!({"storage_cmd": "PutDoc", "payload": {"key": "slow", "value": 1}}).to_string();
    for (method, path, kind, body) in [
        ("PUT", "/v1/docs/slow", "application/json", "\"late\""),
        ("POST", "/v1/commands", "application/json", &command),
        (
            "POST",
            "/v1/roles/slow/acquire",
            "application/json",
            r#"{"instance_id": "late", "ttl_ms": 600000}"#,
        ),
        ("POST", "/service_down", "application/json", "{}"),
        ("POST", "/override_all_data", "application/json", r#"{"docs": [{"key": "slow", "value": 1}]}"#),
        ("POST", "/v1/restore", "text/plain", &backup),
    ] {
        let nodes = if path.contains("restore") || path.contains("override") {
            vec![leader]
        } else {
            vec![leader, passing_on]
        };
        for node in nodes {
            // On a machine that takes seconds for a revocation the node gives up the slow body
            // first: then it is tried again.
            wait_for("a body in time that is refused", async || {
                let (id, token) = create(&cluster, node, &["order", "read,write *"], None).await;
                let mut caller = Raw::connect(cluster.node(node)).await;
                let head = format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
                     content-type: {kind}\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
                    body.len()
                );
                caller.send(head.as_bytes()).await;
                assert_eq!(
                    caller.read_line().await,
                    "HTTP/1.1 100 Continue",
                    "the call is judged, and its body is read"
                );
                assert_eq!(caller.read_line().await, "");
                let (most, last) = body.as_bytes().split_at(body.len() - 1);
                caller.send(most).await;
                revoke(&cluster, node, &id).await;
                wait_for("the node refuses", async || {
                    (put(&cluster, node, &token).await.status == 401).then_some(())
                })
                .await;
                caller.send(last).await;
                match &*caller.read_line().await {
                    "HTTP/1.1 401 Unauthorized" => Some(()),
                    // If the byte came after the answer, the connection may have been reset.
                    "HTTP/1.1 408 Request Timeout" | "" => None,
                    other => panic!("{method} {path} at node {node}: {other}"),
                }
            })
            .await;
        }
    }
    let docs = cluster.answer(leader, by(Call::get("/v1/docs"), ADMIN)).await.expect(200).text();
    assert!(docs.contains("kept") && docs.contains("later") && !docs.contains("slow"), "{docs}");
    assert_eq!(holder(&cluster, "slow").await, Value::Null);
}

#[tokio::test]
async fn each_token_has_idempotency_keys_of_its_own() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (_, first) = create(&cluster, 1, &["read,write docs"], None).await;
    let (_, second) = create(&cluster, 1, &["read,write docs"], None).await;
    let keyed = |key: &str, value: &str, token: &str| {
        by(Call::put(format!("/v1/docs/{key}")).raw_json(value), token).header("idempotency-key", "job-1")
    };
    let line = |key: &str| {
        let put =
            json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": 1}, "idempotency_key": "job-2"});
        format!("{put}\n")
    };
    let streamed = async |node, key: &str, token: &str| {
        let lines = by(Call::post("/v1/commands").body(line(key)), token);
        let lines = lines.header("content-type", "application/x-ndjson");
        let answer = cluster.answer(node, lines).await.expect(200).text();
        serde_json::from_str::<Value>(&answer).expect("one line")
    };
    for (node, token, own) in [(1, &*first, "a"), (2, &*second, "b"), (3, ADMIN, "c")] {
        cluster.answer(node, keyed(own, "1", token)).await.expect(201);
        let again = cluster.answer(node % 3 + 1, keyed(own, "1", token)).await.expect(201);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        problem(&cluster.answer(node, keyed(own, "2", token)).await, 422, "idempotency_key_reused");
        let said = streamed(node, &format!("s{own}"), token).await;
        assert!(said["index"].is_u64(), "{said}");
        assert_eq!(streamed(node, "another", token).await["code"], "idempotency_key_reused");
    }
}

/// Such a client cannot bind a document to another's lease, find out which leases there are, or write in
/// the name of another's role.
#[tokio::test]
async fn who_has_no_grant_for_a_lease_writes_nothing_that_names_it() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (_, token) = create(&cluster, 1, &["read,write docs/app/", "write roles/app/"], None).await;
    let process =
        Call::put("/v1/processes/theirs").json(&json!({"identifier": "x", "ttl_ms": 600_000, "secret": "s"}));
    cluster.answer(1, by(process, ADMIN)).await.expect(201);
    let claim = Call::post("/v1/roles/theirs/acquire").json(&json!({"instance_id": "i", "ttl_ms": 600_000}));
    let held = cluster.answer(1, by(claim, ADMIN)).await.expect(200).json()["token"].clone();
    for id in cluster.ids() {
        for (there, grant) in [
            ("with=process/theirs".to_string(), "write processes/theirs"),
            ("with=process/nobody".to_string(), "write processes/nobody"),
            (format!("with=role/theirs&token={held}"), "write roles/theirs"),
            ("with=role/nobody&token=1".to_string(), "write roles/nobody"),
        ] {
            let put = Call::put(format!("/v1/docs/app/k?{there}")).raw_json("1");
            let said = problem(&cluster.answer(id, by(put, &token)).await, 403, "forbidden");
            assert_eq!(said["needs"], grant, "{there}");
        }
        let named = json!({"key": "app/k", "value": 1, "if_role": "theirs", "role_token": held});
        let commands = json!({"storage_cmd": "PutDoc", "payload": named});
        let said = cluster.answer(id, by(Call::post("/v1/commands").json(&commands), &token)).await;
        assert_eq!(problem(&said, 403, "forbidden")["needs"], "write roles/theirs");
        let put =
            Call::put("/v1/docs/app/k").raw_json("1").header("if-role", format!("theirs; token={held}"));
        problem(&cluster.answer(id, by(put, &token)).await, 403, "forbidden");
        // A client with the grant must show the secret as well.
        let bound = || by(Call::put("/v1/docs/app/k?with=process/theirs").raw_json("1"), ADMIN);
        let without = problem(&cluster.answer(id, bound()).await, 403, "forbidden");
        assert!(without["needs"].is_null(), "{without}");
        problem(&cluster.answer(id, bound().header("eldest-secret", "other")).await, 403, "forbidden");
        assert!(cluster.answer(id, bound().header("eldest-secret", "s")).await.ok());
        let payload = json!({"key": "app/k", "value": 1, "with": "process/theirs", "secret": "s"});
        let command = Call::post("/v1/commands").json(&json!({"storage_cmd": "PutDoc", "payload": payload}));
        cluster.answer(id, by(command, ADMIN)).await.expect(200);
    }
    let shown = cluster.answer(1, by(Call::get("/v1/docs/app/k"), &token)).await.expect(200);
    assert_eq!(shown.header("eldest-with"), Some("process/theirs"));
}

#[tokio::test]
async fn an_operator_removes_a_process_that_has_a_secret() {
    let cluster = Plan::new(3).config(&closed("")).start().await;
    let (_, token) = create(&cluster, 1, &["read,write processes"], None).await;
    let process = json!({"identifier": "worker", "secret": "of the process", "ttl_ms": LONG});
    let put = by(Call::put("/v1/processes/w").json(&process), &token);
    cluster.answer(2, put).await.expect(201);
    problem(&cluster.answer(2, by(Call::delete("/v1/processes/w"), &token)).await, 403, "forbidden");
    let remove = || Call::post("/v1/processes/w/remove");
    problem(&cluster.answer(3, by(remove(), &token)).await, 403, "forbidden");
    cluster.answer(3, by(remove(), ADMIN)).await.expect(200);
    problem(&cluster.answer(1, by(Call::get("/v1/processes/w"), ADMIN)).await, 404, "not_found");
    problem(&cluster.answer(3, by(remove(), ADMIN)).await, 404, "not_found");
}

#[tokio::test]
async fn orders_and_refusals_are_told_of() {
    let mut plan = Plan::new(2);
    plan = plan.config(&closed("audit.file = \"stderr\""));
    let cluster = plan.start().await;
    let (id, token) = create(&cluster, 1, &["read docs"], None).await;
    problem(&put(&cluster, 1, &token).await, 403, "forbidden");
    problem(&put(&cluster, 1, "a guess").await, 401, "unauthorized");
    // A handler finds these: a command's grant, and a lease's secret.
    let command = Call::command("PutDoc", json!({"key": "app/a", "value": 1}));
    problem(&cluster.answer(1, by(command, &token)).await, 403, "forbidden");
    let claim = |secret: &str| json!({"instance_id": "i", "secret": secret, "ttl_ms": 600_000});
    let acquire = |secret| by(Call::post("/v1/roles/r/acquire").json(&claim(secret)), ADMIN);
    cluster.answer(1, acquire("only the holder knows")).await.expect(200);
    problem(&cluster.answer(1, acquire("somebody else guesses")).await, 403, "forbidden");
    revoke(&cluster, 1, &id).await;
    let lines = wait_for("eight lines", async || {
        let secrets = [&token, "a guess", "only the holder knows", "somebody else guesses"];
        let lines = audited(&cluster, 1, &secrets);
        (lines.len() >= 8).then_some(lines)
    })
    .await;
    let said = |number: usize| {
        let line: &Value = &lines[number];
        assert!(line["at"].is_string() && line["request_id"].is_string(), "{line}");
        assert_eq!(
            (&line["node"], &line["from"]),
            (&json!(1), &json!(line["from"].as_str().expect("an address")))
        );
        (line["method"].clone(), line["path"].clone(), line["outcome"]["status"].clone(), line["who"].clone())
    };
    let who = json!({"token": id, "name": "test"});
    let (made, revoked) = (json!("/v1/tokens"), json!(format!("/v1/tokens/{id}")));
    assert_eq!(said(0), (json!("POST"), made.clone(), Value::Null, json!("admin")));
    assert_eq!(said(1), (json!("POST"), made, json!(201), json!("admin")));
    assert!(lines[1]["index"].is_u64(), "{}", lines[1]);
    assert_eq!(lines[0]["request_id"], lines[1]["request_id"]);
    assert_eq!(said(2), (json!("PUT"), json!("/v1/docs/app/a"), json!(403), who));
    assert_eq!(said(3), (json!("PUT"), json!("/v1/docs/app/a"), json!(401), json!("unknown")));
    assert_eq!(lines[3]["outcome"]["code"], "unauthorized");
    assert!(lines[2]["index"].is_null() && lines[3]["index"].is_null(), "a refused call has made no record");
    assert_eq!(
        said(4),
        (json!("POST"), json!("/v1/commands"), json!(403), json!({"token": id, "name": "test"}))
    );
    assert_eq!(said(5), (json!("POST"), json!("/v1/roles/r/acquire"), json!(403), json!("admin")));
    assert_eq!(said(6), (json!("DELETE"), revoked.clone(), Value::Null, json!("admin")));
    assert_eq!(said(7), (json!("DELETE"), revoked, json!(200), json!("admin")));
    let stages: Vec<_> = lines[..8].iter().map(|line| &line["stage"]).collect();
    let orders = ["asked", "answered"];
    assert_eq!(stages, [&orders[..], &["answered"; 4], &orders].concat());
}

/// The lines of a node's audit log, which has no credential in it.
fn audited(cluster: &Cluster, id: u32, secrets: &[&str]) -> Vec<Value> {
    let text = std::fs::read_to_string(cluster.node(id).stderr_path()).unwrap_or_default();
    assert!(secrets.iter().chain(&[ADMIN]).all(|secret| !text.contains(secret)), "{text}");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

async fn metrics(cluster: &Cluster, id: u32) -> String {
    cluster.answer(id, by(Call::get("/metrics"), ADMIN)).await.expect(200).text()
}

#[tokio::test]
async fn who_hangs_up_is_told_of_too() {
    let cluster = Plan::new(2).config(&closed("audit.file = \"stderr\"")).start().await;
    let passing_on = follower(&cluster).await;
    let leader = cluster.others(passing_on)[0];
    let stages = |node: u32, request: &str| -> Vec<String> {
        let lines = audited(&cluster, node, &[]).into_iter().filter(|line| line["request_id"] == request);
        lines.map(|line| line["stage"].as_str().expect("a stage").to_string()).collect()
    };
    // First at the leader, which waits for the other's disk; then through a node that waits for its leader.
    for (asked, away, request) in [(leader, passing_on, "at-leader"), (passing_on, leader, "passed-on")] {
        cluster.stop(away);
        let body = json!({"name": request, "grants": ["order"]}).to_string();
        let mut caller = Raw::connect(cluster.node(asked)).await;
        let head = format!(
            "POST /v1/tokens HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n\
             x-request-id: {request}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        caller.send(format!("{head}{body}").as_bytes()).await;
        wait_for("the order is told of before it is done", async || {
            (stages(asked, request) == ["asked"]).then_some(())
        })
        .await;
        if asked == leader {
            wait_for("it is in the log", async || {
                (!metrics(&cluster, leader).await.contains("\neldest_uncommitted_bytes 0\n")).then_some(())
            })
            .await;
        }
        drop(caller);
        wait_for("the caller's end is told of", async || {
            (stages(asked, request) == ["asked", "caller_gone"]).then_some(())
        })
        .await;
        cluster.cont(away);
    }
    // The order to the leader was under way to the other's disk, and has been carried out.
    let listed = cluster.answer(leader, by(Call::get("/v1/tokens"), ADMIN)).await.expect(200).json();
    assert!(listed.to_string().contains("\"at-leader\""), "{listed}");
    let metrics = metrics(&cluster, leader).await;
    let gone = "eldest_http_requests_total{route=\"tokens\",status=\"499\"} ";
    assert!(metrics.contains(gone), "{metrics}");
}

#[tokio::test]
async fn the_command_line_makes_lists_and_revokes() {
    let cluster = Plan::new(1).config(&closed("")).start().await;
    let url = cluster.node(1).url();
    let file = cluster.folder().join("token");
    std::fs::write(&file, ADMIN).expect("a file");
    let run = |words: &[&str], file: &std::path::Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
        command.args(words).env("ELDEST_URL", &url).env("ELDEST_TOKEN_FILE", file);
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let (code, token) =
        run(&["token", "create", "web", "--grant", "read,write docs/web/", "--ttl", "1h"], &file);
    assert!(code == Some(0) && token.starts_with("eldest_"), "{token}");
    let id = token.split('_').nth(1).expect("an id").to_string();
    let (_, listed) = run(&["token", "list"], &file);
    assert!(listed.contains(&id) && listed.contains("read,write docs/web/"), "{listed}");
    let client = cluster.folder().join("client");
    std::fs::write(&client, &token).expect("a file");
    assert_eq!(run(&["doc", "put", "web/a", "1"], &client).0, Some(0));
    assert_ne!(run(&["doc", "put", "other", "1"], &client).0, Some(0));
    assert_eq!(run(&["token", "revoke", &id], &file).0, Some(0));
    assert_ne!(run(&["doc", "put", "web/a", "2"], &client).0, Some(0));
}
