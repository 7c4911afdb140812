//! The journal of merges, and the commands on it.

use super::sides::{Side, meet};
use super::*;
use crate::store::{give_up_restore, merge_steps, restore_steps};

fn quarrelled() -> Vec<Side> {
    let mut sides = Side::group(&[1, 2], |side| side.put("a/k", "0"));
    sides[0].put("a/k", "1");
    sides[1].delete("a/k");
    sides[0].put("b", "{\"n\":1}");
    sides[1].put("b", "{\"n\":2}");
    assert_eq!(meet(&mut sides, 0, 1), 2);
    sides
}

const LOST_B: &str = "doc:b:2.2@5";

#[test]
fn an_entry_tells_what_was_lost_and_what_was_kept() {
    let sides = quarrelled();
    let expected = r#"{"id":"doc:b:2.2@5","kind":"doc","key":"b","lost":{"epoch":"2.2","index":5,"node":2,"value":{"n":2}},"#
        .to_string()
        + r#""kept":{"epoch":"1.1","index":4,"node":1,"value":{"n":1}},"merged_at":"3.1@6","at":"2026-11-30T00:53:20Z"}"#;
    assert_eq!(sides[1].store.conflict(LOST_B).map(|entry| entry.to_json()), Some(expected));
    assert_eq!(sides[1].store.conflict_count(), 2);
    assert_eq!(sides[1].store.conflict("doc:b:2.2@6"), None);
    let ids = |prefix: &str, after: Option<&str>, limit| -> Vec<String> {
        let page = sides[0].store.conflicts(prefix, after, limit);
        page.items.iter().map(|item| item.id.to_string()).collect()
    };
    assert_eq!(ids("", None, 10), ["doc:a/k:2.2@4", LOST_B]);
    assert_eq!(ids("doc:b", None, 10), [LOST_B]);
    assert_eq!(ids("", Some("doc:a/k:2.2@4"), 10), [LOST_B]);
    assert_eq!(ids("user:", None, 10), [""; 0]);
    assert_eq!(sides[0].store.conflicts("", None, 1).next.as_deref(), Some("doc:a/k:2.2@4"));
}

