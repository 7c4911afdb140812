//! The answers to each call, while no node fails.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Asks, LONG, acquire, grant, renew, role, role_events, until};
use crate::harness::{Call, Cluster, problem, wait_for};

async fn calm() -> Cluster {
    Cluster::of(3).await
}

#[tokio::test]
async fn one_of_two_gets_it_through_whichever_node() {
    let cluster = calm().await;
    let about = json!({"address": "10.0.0.7:80", "metadata": {"zone": [1, null]}});
    let leader = json!({"instance_id": "a", "address": "10.0.0.7:80", "metadata": {"zone": [1, null]}});
    let first = cluster.answer(2, acquire("r", "a", about.clone())).await.expect(200).json();
    assert_eq!((&first["outcome"], &first["role"]), (&json!("elected"), &json!("r")));
    assert_eq!(first["leader"], leader);
    assert!(first["expires_in_ms"].as_u64().is_some_and(|left| left <= LONG), "{first}");
    let token = first["token"].as_u64().expect("a token");
    for node in cluster.ids() {
        let refused = problem(&cluster.answer(node, acquire("r", "b", json!({}))).await, 409, "role_held");
        assert_eq!((&refused["outcome"], &refused["role"]), (&json!("other_leader"), &json!("r")));
        assert_eq!((&refused["leader"], &refused["token"]), (&leader, &json!(token)));
        assert!(refused["expires_in_ms"].is_u64(), "{refused}");
        let again = cluster.answer(node, acquire("r", "a", about.clone())).await.expect(200).json();
        assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &json!(token)));
        assert_eq!(again["leader"], leader);
    }
}

#[tokio::test]
async fn a_holder_may_say_something_else_of_itself() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 1 };
    let token = grant(asks.acquire("r", "a", json!({"metadata": 1})).await);
    let left = wait_for("some of the lease is over", async || {
        let left = role(&cluster, 1, "r").await["expires_in_ms"].as_u64()?;
        (left + 2000 < LONG).then_some(left)
    })
    .await;
    let again = asks.acquire("r", "a", json!({"metadata": 2})).await.expect(200).json();
    assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &json!(token)));
    assert_eq!(again["leader"], json!({"instance_id": "a", "address": null, "metadata": 2}));
    assert!(again["expires_in_ms"].as_u64() > Some(left), "it was renewed");
}

#[tokio::test]
async fn of_many_at_once_one_gets_it() {
    let cluster = calm().await;
    for round in 0..10 {
        let name = format!("r{round}");
        let ask = |number: u32| {
            let call = acquire(&name, &format!("i{number}"), json!({}));
            cluster.answer(number % 3 + 1, call)
        };
        let answers = join_all((0..12).map(ask)).await;
        let tokens: Vec<Value> = answers.iter().map(|answer| answer.json()["token"].clone()).collect();
        assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
        let (granted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.ok());
        assert_eq!(granted.len(), 1, "{answers:?}");
        for answer in refused {
            let outcome = problem(answer, 409, "role_held")["outcome"].clone();
            assert!(outcome == "conflict" || outcome == "other_leader", "{outcome}");
        }
    }
}

#[tokio::test]
async fn who_holds_it_gives_it_back_and_nobody_else() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 3 };
    let token = grant(asks.acquire("r", "a", json!({})).await);
    problem(&asks.release("r", "b", token).await, 410, "lease_lost");
    problem(&asks.release("r", "a", token - 1).await, 410, "lease_lost");
    problem(&asks.release("s", "a", token).await, 410, "lease_lost");
    assert_eq!(role(&cluster, 1, "r").await["token"], json!(token), "nothing has happened yet");
    let released = asks.release("r", "a", token).await.expect(200).json();
    assert_eq!(released, json!({"role": "r", "token": token, "released": true}));
    problem(&asks.release("r", "a", token).await, 410, "lease_lost");
    let free = json!({
        "role": "r", "leader": null, "token": null, "ttl_ms": null, "acquired_at": null,
        "expires_in_ms": null, "waiting": 0,
    });
    assert_eq!(role(&cluster, 2, "r").await, free);
    assert!(grant(asks.acquire("r", "a", json!({})).await) > token, "the same instance, another grant");
}

