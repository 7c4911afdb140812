//! A restore in steps.

use super::*;
use crate::store::{TOKEN_FLOOR_MOST, Unreadable, ending, give_up_restore, restore_steps};
use crate::types::{Entry, Format, Payload, Position, Record, Stamp};

fn document(docs: usize) -> String {
    let docs: Vec<String> =
        (0..docs).map(|n| format!("{{\"key\":\"k{n:05}\",\"value\":\"{}\"}}", "x".repeat(1_000))).collect();
    format!(
        "{{\"users\":[{{\"name\":\"ada\"}}],\"elections\":[{{\"name\":\"e\",\"choices\":[\"a\",\"b\"],\"votes\":\
         [{{\"voter_name\":\"ada\",\"choice\":\"b\"}}]}}],\"docs\":[{}]}}",
        docs.join(",")
    )
}

fn steps(docs: usize) -> Vec<Payload> {
    restore_steps(&document(docs), 7).expect("a good document").steps
}

#[test]
fn nothing_is_seen_before_the_last_step() {
    let mut bench = Bench::default();
    bench.apply_entry(Entry::Client(steps(3)[0].clone()));
    assert!(bench.store.is_restoring() && bench.store.is_empty());
    let steps = steps(1_000);
    assert!(steps.len() > 5, "a large document has many steps");
    let (last, parts) = steps.split_last().expect("steps");
    for part in parts {
        assert!(!bench.apply_entry(Entry::Client(part.clone())).restored);
        assert!(bench.store.is_empty());
    }
    assert!(bench.apply_entry(Entry::Client(last.clone())).restored);
    assert!(!bench.store.is_restoring());
    assert_eq!(bench.store.docs("", None, 1).items.len(), 1);
    assert_eq!(bench.store.len(), 1_000 + 3);
    assert_eq!(bench.store.election("e").map(|election| election.votes()), Some(1));
}

#[test]
fn a_restore_replaces_everything_that_was_there() {
    let mut bench = Bench::default();
    for step in steps(5) {
        bench.apply_entry(Entry::Client(step));
    }
    for step in restore_steps("{\"docs\":[{\"key\":\"only\",\"value\":1}]}", 8).expect("good").steps {
        bench.apply_entry(Entry::Client(step));
    }
    assert_eq!(bench.store.len(), 1);
    for step in restore_steps("{}", 9).expect("good").steps {
        bench.apply_entry(Entry::Client(step));
    }
    assert!(bench.store.is_empty());
}

/// I7: a client that retries a call after a restore receives the first result, also from a node that has loaded the state from
/// its disk.
#[test]
fn a_restore_forgets_no_call() {
    let mut bench = furnished();
    let put = command("PutDoc", r#"{"key":"k","value":1}"#);
    let reply = bench.apply(&put, call(9, 1)).outcome.expect("accepted");
    let at = bench.store.applied();
    for step in steps(3) {
        bench.apply_entry(Entry::Client(step));
    }
    let again = Judged::Replay { at, reply };
    assert_eq!(bench.store.judge(&put, call(9, 1), bench.now), again);
    assert!(bench.entries().iter().any(|(key, _)| *key == Key::Call(9)));
    assert_eq!(bench.store.doc("k"), None);
}

#[test]
fn a_restore_that_breaks_off_changes_nothing() {
    let whole = steps(1_000);
    let (last, parts) = whole.split_last().expect("steps");
    let other = Entry::Lead { founding: None };
    for breaks in [other, Entry::Client(give_up_restore(7))] {
        let mut bench = Bench::default();
        for part in &parts[..2] {
            bench.apply_entry(Entry::Client(part.clone()));
        }
        bench.apply_entry(breaks);
        assert!(!bench.store.is_restoring());
        for part in &parts[2..] {
            bench.apply_entry(Entry::Client(part.clone()));
        }
        assert!(!bench.apply_entry(Entry::Client(last.clone())).restored);
        assert!(bench.store.is_empty());
    }
}

#[test]
fn a_bad_document_gets_as_far_as_no_record() {
    let bad = restore_steps("{\"docs\":[{\"key\":\"a\",\"value\":1},{\"key\":\"a\",\"value\":2}]}", 7);
    assert_eq!(bad.err().map(|bad| bad.path), Some("docs[1].key".to_string()));
}

/// P57: no token up to the one in the last step is granted any more, and a restore never lowers the last token.
#[test]
fn the_end_of_a_restore_raises_the_last_token() {
    let restored = |bench: &mut Bench, token: u64| {
        let steps = steps(1);
        let (last, parts) = steps.split_last().expect("steps");
        parts.iter().for_each(|part| drop(bench.apply_entry(Entry::Client(part.clone()))));
        let end = ending(last, Some(token), false);
        assert_eq!(&*end.text, format!("{{\"restore\":7,\"parts\":{},\"token\":{token}}}", parts.len()));
        assert_eq!(end.format, Format(4), "P23");
        assert!(bench.apply_entry(Entry::Client(end)).restored);
        bench.store.last_token()
    };
    let mut bench = Bench::default();
    assert_eq!(restored(&mut bench, TOKEN_FLOOR_MOST - 5), TOKEN_FLOOR_MOST - 5);
    assert_eq!(restored(&mut bench, 7), TOKEN_FLOOR_MOST - 5);
    assert_eq!(restored(&mut bench, TOKEN_FLOOR_MOST), TOKEN_FLOOR_MOST);
}

#[test]
fn an_end_that_leaves_no_room_for_tokens_is_unreadable() {
    for token in ["0", "-1", "1.5", "\"1\"", &(TOKEN_FLOOR_MOST + 1).to_string()] {
        let mut bench = Bench::default();
        let mut steps = steps(1);
        let last = steps.pop().expect("steps");
        steps.into_iter().for_each(|part| drop(bench.apply_entry(Entry::Client(part))));
        let text = format!("{{\"restore\":7,\"parts\":3,\"token\":{token}}}").into();
        let position = Position::new(bench.store.applied().epoch, bench.store.applied().index + 1);
        let entry = Entry::Client(Payload { text, ..last });
        let record = Record { position, stamp: Stamp::default(), entry };
        assert_eq!(bench.store.apply(&record).err(), Some(Unreadable::Kind(114)), "{token}");
        assert!(bench.store.is_restoring(), "an unreadable record leaves the state as it was");
    }
}
