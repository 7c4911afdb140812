//! Tests of every rule of every operation.

use super::*;

#[test]
fn a_user_exists_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.ok("CreateUser", r#"{"name":"ann","group":"a"}"#), r#"{"name":"ann"}"#);
    let again = bench.run("CreateUser", r#"{"name":"ann"}"#);
    assert_eq!(again, Err("exists: there is already a user \"ann\"".into()));
    assert_eq!(bench.store.user("ann").expect("still there").to_json(), r#"{"name":"ann","group":"a"}"#);
}

#[test]
fn only_a_user_is_removed() {
    let mut bench = furnished();
    assert_eq!(bench.ok("RemoveUser", r#"{"name":"ann"}"#), r#"{"name":"ann"}"#);
    let again = bench.run("RemoveUser", r#"{"name":"ann"}"#);
    assert_eq!(again, Err("not_found: there is no user \"ann\"".into()));
    assert_eq!(bench.store.user("ann"), None);
}

#[test]
fn an_election_exists_once() {
    let mut bench = furnished();
    let again = bench.run("CreateElection", r#"{"name":"cake","choices":["x"]}"#);
    assert_eq!(again, Err("exists: there is already an election \"cake\"".into()));
}

fn vote(bench: &mut Bench, election: &str, voter: &str, choice: &str) -> Result<String, Rejection> {
    let payload = format!(r#"{{"election_name":"{election}","voter_name":"{voter}","choice":"{choice}"}}"#);
    let applied = bench.apply(&command("VoteElection", &payload), None);
    applied.outcome.map(|reply| reply.json.to_string())
}

fn broken(bench: &mut Bench, election: &str, voter: &str, choice: &str) -> Rule {
    match vote(bench, election, voter, choice) {
        Err(Rejection { operation: None, reason: Reason::RuleViolated(rule) }) => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_vote_needs_an_election_a_voter_and_a_choice() {
    let mut bench = furnished();
    let unknown = vote(&mut bench, "soup", "bob", "plum").expect_err("no such election");
    assert_eq!((unknown.code(), unknown.to_string()), ("not_found", "there is no election \"soup\"".into()));
    assert_eq!(broken(&mut bench, "cake", "eve", "plum"), Rule::UnknownVoter);
    assert_eq!(broken(&mut bench, "cake", "ann", "pear"), Rule::UnknownChoice);
    let expected = r#"{"election_name":"cake","voter_name":"ann"}"#;
    assert_eq!(vote(&mut bench, "cake", "ann", "plum").as_deref(), Ok(expected));
}

#[test]
fn a_voter_votes_once_removed_or_not() {
    let mut bench = furnished();
    assert_eq!(broken(&mut bench, "cake", "bob", "apple"), Rule::AlreadyVoted);
    bench.ok("RemoveUser", r#"{"name":"bob"}"#);
    assert_eq!(broken(&mut bench, "cake", "bob", "apple"), Rule::UnknownVoter);
    assert_eq!(bench.store.election("cake").expect("there").votes(), 1);
    bench.ok("CreateUser", r#"{"name":"bob"}"#);
    assert_eq!(broken(&mut bench, "cake", "bob", "apple"), Rule::AlreadyVoted);
}

#[test]
fn groups_admit_their_own_only() {
    let mut bench = furnished();
    assert_eq!(broken(&mut bench, "chair", "bob", "x"), Rule::GroupNotAdmitted);
    bench.ok("CreateUser", r#"{"name":"eve","group":"guests"}"#);
    assert_eq!(broken(&mut bench, "chair", "eve", "x"), Rule::GroupNotAdmitted);
    assert!(vote(&mut bench, "chair", "ann", "x").is_ok());
}

#[test]
fn an_election_ends_by_the_stamp_of_the_vote() {
    let mut bench = furnished();
    bench.ok("CreateElection", r#"{"name":"e","choices":["x"],"end_date":"2026-11-30T18:00:00+01:00"}"#);
    let end = WallTime(1_796_058_000_000_000);
    bench.now.wall = WallTime(end.0 - 1);
    assert!(vote(&mut bench, "e", "ann", "x").is_ok());
    bench.now.wall = end;
    assert_eq!(broken(&mut bench, "e", "bob", "x"), Rule::ElectionOver);
    bench.ok("CreateElection", r#"{"name":"old","choices":["x"],"end_date":"1960-01-01T00:00:00Z"}"#);
    assert_eq!(broken(&mut bench, "old", "bob", "x"), Rule::ElectionOver);
}

#[test]
fn a_document_has_the_revision_of_its_record() {
    let mut bench = Bench::new();
    let put = |bench: &mut Bench| bench.ok("PutDoc", r#"{"key":"k","value":1}"#);
    assert_eq!(put(&mut bench), r#"{"key":"k","rev":"1","created":true}"#);
    assert_eq!(put(&mut bench), r#"{"key":"k","rev":"2","created":false}"#);
    assert_eq!(bench.store.doc("k").expect("there").rev(), "2");
}

#[test]
fn conditions_on_documents() {
    let mut bench = Bench::new();
    let failed = |current: &str| Err(format!("precondition_failed: document \"k\" has revision {current}"));
    let absent = || Err("precondition_failed: there is no document \"k\"".to_string());
    assert_eq!(bench.run("PutDoc", r#"{"key":"k","value":1,"if_rev":"1"}"#), absent());
    assert_eq!(bench.run("PutDoc", r#"{"key":"k","value":1,"if_rev":"*"}"#), absent());
    bench.ok("PutDoc", r#"{"key":"k","value":1,"if_absent":true}"#);
    assert_eq!(bench.run("PutDoc", r#"{"key":"k","value":2,"if_absent":true}"#), failed("3"));
    assert_eq!(bench.run("PutDoc", r#"{"key":"k","value":2,"if_rev":"2"}"#), failed("3"));
    assert_eq!(bench.run("PutDoc", r#"{"key":"k","value":2,"if_rev":"03"}"#), failed("3"));
    bench.ok("PutDoc", r#"{"key":"k","value":2,"if_rev":"3"}"#);
    bench.ok("PutDoc", r#"{"key":"k","value":3,"if_rev":"*"}"#);
    assert_eq!(&*bench.store.doc("k").expect("there").value, "3");
    assert_eq!(bench.run("DeleteDoc", r#"{"key":"k","if_rev":"7"}"#), failed("8"));
    bench.ok("DeleteDoc", r#"{"key":"k","if_rev":"8"}"#);
    assert_eq!(bench.store.doc("k"), None);
}

#[test]
fn deleting_what_is_absent_is_not_found() {
    let mut bench = Bench::new();
    let absent = Err("not_found: there is no document \"k\"".to_string());
    assert_eq!(bench.run("DeleteDoc", r#"{"key":"k"}"#), absent);
    assert_eq!(bench.run("DeleteDoc", r#"{"key":"k","if_rev":"7"}"#), absent);
    assert_eq!(bench.run("DeleteDoc", r#"{"key":"k","if_rev":"*"}"#), absent);
}

#[test]
fn the_protocols_records_only_advance() {
    let mut bench = furnished();
    let (digest, entries) = (bench.store.digest(), bench.entries());
    bench.pass(Span::millis(5));
    for entry in [Entry::Lead { founding: None }, Entry::ServiceUp { owner: crate::types::Owner::Merge }] {
        let record = bench.record(entry);
        let applied = bench.store.apply(&record).expect("readable");
        assert!(applied.changes.is_empty());
        assert_eq!(bench.store.applied(), record.position);
        assert_eq!(bench.store.stamp(), bench.now);
    }
    assert_eq!((bench.store.digest(), bench.entries()), (digest, entries));
}

#[test]
fn an_unreadable_record_changes_nothing() {
    let mut bench = furnished();
    let before = bench.store.clone();
    let sound = command("PutDoc", r#"{"key":"k","value":1}"#).to_payload(None);
    let mut newer = sound.clone();
    newer.format.0 = COMMANDS.0 + 1;
    let unknown = crate::types::Payload { kind: 77, ..sound.clone() };
    let torn = crate::types::Payload { text: "{\"key\":".into(), ..sound };
    for payload in [newer, unknown, torn] {
        let record = bench.record(Entry::Client(payload));
        bench.store.apply(&record).expect_err("unreadable");
        assert_eq!(bench.store, before);
    }
}