#[tokio::test]
async fn a_renewal_is_for_the_one_who_holds_it() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 2 };
    let token = grant(asks.acquire("r", "a", json!({})).await);
    let renewed = asks.renew("r", "a", token).await.expect(200).json();
    assert_eq!(renewed, json!({"role": "r", "token": token, "expires_in_ms": LONG}));
    let less = json!({"instance_id": "a", "token": token, "ttl_ms": 600_000});
    let renewed = cluster.answer(1, Call::post("/v1/roles/r/renew").json(&less)).await.expect(200).json();
    assert_eq!(renewed["expires_in_ms"], 600_000, "less may be asked for");
    for (instance, wrong) in [("a", token - 1), ("b", token)] {
        let lost = problem(&asks.renew("r", instance, wrong).await, 410, "lease_lost");
        assert_eq!((&lost["role"], &lost["token"]), (&json!("r"), &json!(token)));
        assert_eq!(lost["leader"]["instance_id"], "a");
    }
}

#[tokio::test]
async fn what_nobody_renews_ends() {
    let cluster = calm().await;
    let mut events = role_events(&cluster, 2, "r").await;
    let began = std::time::Instant::now();
    let token = grant(cluster.answer(3, acquire("r", "a", json!({"ttl_ms": 1000}))).await);
    let told = until(&mut events, "role_lost", "a").await;
    assert!(began.elapsed().as_millis() >= 1000, "never before its ttl");
    assert_eq!((&told[1]["reason"], &told[1]["token"]), (&json!("expired"), &json!(token)));
    let lost = problem(&cluster.answer(1, renew("r", "a", token)).await, 410, "lease_lost");
    assert_eq!((&lost["leader"], &lost["token"]), (&json!(null), &json!(null)));
    assert!(grant(cluster.answer(1, acquire("r", "a", json!({}))).await) > token);
}

#[tokio::test]
async fn an_operator_names_the_holder() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 3 };
    let mut events = role_events(&cluster, 1, "r").await;
    let old = grant(asks.acquire("r", "a", json!({})).await);
    let new = grant(asks.elect("r", "b").await);
    assert!(new > old);
    let lost = problem(&asks.renew("r", "a", old).await, 410, "lease_lost");
    assert_eq!((&lost["leader"]["instance_id"], &lost["token"]), (&json!("b"), &json!(new)));
    let again = asks.elect("r", "b").await.expect(200).json();
    assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &json!(new)));
    assert_eq!(asks.renew("r", "b", new).await.expect(200).json()["token"], json!(new));
    let told = until(&mut events, "role_acquired", "b").await;
    let lost = json!({
        "id": told[1]["id"], "kind": "role_lost", "at": told[1]["at"], "role": "r", "instance_id": "a", "token": old,
        "reason": "replaced",
    });
    assert_eq!((told.len(), &told[1]), (3, &lost));
    let got = json!({"id": told[2]["id"], "kind": "role_acquired", "at": told[2]["at"], "role": "r", "instance_id": "b", "token": new});
    assert_eq!(told[2], got);
}

#[tokio::test]
async fn a_resource_checks_a_token() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 2 };
    assert_eq!(asks.check("r", 1).await, json!({"valid": false, "token": null}));
    let first = grant(asks.acquire("r", "a", json!({})).await);
    assert_eq!(asks.check("r", first).await, json!({"valid": true, "token": first}));
    let second = grant(asks.elect("r", "b").await);
    assert_eq!(asks.check("r", first).await, json!({"valid": false, "token": second}));
    assert_eq!(asks.check("r", second).await, json!({"valid": true, "token": second}));
}

