//! Merges of two sides: an example for each rule.

use super::sides::{Side, meet};
use super::*;

/// Sides with a common past.
fn parted(ids: &[u32]) -> Vec<Side> {
    Side::group(ids, |side| {
        side.put("k", "\"old\"");
        side.put("other", "0");
        side.run("CreateUser", r#"{"name":"ann"}"#).expect("ann");
        side.run("CreateElection", r#"{"name":"cake","choices":["plum","apple"]}"#).expect("cake");
    })
}

fn both(sides: &[Side], key: &str, expected: Option<&str>) {
    for side in sides {
        assert_eq!(side.doc(key).as_deref(), expected, "{key} on node {}", side.id);
        side.check();
    }
}

fn vote(side: &mut Side, choice: &str) -> Result<String, String> {
    let payload = format!(r#"{{"election_name":"cake","voter_name":"ann","choice":"{choice}"}}"#);
    side.run("VoteElection", &payload)
}

#[test]
fn what_one_side_wrote_is_no_conflict() {
    let mut sides = parted(&[1, 2]);
    sides[1].put("k", "\"new\"");
    sides[1].put("mine", "1");
    sides[0].delete("other");
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, "k", Some("\"new\""));
    both(&sides, "mine", Some("1"));
    both(&sides, "other", None);
}

#[test]
fn the_elders_value_wins_and_the_other_is_in_the_journal() {
    let mut sides = parted(&[1, 2]);
    sides[0].put("k", "\"elder\"");
    sides[1].put("k", "\"first\"");
    sides[1].put("k", "\"younger\"");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    both(&sides, "k", Some("\"elder\""));
    let page = sides[1].store.conflicts("", None, 10);
    assert_eq!(page.items.len(), 1);
    assert_eq!(page.items[0].conflict.lost.value.as_deref(), Some("\"younger\""));
}

#[test]
fn the_same_value_is_no_conflict() {
    let mut sides = parted(&[1, 2]);
    sides[0].put("k", "[1]");
    sides[1].put("k", "[1]");
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, "k", Some("[1]"));
}

/// Nodes 1 and 3 write. Node 3 splits off and overwrites the value knowingly. Then node 3 meets 2, then 1.
#[test]
fn what_was_written_over_knowingly_does_not_come_back() {
    let mut sides = parted(&[1, 2, 3]);
    sides[0].put("k", "\"v1\"");
    let leader = sides[0].clone();
    sides[2].follow(&leader);
    sides[2].put("k", "\"v2\"");
    meet(&mut sides, 1, 2);
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides[..2], "k", Some("\"v2\""));
}

#[test]
fn the_order_of_meetings_does_not_matter() {
    let mut parted = parted(&[1, 2, 3]);
    parted[1].put("k", "\"two\"");
    parted[2].put("k", "\"three\"");
    for order in [[(1, 2), (0, 1)], [(0, 2), (0, 1)], [(0, 1), (0, 2)]] {
        let mut sides = parted.clone();
        for (one, other) in order {
            meet(&mut sides, one, other);
        }
        both(&sides[..1], "k", Some("\"two\""));
    }
}

/// Node 2's value wins over 3's, unknown to the newer state of node 1, which has overwritten 2's value. Node 1 still does not
/// know 3's value.
#[test]
fn what_lost_is_remembered_until_somebody_writes_over_it() {
    let mut sides = parted(&[1, 2, 3]);
    sides[1].put("k", "\"two\"");
    let two = sides[1].clone();
    sides[2].put("k", "\"three\"");
    meet(&mut sides, 1, 2);
    sides[0].follow(&two);
    sides[0].delete("k");
    meet(&mut sides, 0, 1);
    both(&sides[..2], "k", None);
    let ids: Vec<_> =
        sides[0].store.conflicts("doc:k", None, 10).items.into_iter().map(|item| item.id).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(sides[0].store.versions(&Key::Doc("k".into())).len(), 2, "the tomb and three's value");
}

#[test]
fn a_delete_reaches_whoever_knew_the_value() {
    let mut sides = parted(&[1, 2]);
    sides[1].delete("k");
    assert_eq!(meet(&mut sides, 0, 1), 0);
    both(&sides, "k", None);
}

