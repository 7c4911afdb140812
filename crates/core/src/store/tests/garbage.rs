//! Arbitrary input from clients, disks and peers: it never causes a panic, and never puts a control character into the log.

use super::rng::Rng;
use super::*;
use crate::types::{Format, Payload};

const BODIES: [(&str, &str); 9] = [
    ("CreateUser", r#"{"name":"ann","group":"staff","public_key":"AAAA","tags":["a\nb",{"x":1e300}]}"#),
    ("RemoveUser", r#"{"name": "tester"}"#),
    (
        "CreateElection",
        r#"{"name":"cake","choices":["plum","apple"],"groups":["g"],"end_date":"2026-11-30T18:00:00.5+01:00"}"#,
    ),
    ("VoteElection", r#"{"election_name":"cake","voter_name":"ann","choice":"plum"}"#),
    ("PutDoc", r#"{"key":"conf/a","value":{"n":1.50,"b":[true,null,"\ud83d\ude00\\"]},"if_rev":"3"}"#),
    ("PutDoc", r#""{\"key\":\"k\",\"value\":\"\\u0000\",\"if_absent\":true}""#),
    ("DeleteDoc", r#"{"key":"conf/a","if_rev":"*"}"#),
    (
        "Batch",
        r#"[{"storage_cmd":"RemoveUser","payload":{"name":"ann"}},{"storage_cmd":"PutDoc","payload":{"key":"k","value":[]}}]"#,
    ),
    (
        "Batch",
        r#"[{"type":2,"payload":{"name":"ann"}},{"type":101,"payload":{"key":"k","if_rev":"1","value":{}}}]"#,
    ),
];

const PIECES: [&str; 24] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\t",
    "\0",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "é",
    "null",
    "true",
    "1e999",
    "-0",
    "\"\\ud800\"",
    "\\n",
    "\"name\":\"x\",",
    "\"value\":",
];

fn mutated(rng: &mut Rng, body: &str) -> String {
    let mut chars: Vec<char> = body.chars().collect();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(chars.len() + 1);
        let end = (at + rng.below(8)).min(chars.len());
        match rng.below(5) {
            0 => drop(chars.drain(at..end)),
            1 => drop(chars.splice(at..at, rng.pick(&PIECES).chars())),
            2 => drop(chars.splice(at..end, rng.pick(&PIECES).chars())),
            3 => {
                let copy = chars[at..end].to_vec();
                let to = rng.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            _ => blank(rng, &mut chars),
        }
    }
    chars.into_iter().collect()
}

/// Adds blanks where JSON allows them, so that much of the input stays valid.
fn blank(rng: &mut Rng, chars: &mut Vec<char>) {
    let places: Vec<usize> = (0..chars.len()).filter(|at| matches!(chars[*at], ',' | '{' | '[')).collect();
    if !places.is_empty() {
        let at = places[rng.below(places.len())] + 1;
        chars.insert(at, if rng.one_in(2) { '\n' } else { ' ' });
    }
}

/// A command that was read is the same when it is read again from the log, and can be applied.
fn check(command: &Command, bench: &mut Bench) {
    let payload = command.to_payload(None);
    assert!(!payload.text.contains(char::is_control), "{:?}", payload.text);
    assert_eq!(Command::from_payload(&payload).as_ref(), Ok(command));
    let judged = bench.store.judge(command, None, bench.now);
    let applied = bench.apply(command, None);
    assert_eq!(judged == Judged::Accept, applied.outcome.is_ok());
}

#[test]
fn mutated_bodies() {
    let mut rng = Rng::new(7);
    let mut bench = furnished();
    let (mut read, mut refused) = (0, 0);
    for round in 0..20_000 {
        let (storage_cmd, body) = BODIES[rng.below(BODIES.len())];
        let body = mutated(&mut rng, body);
        if let Ok(payload) = serde_json::from_str::<&RawValue>(&body) {
            match Command::parse(storage_cmd, payload) {
                Ok(command) => {
                    check(&command, &mut bench);
                    let text = command.to_payload(None).text;
                    assert!(
                        serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                        "no client reads {text}"
                    );
                    read += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().contains(char::is_control), "{error}");
                    refused += 1;
                }
            }
        }
        let kind = CommandKind::named(storage_cmd).expect("known").number();
        let kind = if rng.one_in(50) { rng.below(200) as u16 } else { kind };
        let payload = Payload { kind, format: Format(1), call: None, text: body.clone().into() };
        if let Ok(command) = Command::from_payload(&payload) {
            check(&command, &mut bench);
        }
        let _ = Store::from_document(&body, Position::ZERO, Stamp::default());
        if round % 100 == 0 {
            bench = furnished();
        }
    }
    assert!(read > 2500 && refused > 2000, "{read} read, {refused} refused");
}

#[test]
fn mutated_documents_and_entries() {
    let mut rng = Rng::new(8);
    let bench = furnished();
    let text = document::document(&bench.store);
    let entries = bench.entries();
    let (mut restored, mut loaded) = (0, 0);
    for _ in 0..5_000 {
        let text = mutated(&mut rng, &text);
        if let Ok(store) = Store::from_document(&text, Position::ZERO, Stamp::default()) {
            assert_eq!(load::reloaded(&store), store);
            assert!(store.entries().all(|(_, value)| !value.contains(char::is_control)));
            restored += 1;
        }
        let mut loader = Loader::default();
        let odd = rng.below(entries.len());
        let all = entries.iter().enumerate().all(|(number, (key, value))| {
            let value = if number == odd { mutated(&mut rng, value) } else { value.clone() };
            loader.add(key.table(), &key.name(), &value).is_ok()
        });
        if all {
            let store = loader.finish(Position::ZERO, Stamp::default());
            assert_eq!(store.digest(), store.recomputed_digest());
            loaded += 1;
        }
    }
    assert!(restored > 300 && loaded > 300, "{restored} restored, {loaded} loaded");
}
