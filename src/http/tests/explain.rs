//! Explanations that several nodes give together.

use serde_json::{Value, json};

use super::node::{Node, Options};

async fn told(node: &Node, line: &str) -> Value {
    let answer = node.call(line, &[], "").await;
    assert_eq!(answer.status, 200, "{line}: {answer:?}");
    answer.json()
}

fn ids(list: &Value) -> Vec<u64> {
    list.as_array().into_iter().flatten().filter_map(|one| one["id"].as_u64()).collect()
}

#[tokio::test]
async fn a_node_is_explained_by_itself_and_by_the_others() {
    let mut nodes = Node::several(2, Options::default()).await;
    let _serving = nodes[0].serve();
    for name in ["1", "node-1"] {
        let told = told(&nodes[1], &format!("GET /v1/explain/nodes/{name}")).await;
        let node = json!({"id": 1, "name": "node-1", "url": nodes[0].url(), "votes": true});
        assert_eq!(told["node"], node);
        assert_eq!((&told["state"]["role"], &told["state"]["epoch"]), (&json!("leader"), &json!("7.1")));
        assert_eq!((ids(&told["state"]["sees"]), ids(&told["as_seen"])), (vec![2, 3], vec![2]), "{told}");
        assert_eq!(told["as_seen"][0]["reachable"], true, "{told}");
        assert_eq!(ids(&told["silent"]), [3], "{told}");
        let says = [
            "it leads, in epoch 7.1",
            "node-2 reaches it",
            "it reaches node-2",
            "it does not reach node-3: 409 another cluster",
        ];
        assert_eq!(told["says"], json!(says));
    }
}

#[tokio::test]
async fn a_silent_node_is_explained_by_the_others() {
    let mut nodes = Node::several(2, Options::default()).await;
    let _serving = nodes[0].serve();
    let told = told(&nodes[1], "GET /v1/explain/nodes/node-3").await;
    assert_eq!((&told["state"], ids(&told["as_seen"])), (&Value::Null, vec![1, 2]), "{told}");
    assert_eq!(ids(&told["silent"]), [3], "{told}");
    let said = |number: usize| told["says"][number].as_str().unwrap_or_default();
    assert!(said(0).starts_with("it does not answer node-2: "), "{told}");
    assert_eq!(said(1), "node-1 does not reach it: 409 another cluster");
    assert_eq!(said(2), "node-2 does not reach it: 409 another cluster");
}

/// A node asks the others with this header, so that a question does not come back to it.
#[tokio::test]
async fn a_local_answer_asks_no_other_node() {
    let node = Node::leader().await;
    let local = told(&node, "GET /v1/explain/nodes/2?level=local").await;
    assert_eq!((ids(&local["as_seen"]), ids(&local["silent"])), (vec![1], vec![]), "{local}");
    assert_eq!((&local["state"], &local["says"]), (&Value::Null, &json!(["node-1 reaches it"])));
    let forwarded = node.call("GET /v1/explain/nodes/2", &[("eldest-forwarded", "2")], "").await;
    assert_eq!(forwarded.json(), local);
    let own = told(&node, "GET /v1/explain/nodes/1?level=local").await;
    assert_eq!((&own["state"]["role"], ids(&own["as_seen"])), (&json!("leader"), vec![]), "{own}");
}

#[tokio::test]
async fn a_node_without_an_answer_is_a_finding_of_the_node_that_asks() {
    let nodes = Node::several(2, Options::default()).await;
    // Node 1 takes connections and answers nothing, and no node is at the address of node 3.
    let told = told(&nodes[1], "GET /v1/explain/health").await;
    let answers: Vec<&Value> =
        told["nodes"].as_array().into_iter().flatten().map(|node| &node["answers"]).collect();
    assert_eq!(answers, [false, true, false], "{told}");
    let found = told["findings"].as_array().expect("findings");
    let of = |about: &str| found.iter().find(|one| one["about"] == about).map(|one| one["nodes"].clone());
    assert_eq!((of("frozen"), of("down")), (Some(json!([1])), Some(json!([3]))), "{told}");
    assert_eq!(told["well"], false);
    let refused = nodes[1].call("GET /v1/explain/health?level=local", &[], "").await;
    assert_eq!(refused.problem(), (400, "bad_field".to_string()));
}

#[tokio::test]
async fn an_unknown_node_is_refused_with_the_names_of_all() {
    let node = Node::leader().await;
    for name in ["node-9", "9", "node-1%2Fx"] {
        let answer = node.call(&format!("GET /v1/explain/nodes/{name}"), &[], "").await;
        assert_eq!(answer.problem(), (404, "not_found".to_string()), "{name}");
        assert_eq!(answer.json()["nodes"], json!(["node-1", "node-2", "node-3"]), "{name}");
    }
}
