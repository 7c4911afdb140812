//! Elections and votes: commands 3 and 4 of the seed's log, and all their rules.

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, problem};

async fn command(cluster: &Cluster, name: &str, payload: Value) -> Answer {
    cluster.answer(2, Call::command(name, payload)).await
}

async fn vote(cluster: &Cluster, election: &str, voter: &str, choice: &str) -> Answer {
    let payload = json!({"election_name": election, "voter_name": voter, "choice": choice});
    command(cluster, "VoteElection", payload).await
}

async fn with_voters() -> Cluster {
    let cluster = Cluster::of(3).await;
    for (name, group) in [("ann", "staff"), ("bob", "staff"), ("eve", "guests")] {
        command(&cluster, "CreateUser", json!({"name": name, "group": group})).await.expect(200);
    }
    cluster
}

#[tokio::test]
async fn votes_are_counted_once() {
    let cluster = with_voters().await;
    let election = json!({"name": "e", "choices": ["x", "y"], "motto": "kept"});
    command(&cluster, "CreateElection", election).await.expect(200);
    vote(&cluster, "e", "ann", "x").await.expect(200);
    vote(&cluster, "e", "bob", "x").await.expect(200);
    vote(&cluster, "e", "eve", "y").await.expect(200);
    for id in cluster.ids() {
        let read = cluster.answer(id, Call::get("/v1/elections/e")).await.expect(200).json();
        assert_eq!(read["tally"], json!({"x": 2, "y": 1}), "{read}");
        assert_eq!(read["votes"], 3, "{read}");
        assert_eq!(read["motto"], "kept", "{read}");
        assert_eq!(read["choices"], json!(["x", "y"]), "{read}");
    }
    let all = cluster.answer(1, Call::get("/v1/elections")).await.expect(200).text();
    assert!(all.contains("\"e\""), "{all}");
    problem(&cluster.answer(1, Call::get("/v1/elections/none")).await, 404, "not_found");
}

#[tokio::test]
async fn who_may_not_vote_is_told_the_rule() {
    let cluster = with_voters().await;
    let open = json!({"name": "open", "choices": ["x", "y"]});
    let staff = json!({"name": "staff", "choices": ["x", "y"], "groups": ["staff"]});
    let over = json!({"name": "over", "choices": ["x"], "end_date": "2001-01-01T00:00:00Z"});
    let later = json!({"name": "later", "choices": ["x"], "end_date": "2999-12-31T23:59:59+02:00"});
    for election in [open, staff, over, later] {
        command(&cluster, "CreateElection", election).await.expect(200);
    }
    vote(&cluster, "open", "ann", "x").await.expect(200);
    vote(&cluster, "staff", "bob", "y").await.expect(200);
    vote(&cluster, "later", "bob", "x").await.expect(200);

    let mut rules = std::collections::BTreeSet::new();
    for (election, voter, choice) in [
        ("open", "nobody", "x"),
        ("open", "bob", "z"),
        ("staff", "eve", "x"),
        ("open", "ann", "y"),
        ("over", "ann", "x"),
    ] {
        let refused = problem(&vote(&cluster, election, voter, choice).await, 409, "rule_violated");
        assert_eq!(refused["retryable"], false, "{refused}");
        rules.insert(refused["detail"].as_str().expect("the rule").to_string());
    }
    assert_eq!(rules.len(), 5, "each rule has words of its own: {rules:?}");
    problem(&vote(&cluster, "none", "ann", "x").await, 404, "not_found");
    let read = cluster.answer(1, Call::get("/v1/elections/open")).await.expect(200).json();
    assert_eq!((&read["votes"], &read["tally"]["x"]), (&json!(1), &json!(1)), "{read}");
}

#[tokio::test]
async fn an_election_needs_a_name_and_choices() {
    let cluster = Cluster::of(3).await;
    for bad in [
        json!({"name": "e"}),
        json!({"name": "e", "choices": []}),
        json!({"name": "e", "choices": "x"}),
        json!({"name": "e", "choices": [1]}),
        json!({"choices": ["x"]}),
        json!({"name": "e", "choices": ["x"], "end_date": "tomorrow"}),
        json!({"name": "e", "choices": ["x"], "end_date": "2026-02-30T00:00:00Z"}),
        json!({"name": "e", "choices": ["x"], "groups": "staff"}),
    ] {
        problem(&command(&cluster, "CreateElection", bad.clone()).await, 400, "bad_field");
    }
    let good = json!({"name": "e", "choices": ["x"]});
    command(&cluster, "CreateElection", good.clone()).await.expect(200);
    problem(&command(&cluster, "CreateElection", good).await, 409, "exists");
    for bad in [
        json!({"voter_name": "a", "choice": "x"}),
        json!({"election_name": "e", "choice": "x"}),
        json!({"election_name": "e", "voter_name": "a"}),
    ] {
        problem(&command(&cluster, "VoteElection", bad).await, 400, "bad_field");
    }
}

#[tokio::test]
async fn votes_survive_the_leader_and_a_restart_of_all() {
    let cluster = with_voters().await;
    let election = json!({"name": "e", "choices": ["x", "y"]});
    command(&cluster, "CreateElection", election).await.expect(200);
    vote(&cluster, "e", "ann", "y").await.expect(200);
    cluster.kill9(cluster.leader().await);
    let bob = json!({"election_name": "e", "voter_name": "bob", "choice": "y"});
    cluster.eventually(Call::command("VoteElection", bob)).await.expect(200);
    let again = json!({"election_name": "e", "voter_name": "ann", "choice": "x"});
    let refused = cluster.eventually(Call::command("VoteElection", again)).await;
    problem(&refused, 409, "rule_violated");
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let read = cluster.answer(3, Call::get("/v1/elections/e")).await.expect(200).json();
    assert_eq!(read["tally"]["y"], 2, "{read}");
}