#[tokio::test]
async fn roles_are_listed_page_by_page() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 1 };
    let mut tokens = Vec::new();
    for name in ["jobs%2Fa", "jobs/b", "jobs%2Fc", "other"] {
        tokens.push(grant(asks.acquire(name, "i", json!({})).await));
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "tokens rise over all roles: {tokens:?}");
    asks.release("jobs/b", "i", tokens[1]).await.expect(200);
    let list = async |query: &str| {
        let page = cluster.answer(2, Call::get(format!("/v1/roles?{query}"))).await.expect(200).json();
        let items = page["items"].as_array().expect("a list").clone();
        let names = items.iter().map(|item| item["role"].as_str().expect("a name").to_string()).collect();
        (names, page["next"].clone(), items)
    };
    let (names, next, items): (Vec<String>, _, _) = list("prefix=jobs/").await;
    assert_eq!((names, next), (vec!["jobs/a".to_string(), "jobs/c".to_string()], json!(null)));
    assert_eq!((&items[0]["token"], &items[0]["ttl_ms"]), (&json!(tokens[0]), &json!(LONG)));
    assert_eq!((&items[0]["leader"]["instance_id"], &items[0]["waiting"]), (&json!("i"), &json!(0)));
    assert!(items[0]["acquired_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{}", items[0]);
    assert!(items[0]["expires_in_ms"].is_u64(), "{}", items[0]);
    let (names, next, _) = list("limit=2").await;
    assert_eq!((names, next), (vec!["jobs/a".to_string(), "jobs/c".to_string()], json!("jobs/c")));
    let (names, next, _) = list("limit=2&after=jobs/c").await;
    assert_eq!((names, next), (vec!["other".to_string()], json!(null)));
    cluster.equal_states(&[1, 2, 3]).await;
    let (names, _, _) = list("level=local").await;
    assert_eq!(names, ["jobs/a", "jobs/c", "other"]);
    let follower = cluster.others(cluster.leader().await)[0];
    let local = cluster.answer(follower, Call::get("/v1/roles/other?level=local")).await.expect(200).json();
    assert_eq!(local["token"], json!(tokens[3]));
    assert_eq!((&local["expires_in_ms"], &local["waiting"]), (&json!(null), &json!(null)));
}

#[tokio::test]
async fn a_name_may_hold_anything() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 3 };
    for (number, name) in ["a%2Facquire", "b%2Fcheck", "c%20%C3%A9", "d/e/f", "%3F%23%25"].iter().enumerate()
    {
        let instance = format!("i{number}");
        let token = grant(asks.acquire(name, &instance, json!({})).await);
        assert_eq!(asks.renew(name, &instance, token).await.expect(200).json()["token"], json!(token));
        assert_eq!(asks.check(name, token).await["valid"], true);
        let shown = role(&cluster, 3, name).await;
        assert_eq!(shown["leader"]["instance_id"], json!(instance));
        asks.release(name, &instance, token).await.expect(200);
    }
    grant(asks.acquire("a%2Facquire", "again", json!({})).await);
    let page = cluster.answer(3, Call::get("/v1/roles")).await.expect(200).json();
    assert_eq!(page["items"][0]["role"], "a/acquire");
}

#[tokio::test]
async fn a_replay_tells_how_things_are_now() {
    let cluster = calm().await;
    let asks = Asks { cluster: &cluster, node: 1 };
    let keyed =
        |node, key: &str| cluster.answer(node, acquire("r", "a", json!({})).header("idempotency-key", key));
    let token = grant(keyed(1, "first").await);
    let again = keyed(2, "first").await.expect(200).json();
    assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &json!(token)));
    let body = json!({"instance_id": "a", "token": token});
    let release = || Call::post("/v1/roles/r/release").json(&body).header("idempotency-key", "back");
    for node in cluster.ids() {
        let released = cluster.answer(node, release()).await.expect(200).json();
        assert_eq!(
            released,
            json!({"role": "r", "token": token, "released": true}),
            "as it was the first time"
        );
    }
    let lost = problem(&keyed(3, "first").await, 410, "lease_lost");
    assert_eq!((&lost["leader"], &lost["token"]), (&json!(null), &json!(null)), "what it got is over");
    let other = grant(asks.acquire("r", "b", json!({})).await);
    let held = problem(&keyed(2, "first").await, 409, "role_held");
    assert_eq!((&held["token"], &held["outcome"]), (&json!(other), &json!("other_leader")));
    asks.release("r", "b", other).await.expect(200);
    assert!(grant(keyed(1, "second").await) > other, "another key is another call");
    let reused = acquire("r", "b", json!({})).header("idempotency-key", "second");
    problem(&cluster.answer(1, reused).await, 422, "idempotency_key_reused");
}