#[test]
fn what_was_lost_is_written_again() {
    let mut sides = quarrelled();
    let put = format!(r#"{{"id":"{LOST_B}"}}"#);
    assert_eq!(sides[0].run("ApplyConflict", &put).as_deref(), Ok(&*put));
    assert_eq!(sides[0].doc("b").as_deref(), Some("{\"n\":2}"));
    assert_eq!(sides[0].store.doc("b").map(|doc| doc.rev().to_string()), Some("3.1@7".into()));
    sides[0].run("ApplyConflict", r#"{"id":"doc:a/k:2.2@4"}"#).expect("deleted again");
    assert_eq!(sides[0].doc("a/k"), None);
    assert_eq!(sides[0].store.conflict_count(), 0);
    let again = sides[0].run("ApplyConflict", &put);
    assert_eq!(again, Err(format!("not_found: there is no conflict {LOST_B:?}")));
    sides[0].check();
    let leader = sides[0].clone();
    sides[1].follow(&leader);
    assert_eq!(sides[1].store.conflict_count(), 0);
}

#[test]
fn what_is_dropped_on_one_side_does_not_come_back() {
    let mut sides = quarrelled();
    sides[1].run("DropConflict", &format!(r#"{{"id":"{LOST_B}"}}"#)).expect("dropped");
    sides[0].put("b", "3");
    assert_eq!(meet(&mut sides, 0, 1), 0);
    assert_eq!(sides[0].store.conflict_count(), 1);
    assert_eq!(sides[0].doc("b").as_deref(), Some("3"));
}

#[test]
fn a_batch_resolves_all_or_nothing() {
    let mut sides = quarrelled();
    let item = |id: &str| format!(r#"{{"storage_cmd":"DropConflict","payload":{{"id":"{id}"}}}}"#);
    let batch = format!("[{},{}]", item(LOST_B), item(LOST_B));
    let batch = Command::parse_batch(raw(&batch)).expect("a batch");
    assert!(sides[0].apply(Entry::Client(batch.to_payload(None))).0.outcome.is_err());
    assert_eq!(sides[0].store.conflict_count(), 2);
    assert!(command("DropConflict", r#"{"id":"x"}"#).to_payload(None).text.contains("\"x\""));
    for wrong in ["{}", r#"{"id":""}"#, r#"{"id":1}"#, r#"{"id":"x","y":1}"#] {
        assert!(Command::parse("ApplyConflict", raw(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn in_safe_mode_there_is_no_journal() {
    let mut bench = furnished();
    let refused = bench.run("DropConflict", r#"{"id":"doc:b:2.2@5"}"#).expect_err("none");
    assert!(refused.starts_with("not_found"), "{refused}");
    assert!(bench.store.conflicts("", None, 1).items.is_empty());
}

const DOCUMENT: &str = r#"{"users":[{"name":"ann"}],"elections":[{"name":"cake","choices":["x"],"votes":[{"voter_name":"bob","choice":"x"}]}],
    "docs":[{"key":"a/k","value":1},{"key":"b","value":"other"},{"key":"new","value":[]}]}"#;

#[test]
fn an_operators_document_adds_what_is_absent() {
    let mut sides = quarrelled();
    for step in merge_steps(DOCUMENT, 7).expect("a good document").steps {
        sides[0].apply(Entry::Client(step));
    }
    let side = &sides[0];
    side.check();
    let docs = ["a/k", "b", "new"].map(|key| side.doc(key).unwrap_or_default());
    assert_eq!(docs, ["1", "{\"n\":1}", "[]"]);
    assert_eq!(side.store.election("cake").map(|cake| cake.votes()), Some(1));
    assert_eq!(side.store.conflict_count(), 3);
    let lost = side.store.conflicts("doc:b:3.1", None, 1).items.remove(0).conflict.lost;
    assert_eq!(lost.value.as_deref(), Some("\"other\""));
    let leader = side.clone();
    sides[1].follow(&leader);
}

#[test]
fn what_a_document_does_to_the_journal_is_known_before() {
    let mut sides = quarrelled();
    let mut steps = merge_steps(DOCUMENT, 7).expect("a good document").steps;
    let last = steps.pop().expect("an end");
    for step in steps {
        sides[0].apply(Entry::Client(step));
    }
    let then = sides[0].store.united_by(&last).expect("all parts are there");
    let expected = (then.conflict_count(), then.conflict_bytes(), then.bytes());
    sides[0].apply(Entry::Client(last));
    let store = &sides[0].store;
    assert_eq!(expected, (store.conflict_count(), store.conflict_bytes(), store.bytes()));
}

/// A rival that was dropped is in the journal, and does not come back.
#[test]
fn forgotten_rivals_stay_lost() {
    let mut sides = Side::group(&[1, 2, 3], |side| side.put("k", "0"));
    for (side, value) in sides.iter_mut().zip(["1", "2", "3"]) {
        side.put("k", value);
        side.put(&format!("own{value}"), value);
    }
    let third = sides[2].clone();
    meet(&mut sides, 0, 2);
    meet(&mut sides, 0, 1);
    let (mut changes, before) = (Vec::new(), sides[0].store.conflict_count());
    sides[0].store.merging_mut().expect("available").bound_rivals(1, &mut changes);
    assert_eq!(changes.len(), 1);
    sides[0].reflect(&changes);
    sides[0].check();
    let leader = sides[0].clone();
    sides[1] = third.fork(2);
    sides[1].follow(&leader);
    sides[2] = third;
    sides[2].put("more", "1");
    meet(&mut sides, 0, 2);
    sides[0].check();
    assert_eq!(sides[0].doc("k").as_deref(), Some("1"));
    assert_eq!(sides[0].store.conflict_count(), before);
}

#[test]
fn an_operators_document_is_given_up_like_a_restore() {
    let mut sides = quarrelled();
    let before = sides[0].data();
    for step in [merge_steps(DOCUMENT, 7).expect("good").steps.remove(0), give_up_restore(7)] {
        sides[0].apply(Entry::Client(step));
    }
    let last = merge_steps(DOCUMENT, 7).expect("good").steps.pop().expect("an end");
    assert!(sides[0].store.united_by(&last).is_none());
    let outcome = sides[0].apply(Entry::Client(last)).0.outcome;
    assert_eq!(outcome, Err(Reason::NotStaged.into()), "whoever waits for it learns that nothing came of it");
    assert!(!sides[0].store.is_restoring());
    assert_eq!(sides[0].data(), before);
}

#[test]
fn after_a_restore_the_whole_state_is_handed_over_until_that_is_settled() {
    let mut sides = quarrelled();
    for step in restore_steps(DOCUMENT, 7).expect("good").steps {
        sides[0].apply(Entry::Client(step));
    }
    sides[0].mirror = sides[0].store.entries().collect();
    sides[0].check();
    assert_eq!(sides[0].store.conflict_count(), 2, "the journal stays");
    assert_eq!(sides[0].store.difference(&sides[1].vector), None);
    sides[1].put("mine", "1");
    meet(&mut sides, 0, 1);
    let docs = ["a/k", "b", "mine", "new"].map(|key| sides[1].doc(key).unwrap_or_default());
    assert_eq!(docs, ["1", "\"other\"", "1", "[]"]);
    let upto = sides[0].store.applied();
    sides[0].settle(upto);
    let (leader, base) = (sides[0].clone(), sides[1].vector.clone());
    assert!(leader.store.difference(&base).is_some());
    sides[1].follow(&leader);
}
