//! Random sequences of commands: these properties hold after every record.

use std::collections::BTreeMap;

use super::rng::Rng;
use super::*;

const NAMES: [&str; 5] = ["ann", "bob", "eve", "a b", "é\\\""];
const ELECTIONS: [&str; 3] = ["cake", "chair", "[\"cake\","];
const KEYS: [&str; 6] = ["a", "a/b", "a/b/c", "é", "\\\"", "z"];
const VALUES: [&str; 5] =
    ["1.50", "{\"b\": [1, 2],\n \"a\": null}", "\"x\\n\u{7f}\"", "[]", "\"line\\u000abreak\""];

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("text always encodes")
}

/// A command as a client would write it.
fn single(rng: &mut Rng, store: &Store) -> (&'static str, String) {
    let (name, election, key) = (json(rng.pick(&NAMES)), json(rng.pick(&ELECTIONS)), json(rng.pick(&KEYS)));
    match rng.below(9) {
        0 => ("CreateUser", format!(r#"{{"name": {name}, "group": "{}"}}"#, rng.pick(&["g", "h"]))),
        1 => ("RemoveUser", format!(r#"{{"name":{name}}}"#)),
        2 => {
            let groups = rng.pick(&["", r#","groups":["g"]"#, r#","end_date":"2026-11-30T01:00:00Z""#]);
            ("CreateElection", format!(r#"{{"name":{election},"choices":["x","y"]{groups}}}"#))
        }
        3..6 => {
            let choice = rng.pick(&["x", "y", "z"]);
            let text = format!(r#"{{"election_name":{election},"voter_name":{name},"choice":"{choice}"}}"#);
            ("VoteElection", text)
        }
        6 => ("DeleteDoc", format!(r#"{{"key":{key}{}}}"#, condition(rng, store, false))),
        _ => {
            let value = rng.pick(&VALUES);
            let ttl = rng.pick(&["", "", r#","ttl_ms":1000"#]);
            ("PutDoc", format!(r#"{{"key":{key},"value":{value}{}{ttl}}}"#, condition(rng, store, true)))
        }
    }
}

fn condition(rng: &mut Rng, store: &Store, put: bool) -> String {
    match rng.below(6) {
        0 if put => r#","if_absent":true"#.into(),
        1 => r#","if_rev":"*""#.into(),
        2 => {
            let newest = store.applied().index + 1;
            format!(r#","if_rev":"{}""#, newest - (rng.below(12) as u64).min(newest))
        }
        _ => String::new(),
    }
}

/// Few ids, so that they repeat.
pub fn random_token(rng: &mut Rng) -> Command {
    let id = rng.below(8) as u64;
    if rng.one_in(3) { access::revoke(id) } else { access::create(id) }
}

pub fn random_command(rng: &mut Rng, store: &Store) -> Command {
    if !rng.one_in(4) {
        let (storage_cmd, payload) = single(rng, store);
        return command(storage_cmd, &payload);
    }
    let items: Vec<_> = (0..1 + rng.below(4))
        .map(|_| single(rng, store))
        .map(|(storage_cmd, payload)| format!(r#"{{"storage_cmd":"{storage_cmd}","payload":{payload}}}"#))
        .collect();
    Command::parse_batch(raw(&format!("[{}]", items.join(",")))).expect("a batch")
}

pub fn random_call(rng: &mut Rng) -> Option<KeyedCall> {
    if rng.one_in(2) { call(rng.below(40) as u128, rng.below(2) as u64) } else { None }
}

/// Compares the leader's verdict beforehand with the result.
fn check_agreement(judged: &Judged, applied: &Applied) {
    let data = applied.changes.iter().any(|key| !matches!(key, Key::Call(_)));
    match (judged, &applied.outcome) {
        (Judged::Accept, Ok(_)) => assert!(data),
        (Judged::Replay { reply, .. }, Ok(told)) => assert!(reply == told && !data),
        (Judged::Rejected(rejection), Err(told)) => assert!(rejection == told && !data),
        other => panic!("{other:?}"),
    }
}

struct Run {
    rng: Rng,
    bench: Bench,
    /// Updated from the changes alone, as a chain of small snapshots is.
    mirror: BTreeMap<Key, String>,
    log: Vec<Record>,
    accepted: usize,
}

impl Run {
    fn new(seed: u64) -> Run {
        let rng = Rng::new(seed);
        Run { rng, bench: Bench::new(), mirror: BTreeMap::new(), log: Vec::new(), accepted: 0 }
    }

    fn step(&mut self) {
        let span = if self.rng.one_in(20) { CALLS_KEPT.0 / 2 } else { 1000 };
        self.bench.pass(Span(span));
        let command = match self.rng.one_in(12) {
            true => random_token(&mut self.rng),
            false => random_command(&mut self.rng, &self.bench.store),
        };
        let call = random_call(&mut self.rng);
        let payload = command.to_payload(call);
        assert!(!payload.text.contains(char::is_control));
        assert_eq!(Command::from_payload(&payload).as_ref(), Ok(&command));
        let record = self.bench.record(Entry::Client(payload));
        let settled = {
            // A call that expires with this same record is known to `judge`, but not when the record is applied.
            let mut store = self.bench.store.clone();
            store.idempotency_keys.forget_old(self.bench.now.cluster);
            store
        };
        let judged = settled.judge(&command, call, self.bench.now);
        let applied = self.bench.store.apply(&record).expect("readable");
        check_agreement(&judged, &applied);
        self.accepted += usize::from(judged == Judged::Accept);
        self.log.push(record);
        for key in applied.changes {
            match self.bench.store.entry(&key) {
                Some(value) => self.mirror.insert(key, value),
                None => self.mirror.remove(&key),
            };
        }
    }

    fn check(&self) {
        let store = &self.bench.store;
        assert!(store.entries().eq(self.mirror.clone()), "the changes do not tell all");
        store.check_sound();
        assert_eq!(load::reloaded(store), *store);
        let text = document::document(store);
        let restored = Store::from_document(&text, store.applied(), store.stamp()).expect("our own document");
        let again = Store::from_document(&document::document(&restored), store.applied(), store.stamp());
        assert_eq!(again.as_ref(), Ok(&restored));
        let data = |store: &Store| -> Vec<_> {
            let value = |(key, entry): (Key, String)| {
                (key, entry.split_once(",\"value\":").map(|(_, value)| value.to_string()))
            };
            let is_data = |key: &Key| key.table() != "call" && key.table() != "access";
            store.entries().map(value).filter(|(key, _)| is_data(key)).collect()
        };
        assert_eq!(data(&restored), data(store));
    }
}

#[test]
fn whatever_is_asked_for_these_hold() {
    let mut accepted = 0;
    for seed in 0..40 {
        let mut run = Run::new(seed);
        let (mut frozen, mut seen) = (run.bench.store.clone(), run.bench.entries());
        for step in 0..300 {
            run.step();
            if step % 25 == 0 {
                assert!(frozen.entries().eq(seen), "a clone changed");
                run.check();
                (frozen, seen) = (run.bench.store.clone(), run.bench.entries());
            }
        }
        let mut other = Store::default();
        for record in &run.log {
            other.apply(record).expect("readable");
        }
        assert_eq!(other, run.bench.store, "seed {seed} came out differently");
        accepted += run.accepted;
    }
    assert!(accepted > 3000, "only {accepted} commands were accepted");
}

#[test]
fn equal_states_have_equal_digests_whatever_their_past() {
    let entries = furnished().entries();
    let digest = furnished().store.digest();
    let mut rng = Rng::new(1);
    for _ in 0..50 {
        let mut loader = Loader::default();
        let mut left = entries.clone();
        left.sort_by_key(|(key, _)| matches!(key, Key::Vote(_)));
        let votes = left.split_off(left.len() - 1);
        while !left.is_empty() {
            let (key, value) = left.swap_remove(rng.below(left.len()));
            loader.add(key.table(), &key.name(), &value).expect("an entry of ours");
        }
        for (key, value) in votes {
            loader.add(key.table(), &key.name(), &value).expect("an entry of ours");
        }
        assert_eq!(loader.finish(Position::ZERO, Stamp::default()).digest(), digest);
    }
    let mut bench = furnished();
    bench.ok("PutDoc", r#"{"key":"k","value":1}"#);
    bench.ok("CreateUser", r#"{"name":"k"}"#);
    assert_ne!(bench.store.digest(), digest);
    bench.ok("RemoveUser", r#"{"name":"k"}"#);
    bench.ok("DeleteDoc", r#"{"key":"k"}"#);
    assert_eq!(bench.store.digest(), digest);
}

#[test]
fn any_single_change_alters_the_digest() {
    let bench = furnished();
    let entries = bench.entries();
    let digest_of = |entries: &[(Key, String)]| {
        let mut loader = Loader::default();
        let added = entries.iter().map(|(key, value)| loader.add(key.table(), &key.name(), value));
        added.collect::<Result<Vec<_>, _>>().ok()?;
        Some(loader.finish(Position::ZERO, Stamp::default()).digest())
    };
    let mut changed = 0;
    for number in 0..entries.len() {
        let mut fewer = entries.clone();
        fewer.remove(number);
        assert_ne!(digest_of(&fewer), Some(bench.store.digest()));
        let text = entries[number].1.clone();
        for (at, digit) in text.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let mut other = entries.clone();
            let digit = if digit == '5' { "6" } else { "5" };
            other[number].1.replace_range(at..=at, digit);
            changed += usize::from(digest_of(&other).is_some());
            assert_ne!(digest_of(&other), Some(bench.store.digest()), "{} {}", text, other[number].1);
        }
    }
    assert!(changed > 20, "only {changed} changes were readable");
}
