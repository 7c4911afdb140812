//! Reads: levels, pages, conditions, and missing data.

use super::node::{Control, Node};

async fn with_data() -> Node {
    let node = Node::leader().await;
    for (cmd, payload) in [
        ("CreateUser", "{\"name\":\"ann\",\"group\":\"g\"}"),
        ("CreateUser", "{\"name\":\"bob\"}"),
        ("CreateElection", "{\"name\":\"e 1\",\"choices\":[\"x\",\"y\"]}"),
        ("VoteElection", "{\"election_name\":\"e 1\",\"voter_name\":\"ann\",\"choice\":\"y\"}"),
    ] {
        let body = format!("{{\"storage_cmd\":\"{cmd}\",\"payload\":{payload}}}");
        assert_eq!(node.call("POST /v1/commands", &[], &body).await.status, 200);
    }
    node
}

#[tokio::test]
async fn users_and_elections_are_shown() {
    let node = with_data().await;
    for (line, expected) in [
        (
            "GET /v1/users",
            "{\"items\":[{\"name\":\"ann\",\"group\":\"g\"},{\"name\":\"bob\"}],\"next\":null}",
        ),
        ("GET /v1/users?limit=1", "{\"items\":[{\"name\":\"ann\",\"group\":\"g\"}],\"next\":\"ann\"}"),
        ("GET /v1/users?limit=1&after=ann", "{\"items\":[{\"name\":\"bob\"}],\"next\":null}"),
        ("GET /v1/users/bob", "{\"name\":\"bob\"}"),
        (
            "GET /v1/elections/e%201",
            "{\"name\":\"e 1\",\"choices\":[\"x\",\"y\"],\"tally\":{\"x\":0,\"y\":1},\"votes\":1}",
        ),
        (
            "GET /v1/elections",
            "{\"items\":[{\"name\":\"e 1\",\"choices\":[\"x\",\"y\"],\"tally\":{\"x\":0,\"y\":1},\"votes\":1}],\"next\":null}",
        ),
    ] {
        let answer = node.call(line, &[], "").await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, expected), "{line}");
        assert_eq!((answer.header("eldest-index"), answer.header("eldest-epoch")), ("4", "7.1"), "{line}");
    }
    for line in ["GET /v1/users/carl", "GET /v1/elections/e", "GET /v1/docs/x"] {
        assert_eq!(node.call(line, &[], "").await.problem(), (404, "not_found".to_string()), "{line}");
    }
}

#[tokio::test]
async fn rules_are_named() {
    let node = with_data().await;
    for (vote, rule) in [
        ("{\"election_name\":\"e 1\",\"voter_name\":\"ann\",\"choice\":\"x\"}", "already_voted"),
        ("{\"election_name\":\"e 1\",\"voter_name\":\"carl\",\"choice\":\"x\"}", "unknown_voter"),
        ("{\"election_name\":\"e 1\",\"voter_name\":\"bob\",\"choice\":\"z\"}", "unknown_choice"),
    ] {
        let body = format!("{{\"storage_cmd\":\"VoteElection\",\"payload\":{vote}}}");
        let answer = node.call("POST /v1/commands", &[], &body).await;
        assert_eq!(answer.problem(), (409, "rule_violated".to_string()));
        assert_eq!(answer.json()["rule"], rule);
    }
}

#[tokio::test]
async fn documents_are_listed() {
    let node = Node::leader().await;
    for key in ["a/1", "a/2", "b"] {
        node.call(&format!("PUT /v1/docs/{key}"), &[], "true").await;
    }
    let page = node.call("GET /v1/docs?prefix=a%2F&limit=1", &[], "").await;
    assert_eq!(page.text, "{\"items\":[{\"key\":\"a/1\",\"rev\":\"1\",\"value\":true}],\"next\":\"a/1\"}");
    let page = node.call("GET /v1/docs?prefix=a%2F&after=a/1", &[], "").await;
    assert_eq!(page.text, "{\"items\":[{\"key\":\"a/2\",\"rev\":\"2\",\"value\":true}],\"next\":null}");
}

