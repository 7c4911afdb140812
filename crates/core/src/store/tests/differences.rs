//! Differences between sides: their size, their bounds, their text.

use super::rng::Rng;
use super::sides::{Side, meet};
use super::*;
use crate::types::Vector;

fn large() -> Vec<Side> {
    Side::group(&[1, 2], |side| (0..2_000).for_each(|n| side.put(&format!("k{n:04}"), "1")))
}

#[test]
fn a_difference_is_as_large_as_the_change() {
    let mut sides = large();
    assert!(sides[0].store.difference(&sides[1].vector).expect("told").is_empty());
    sides[0].put("k0007", "2");
    sides[0].delete("k0008");
    sides[0].run("CreateUser", r#"{"name":"ann"}"#).expect("made");
    let difference = sides[0].store.difference(&sides[1].vector).expect("told");
    assert_eq!(difference.len(), 3);
    let expected = "part\n\
        doc \"k0007\" {\"at\":\"1.1@2002\",\"value\":2}\n\
        side \"bounds\" {\"settled\":\"0.0@0\",\"untold\":\"0.0@0\",\"calls_us\":0,\"calls_at\":\"0.0@0\"}\n\
        tomb \"doc:k0008\" {\"at\":\"1.1@2003\",\"deleted\":true}\n\
        user \"ann\" {\"at\":\"1.1@2004\",\"value\":{\"name\":\"ann\"}}\n";
    assert_eq!(difference.to_text(), expected);
    assert_eq!(sides[0].store.difference(&Vector::default()).expect("told").len(), 2_000 + 1);
    assert_eq!(sides[0].store.whole().to_text().lines().count(), 2_003);
    assert!(sides[0].store.whole().is_whole() && !difference.is_whole());
}

#[test]
fn what_is_settled_is_told_to_nobody() {
    let mut sides = large();
    sides[0].delete("k0001");
    let leader = sides[0].clone();
    sides[1].follow(&leader);
    let behind = sides[1].vector.clone();
    sides[0].put("k0002", "2");
    let upto = Position::new(leader.store.applied().epoch, leader.store.applied().index);
    sides[0].settle(upto);
    sides[0].check();
    assert!(sides[0].store.entry(&Key::Tombstone(Key::Doc("k0001".into()).into())).is_none());
    let difference = sides[0].store.difference(&behind).expect("told");
    assert_eq!(difference.len(), 1, "k0002, written since");
    assert_eq!(sides[0].store.difference(&Vector::default()), None);
    sides[0].settle(Position::new(upto.epoch, 3));
    assert_eq!(
        sides[0].store.difference(&behind).map(|difference| difference.len()),
        Some(1),
        "it never goes back"
    );
    let leader = sides[0].clone();
    sides[1].follow(&leader);
}

#[test]
fn beyond_the_bound_the_oldest_tombs_go_and_the_whole_is_handed_over() {
    let mut sides = Side::group(&[1, 2], |_| ());
    let names: Vec<String> = (0..=TOMBSTONES_MOST).map(|n| format!("k{n}")).collect();
    for some in names.chunks(OPERATIONS_MOST / 2) {
        let item = |name: &String| {
            format!(
                r#"{{"storage_cmd":"PutDoc","payload":{{"key":"{name}","value":0}}}},{{"storage_cmd":"DeleteDoc","payload":{{"key":"{name}"}}}}"#
            )
        };
        let batch = format!("[{}]", some.iter().map(item).collect::<Vec<_>>().join(","));
        let batch = Command::parse_batch(raw(&batch)).expect("a batch");
        sides[0].apply(Entry::Client(batch.to_payload(None)));
    }
    let kept = sides[0].store.merging.as_ref().map(|sides| sides.tombstones.len());
    assert_eq!(kept, Some(TOMBSTONES_MOST));
    assert_eq!(sides[0].store.difference(&sides[0].vector), None);
    sides[0].check();
    sides[0].put("k", "1");
    let upto = sides[0].store.applied();
    sides[0].settle(upto);
    assert!(sides[0].store.difference(&sides[0].vector).is_some());
}

#[test]
fn a_state_of_safe_mode_is_settled() {
    let bench = furnished();
    let mut loader = Loader::mergeable(Vector::linear(bench.store.applied()));
    for (key, value) in bench.store.entries() {
        loader.add(key.table(), &key.name(), &value).expect("an entry of ours");
    }
    let store = loader.finish(bench.store.applied(), bench.store.stamp());
    assert_eq!(store.digest(), bench.store.digest(), "there is nothing yet to tell apart");
    assert_eq!(store.difference(&Vector::default()), None);
    let told = store.difference(&Vector::linear(bench.store.applied())).expect("told");
    assert!(told.is_empty());
    assert_eq!(bench.store.difference(&Vector::default()), None, "nor in safe mode");
}

#[test]
fn a_snapshot_of_available_mode_is_refused_in_safe_mode() {
    let mut loader = Loader::default();
    let bounds = Store::mergeable().entry(&Key::Side).expect("there");
    assert_eq!(loader.add("side", "bounds", &bounds), Err(Unreadable::Table("side".into())));
}

fn quarrelled() -> Vec<Side> {
    let mut sides = Side::group(&[1, 2], |side| side.put("k", "0"));
    for (side, name) in sides.iter_mut().zip(["x", "y"]) {
        side.put("k", &format!("\"{name}\""));
        side.run("CreateUser", &format!(r#"{{"name":"ann","of":"{name}"}}"#)).expect("made");
        side.run("CreateElection", &format!(r#"{{"name":"e","choices":["{name}"]}}"#)).expect("made");
        let vote = format!(r#"{{"election_name":"e","voter_name":"ann","choice":"{name}"}}"#);
        side.apply(Entry::Client(command("VoteElection", &vote).to_payload(call(7, 7))));
    }
    sides[1].delete("k");
    meet(&mut sides, 0, 1);
    sides
}

/// However the text is changed, nothing panics: text that can be read is merged, or refused.
#[test]
fn garbage_is_refused_or_merged() {
    let sides = quarrelled();
    let text = sides[0].store.whole().to_text();
    let mut rng = Rng::new(8);
    let pieces = [
        "\"", "{", "}", "\n", " ", "9", "@", ":", ".", "tomb ", "rival ", "doc ", "null", "é", "\0", "user:",
        "7.1@3",
    ];
    let (mut refused, mut merged) = (0, 0);
    for _ in 0..4_000 {
        let mut chars: Vec<char> = text.chars().collect();
        let at = rng.below(chars.len());
        let end = (at + rng.below(12)).min(chars.len());
        chars.splice(at..end, rng.pick(&pieces).chars());
        let changed: String = chars.into_iter().collect();
        let Ok(data) = Difference::from_text(&changed) else {
            refused += 1;
            continue;
        };
        let into = Side::new(3);
        let at = Position::new(Epoch::new(9, NodeId(3)), 99);
        let result = into.store.merged(&into.vector, &data, &sides[0].vector, at, into.now);
        merged += usize::from(result.is_ok());
        let again = sides[0].store.merged(&sides[0].vector, &data, &sides[0].vector, at, into.now);
        drop(again);
        let (store, _) = sides[1].store.overridden(&data, at, into.now).expect("told apart");
        assert!(store == sides[0].store || store.digest() == store.recomputed_digest());
    }
    assert!(refused > 1000 && merged > 50, "{refused} {merged}");
}

#[test]
fn what_is_no_difference() {
    let bounds = "side \"bounds\" {\"settled\":\"0.0@0\",\"untold\":\"0.0@0\",\"calls_us\":0,\"calls_at\":\"0.0@0\"}\n";
    assert!(Difference::from_text(&format!("part\n{bounds}")).is_ok());
    let row = |line: &str| format!("part\n{bounds}{line}\n");
    let wrong = [
        String::new(),
        "part\n".into(),
        "part".into(),
        format!("PART\n{bounds}"),
        format!("part\n{bounds}{bounds}"),
        format!("part\n{}", bounds.trim_end()),
        row("doc k {\"at\":\"1.1@1\",\"value\":1}"),
        row("doc \"k\"  {\"at\":\"1.1@1\",\"value\":1}"),
        row("pet \"k\" 1"),
        row("tomb \"k\" {\"at\":\"1.1@1\",\"deleted\":true}"),
        row("tomb \"call:00\" {\"at\":\"1.1@1\",\"deleted\":true}"),
        row("tomb \"doc:k\" {\"at\":\"1.1@1\",\"value\":1}"),
        row("tomb \"doc:k\" {\"at\":\"1.1@1\",\"deleted\":false}"),
        row("tomb \"doc:k\" {\"at\":\"1.1@1\",\"deleted\":true}\ndoc \"k\" {\"at\":\"1.1@1\",\"value\":1}"),
        row("doc \"k\" {\"at\":\"1.1@1\",\"value\":1}\ntomb \"doc:k\" {\"at\":\"1.1@1\",\"deleted\":true}"),
        row("rival \"doc:k:1.1@1\" {\"at\":\"1.1@2\",\"value\":1}"),
        row("rival \"user:k:1.1@1\" {\"at\":\"1.1@1\",\"value\":1}"),
        row("rival \"user:k:1.1@1\" {\"at\":\"1.1@1\",\"value\":{\"name\":\"j\"}}"),
        row("conflict \"doc:k:1.1@1\" {\"at\":\"1.1@1\",\"value\":1}"),
    ];
    for text in wrong {
        assert!(Difference::from_text(&text).is_err(), "{text}");
    }
}
