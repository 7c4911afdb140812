//! Idempotency keys: a retry gets the first answer and changes nothing, and the number of remembered keys is bounded (C16).

use super::*;
use crate::store::tables::{IdempotencyKeys, Remembered};

const PUT: &str = r#"{"key":"k","value":1}"#;

#[test]
fn a_retry_is_told_the_first_result() {
    let mut bench = furnished();
    let command = command("PutDoc", PUT);
    let first = bench.apply(&command, call(9, 1));
    assert_eq!(first.changes, [Key::Doc("k".into()), Key::Call(9)]);
    let reply = first.outcome.expect("accepted");
    let at = bench.store.applied();
    bench.ok("PutDoc", r#"{"key":"k","value":2}"#);
    let again = bench.store.judge(&command, call(9, 1), bench.now);
    assert_eq!(again, Judged::Replay { at, reply: reply.clone() });
    let before = bench.entries();
    let applied = bench.apply(&command, call(9, 1));
    assert_eq!(
        applied,
        Applied {
            outcome: Ok(reply.clone()),
            changes: Vec::new(),
            events: Vec::new(),
            ended: Vec::new(),
            tokens: Vec::new(),
            restored: false
        }
    );
    assert_eq!(bench.entries(), before);
    assert!(reply.created);
    assert_eq!(&*reply.json, format!(r#"{{"key":"k","rev":"{}","created":true}}"#, at.index));
}

#[test]
fn a_batch_is_remembered_with_what_it_created() {
    let mut bench = furnished();
    let items = r#"[{"storage_cmd":"PutDoc","payload":{"key":"conf/a","value":1}},
                    {"storage_cmd":"PutDoc","payload":{"key":"new","value":1}}]"#;
    let command = Command::parse_batch(raw(items)).expect("a batch");
    let first = bench.apply(&command, call(9, 1)).outcome.expect("accepted");
    assert!(first.json.contains(r#""created":false},{"key":"new""#) && first.json.ends_with(r#"true}]"#));
    let entry = bench.store.entry(&Key::Call(9)).expect("remembered");
    assert_eq!(entry, r#"{"at":"7.1@8","body":"0000000000000001","since_us":0,"created":[1]}"#);
    assert_eq!(bench.apply(&command, call(9, 1)).outcome, Ok(first));
}

#[test]
fn the_same_key_with_another_body_is_refused() {
    let mut bench = furnished();
    bench.apply(&command("PutDoc", PUT), call(9, 1));
    let before = bench.entries();
    let other = command("RemoveUser", r#"{"name":"ann"}"#);
    let reused = Rejection { operation: None, reason: Reason::KeyReused };
    assert_eq!(bench.store.judge(&other, call(9, 2), bench.now), Judged::Rejected(reused.clone()));
    assert_eq!(bench.apply(&other, call(9, 2)).outcome, Err(reused.clone()));
    assert_eq!(reused.code(), "idempotency_key_reused");
    assert_eq!(bench.entries(), before);
}

#[test]
fn what_changed_nothing_is_judged_anew() {
    let mut bench = furnished();
    let remove = command("RemoveUser", r#"{"name":"eve"}"#);
    assert!(bench.apply(&remove, call(9, 1)).outcome.is_err());
    bench.ok("CreateUser", r#"{"name":"eve"}"#);
    assert_eq!(bench.store.judge(&remove, call(9, 1), bench.now), Judged::Accept);
    assert!(bench.apply(&remove, call(9, 1)).outcome.is_ok());
}

#[test]
fn calls_are_forgotten_by_cluster_time_a_few_at_a_record() {
    let mut bench = Bench::new();
    let count = 3 * FORGOTTEN_MOST as u128;
    for key in 0..count {
        bench.apply(&command("PutDoc", PUT), call(key, 1));
    }
    bench.pass(Span(CALLS_KEPT.0 - 1));
    bench.now.wall.0 *= 2;
    let step = |bench: &mut Bench| {
        let record = bench.record(Entry::Lead { founding: None });
        bench.store.apply(&record).expect("readable").changes
    };
    assert_eq!(step(&mut bench), []);
    bench.pass(Span(1));
    for round in 0..3 {
        let forgotten =
            (0..FORGOTTEN_MOST as u128).map(|key| Key::Call(key + round * FORGOTTEN_MOST as u128));
        assert_eq!(step(&mut bench), forgotten.collect::<Vec<_>>());
    }
    assert_eq!(step(&mut bench), []);
    assert_eq!(bench.store.len(), 1);
    assert_eq!(bench.store.judge(&command("PutDoc", PUT), call(0, 2), bench.now), Judged::Accept);
}

fn remembered(index: u64, who: u32) -> Remembered {
    let json = format!(r#"{{"at":"6.2@{index}","body":"1","since_us":0,"who":{who}}}"#);
    Remembered::from_entry(&json).expect("sound")
}

/// A full table: all calls are of one client, except the very first one and some others.
fn full() -> IdempotencyKeys {
    let mut calls = IdempotencyKeys::default();
    for key in 0..CALLS_MOST as u64 {
        let who = if key % 1000 == 0 { 7 } else { 1 };
        assert!(calls.add(u128::from(key), remembered(key, who)));
    }
    calls
}

/// P52: only the client that fills the table loses remembered calls.
#[test]
fn at_the_bound_the_oldest_go_of_whoever_has_most() {
    let mut bench = furnished();
    let put = command("PutDoc", PUT);
    bench.store.idempotency_keys = full();
    for (number, who) in [(0, 7), (1, 9), (2, 1)] {
        let key = Some(KeyedCall { key: u128::MAX - number, body: 1, who });
        assert_eq!(bench.store.judge(&put, key, bench.now), Judged::Accept);
        let changes = bench.apply(&put, key).changes;
        assert!(changes.contains(&Key::Call(1 + number)), "the oldest of the client that has most goes");
        assert_eq!(bench.store.idempotency_keys.table().len(), CALLS_MOST);
    }
    assert!(
        matches!(bench.store.judge(&put, call(0, 1), bench.now), Judged::Replay { .. }),
        "the oldest of all"
    );
    assert_eq!(load::reloaded(&bench.store), bench.store);
}

/// In available mode no call can be dropped, because the other sides would have to learn of it. There a client whose
/// calls fill half of the table waits, and once the table is full all clients wait.
#[test]
fn at_the_bound_of_sides_writes_with_a_key_wait() {
    let mut bench = furnished();
    let put = command("PutDoc", PUT);
    bench.store.merging = Store::mergeable().merging;
    bench.store.idempotency_keys = full();
    let key = |who| Some(KeyedCall { key: u128::MAX, body: 1, who });
    assert_eq!(bench.store.judge(&put, key(9), bench.now), Judged::TooManyKeys);
    assert!(matches!(bench.store.judge(&put, call(5, 1), bench.now), Judged::Replay { .. }));
    assert_eq!(bench.store.judge(&put, None, bench.now), Judged::Accept);
    bench.pass(CALLS_KEPT);
    assert_eq!(bench.store.judge(&put, key(9), bench.now), Judged::Accept);
    assert_eq!(
        bench.store.judge(&put, key(1), bench.now),
        Judged::TooManyKeys,
        "it has more than half of them"
    );
}