#[tokio::test]
async fn a_reader_that_knows_the_revision_is_spared_the_value() {
    let node = Node::leader().await;
    node.call("PUT /v1/docs/a", &[], "1").await;
    for (name, value, status) in [
        ("if-none-match", "\"1\"", 304),
        ("if-none-match", "W/\"1\", \"7\"", 304),
        ("if-none-match", "*", 304),
        ("if-none-match", "\"7\"", 200),
        ("if-none-match", "1", 400),
        ("if-match", "\"1\"", 200),
        ("if-match", "\"7\"", 412),
    ] {
        let answer = node.call("GET /v1/docs/a", &[(name, value)], "").await;
        assert_eq!(answer.status.as_u16(), status, "{name}: {value}");
        if status == 304 {
            assert_eq!(answer.header("content-length"), "1", "{name}: {value}");
        }
        if status < 400 {
            assert_eq!(
                (answer.header("etag"), answer.text.is_empty()),
                ("\"1\"", status == 304),
                "{name}: {value}"
            );
        }
    }
}

#[tokio::test]
async fn a_local_read_asks_nobody_else() {
    let node = Node::leader().await;
    node.call("PUT /v1/docs/a", &[], "1").await;
    let answer = node.call("GET /v1/docs/a?level=local", &[], "").await;
    let age: u64 = answer.header("eldest-age-ms").parse().expect("a number");
    assert!(answer.text == "1" && age > 0, "the test's node has the time of the machine's start");
    assert_eq!(node.call("GET /v1/docs/a?level=leader", &[], "").await.header("eldest-age-ms"), "");
    node.control(Control::Show(None)).await;
    let answer = node.call("GET /v1/docs/a?level=local", &[], "").await;
    assert_eq!((answer.text.as_str(), answer.headers.contains_key("eldest-leader")), ("1", false));
}

#[tokio::test]
async fn queries_are_checked() {
    let node = Node::leader().await;
    for (line, field) in [
        ("GET /v1/users?kind=a", "kind"),
        ("GET /v1/docs?limit=0", "limit"),
        ("GET /v1/docs?kind=doc", "kind"),
        ("GET /v1/conflicts?kind=call", "kind"),
        ("GET /v1/conflicts?prefix=a", "prefix"),
        ("GET /v1/conflicts/doc:a:7.1@1?kind=doc", "kind"),
        ("GET /v1/conflicts/%ff", "id"),
        ("GET /v1/docs?limit=1001", "limit"),
        ("GET /v1/docs?level=strong", "level"),
        ("GET /v1/docs?forward=never", "forward"),
        ("GET /v1/docs?after=%ff", "after"),
        ("GET /v1/docs/a?limit=3", "limit"),
        ("GET /v1/status?level=local", "level"),
        ("GET /readyz?level=local", "level"),
    ] {
        let answer = node.call(line, &[], "").await;
        assert_eq!(answer.problem(), (400, "bad_field".to_string()), "{line}");
        assert_eq!(answer.json()["field"], field, "{line}");
    }
}

#[tokio::test]
async fn the_node_says_how_it_is() {
    let node = Node::leader().await;
    let status = node.call("GET /v1/status", &[], "").await.json();
    assert_eq!((&status["role"], &status["epoch"]), (&"leader".into(), &"7.1".into()));
    assert_eq!(node.call("GET /livez", &[], "").await.text, "ok\n");
    assert_eq!(node.call("GET /readyz", &[], "").await.text, "{\"ready\":true}");
    assert_eq!(node.call("GET /leader", &[], "").await.text, "{\"leader\":true}");
    assert!(node.call("GET /", &[], "").await.text.contains("curl"));
    node.control(Control::Show(Some(crate::types::NodeId(2)))).await;
    let answer = node.call("GET /leader", &[], "").await;
    assert_eq!(answer.problem(), (503, "not_leader".to_string()));
    assert_eq!(answer.json()["leader_node"]["id"], 2);
}