#[test]
fn a_delete_against_a_change_is_a_conflict() {
    let mut sides = parted(&[1, 2]);
    sides[0].put("k", "\"kept\"");
    sides[1].delete("k");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    both(&sides, "k", Some("\"kept\""));
    let json = sides[0].store.conflicts("", None, 1).to_json();
    assert!(json.contains(r#""lost":{"epoch":"2.2","index":7,"node":2,"value":null}"#), "{json}");
    let mut sides = parted(&[1, 2]);
    sides[0].delete("k");
    sides[1].put("k", "\"lost\"");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    both(&sides, "k", None);
}

#[test]
fn a_vote_is_counted_once() {
    let mut sides = parted(&[1, 2]);
    vote(&mut sides[0], "plum").expect("voted");
    vote(&mut sides[1], "apple").expect("voted");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    for side in &mut sides {
        let cake = side.store.election("cake").expect("there");
        assert!(cake.to_json().ends_with(r#""tally":{"plum":1,"apple":0},"votes":1}"#));
        assert!(vote(side, "apple").is_err());
    }
    let json = sides[0].store.conflicts("vote:", None, 1).to_json();
    assert!(json.contains(r#""kind":"vote","election":"cake","voter":"ann","lost":{"#), "{json}");
}

/// Both sides create an election of the same name: the votes of the losing election are kept, and not counted.
#[test]
fn a_vote_in_another_election_of_that_name_is_not_counted() {
    let mut sides = Side::group(&[1, 2], |side| drop(side.run("CreateUser", r#"{"name":"ann"}"#)));
    sides[0].run("CreateElection", r#"{"name":"cake","choices":["pear"]}"#).expect("made");
    sides[1].run("CreateElection", r#"{"name":"cake","choices":["plum"]}"#).expect("made");
    vote(&mut sides[1], "plum").expect("voted");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    assert_eq!(sides[0].store.election("cake").map(|cake| cake.votes()), Some(0));
    assert!(sides[0].store.row(&Key::Vote("[\"cake\",\"ann\"]".into())).is_some());
    sides[0].check();
    let text = document::document(&sides[0].store);
    assert!(Store::from_document(&text, Position::ZERO, Stamp::default()).is_ok(), "{text}");
    let id = sides[0].store.conflicts("election:cake", None, 1).items[0].id.clone();
    sides[0].run("ApplyConflict", &format!(r#"{{"id":"{id}"}}"#)).expect("applied");
    assert_eq!(sides[0].store.election("cake").map(|cake| cake.votes()), Some(1));
    sides[0].check();
}

#[test]
fn revisions_of_two_sides_differ() {
    let mut sides = parted(&[1, 2]);
    let reply = sides[0].run("PutDoc", r#"{"key":"k","value":1}"#).expect("put");
    sides[1].put("k", "2");
    assert_eq!(reply, r#"{"key":"k","rev":"1.1@6","created":false}"#);
    let rev = |side: &Side| side.store.doc("k").expect("there").rev().to_string();
    assert_eq!((rev(&sides[0]), rev(&sides[1])), ("1.1@6".into(), "2.2@7".into()));
    let put = |rev: &str| format!(r#"{{"key":"k","value":3,"if_rev":"{rev}"}}"#);
    assert!(sides[0].run("PutDoc", &put("6")).is_err());
    assert!(sides[0].run("PutDoc", &put("2.2@7")).is_err());
    sides[0].run("PutDoc", &put("1.1@6")).expect("that is its revision");
    assert!(sides[0].store.docs("k", None, 1).to_json().contains(r#""rev":"1.1@9""#));
}

#[test]
fn a_call_of_the_other_side_is_known_again() {
    let mut sides = parted(&[1, 2]);
    let put = command("PutDoc", r#"{"key":"k","value":5}"#);
    sides[1].apply(Entry::Client(put.to_payload(call(9, 1))));
    meet(&mut sides, 0, 1);
    let judged = sides[0].store.judge(&put, call(9, 1), sides[0].now);
    assert!(matches!(judged, Judged::Replay { .. }), "{judged:?}");
}

#[test]
fn what_no_vector_covers_is_refused() {
    let mut sides = parted(&[1, 2]);
    let before = sides[1].vector.clone();
    sides[1].put("k", "1");
    let data = sides[1].difference_to(&sides[0].vector);
    let at = sides[0].meeting(&sides[1]);
    let merged = sides[0].store.merged(&sides[0].vector, &data, &before, at, sides[0].now);
    assert!(matches!(merged, Err(Unreadable::Entry { .. })));
    let safe = Bench::new().store.merged(&before, &data, &sides[1].vector, at, sides[0].now);
    assert!(matches!(safe, Err(Unreadable::NotMergeable)));
}

/// I7: neither a restore of one side nor the merge that follows drops a remembered call.
#[test]
fn a_call_is_remembered_across_a_restore_and_a_merge() {
    let mut sides = parted(&[1, 2]);
    let put = command("PutDoc", r#"{"key":"once","value":1}"#);
    sides[1].apply(Entry::Client(put.to_payload(call(9, 1))));
    let at = sides[1].store.applied();
    for step in crate::store::restore_steps(r#"{"docs":[{"key":"only","value":1}]}"#, 7).expect("good").steps
    {
        sides[1].apply(Entry::Client(step));
    }
    sides[1].mirror = sides[1].store.entries().collect();
    meet(&mut sides, 0, 1);
    both(&sides, "only", Some("1"));
    for side in &sides {
        let again = side.store.judge(&put, call(9, 1), side.now);
        assert!(matches!(again, Judged::Replay { at: first, .. } if first == at), "{again:?}");
    }
}
