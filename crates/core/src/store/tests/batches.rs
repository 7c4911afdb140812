//! A batch is applied as a whole, or not at all.

use super::*;

fn batch(items: &str) -> Command {
    Command::parse_batch(raw(items)).expect("a batch")
}

#[test]
fn later_operations_see_earlier_ones() {
    let mut bench = Bench::new();
    let command = batch(
        r#"[{"storage_cmd":"CreateUser","payload":{"name":"ann"}},
            {"storage_cmd":"CreateElection","payload":{"name":"e","choices":["x"]}},
            {"storage_cmd":"VoteElection","payload":{"election_name":"e","voter_name":"ann","choice":"x"}},
            {"storage_cmd":"PutDoc","payload":{"key":"k","value":1}},
            {"storage_cmd":"PutDoc","payload":"{\"key\":\"k\",\"value\":2,\"if_rev\":\"1\"}"},
            {"storage_cmd":"DeleteDoc","payload":{"key":"k"}}]"#,
    );
    assert_eq!(bench.store.judge(&command, None, bench.now), Judged::Accept);
    let applied = bench.apply(&command, None);
    let tables: Vec<_> = applied.changes.iter().map(Key::table).collect();
    assert_eq!(tables, ["user", "election", "vote", "doc", "doc", "doc"]);
    let expected = r#"[{"name":"ann"},{"name":"e"},{"election_name":"e","voter_name":"ann"},"#.to_string()
        + r#"{"key":"k","rev":"1","created":true},{"key":"k","rev":"1","created":false},{"key":"k"}]"#;
    assert_eq!(told(applied), Ok(expected));
    assert_eq!(bench.store.doc("k"), None);
}

#[test]
fn a_rejected_operation_undoes_all_and_is_named() {
    let mut bench = furnished();
    let before = bench.store.clone();
    let command = batch(
        r#"[{"storage_cmd":"PutDoc","payload":{"key":"new","value":1}},
            {"storage_cmd":"RemoveUser","payload":{"name":"bob"}},
            {"storage_cmd":"RemoveUser","payload":{"name":"bob"}}]"#,
    );
    let Judged::Rejected(rejection) = bench.store.judge(&command, None, bench.now) else {
        panic!("bob is removed twice");
    };
    assert_eq!(rejection.to_string(), "operation 2: there is no user \"bob\"");
    assert_eq!(bench.store, before);
    let applied = bench.apply(&command, call(1, 1));
    assert_eq!(
        applied,
        Applied {
            outcome: Err(rejection),
            changes: Vec::new(),
            events: Vec::new(),
            ended: Vec::new(),
            tokens: Vec::new(),
            restored: false
        }
    );
    assert_eq!(bench.store.digest(), before.digest());
    assert!(bench.store.entries().eq(before.entries()));
}

#[test]
fn a_batch_is_one_line_of_the_log() {
    let command = batch(
        r#"[ {"storage_cmd": "RemoveUser", "payload": {"name": "a\"b"}},
             {"storage_cmd": "PutDoc", "payload": {"if_absent": true, "value": [ 1.0 ], "key": "k"}} ]"#,
    );
    let payload = command.to_payload(call(3, 4));
    assert_eq!((payload.kind, payload.call), (100, call(3, 4)));
    let expected = r#"[{"type":2,"payload":{"name":"a\"b"}},"#.to_string()
        + r#"{"type":101,"payload":{"key":"k","if_absent":true,"value":[1.0]}}]"#;
    assert_eq!(&*payload.text, expected);
    assert_eq!(Command::from_payload(&payload), Ok(command));
}

#[test]
fn errors_of_a_batch_have_paths() {
    let bad = |items: &str| Command::parse_batch(raw(items)).expect_err("bad").to_string();
    assert_eq!(bad("[]"), "the value is empty");
    assert_eq!(bad("{}"), "the value must be an array");
    assert_eq!(bad("[1]"), "[0] must be an object");
    assert_eq!(bad(r#"[{"payload":{}}]"#), "[0].storage_cmd is missing");
    assert_eq!(bad(r#"[{"storage_cmd":"RemoveUser"}]"#), "[0].payload is missing");
    assert_eq!(bad(r#"[{"storage_cmd":"Fly","payload":{}}]"#), "[0].storage_cmd \"Fly\" is not a command");
    assert_eq!(
        bad(r#"[{"storage_cmd":"Batch","payload":[]}]"#),
        "[0].storage_cmd must not be a batch within a batch"
    );
    let name = r#"[{"storage_cmd":"RemoveUser","payload":{"name":"a"}},{"storage_cmd":"RemoveUser","payload":{"name":1}}]"#;
    assert_eq!(bad(name), "[1].payload.name must be a string");
    let within = Command::parse("Batch", raw(name)).expect_err("bad");
    assert_eq!(within.to_string(), "payload[1].payload.name must be a string");
    assert_eq!(Command::parse("Batch", raw("[]")).expect_err("empty").to_string(), "payload is empty");
}

#[test]
fn a_batch_is_bounded() {
    let list = |item: String, count: usize| format!("[{}]", vec![item; count].join(","));
    let put = |size: usize| {
        format!(r#"{{"storage_cmd":"PutDoc","payload":{{"key":"k","value":"{}"}}}}"#, "x".repeat(size))
    };
    assert!(Command::parse_batch(raw(&list(put(1), OPERATIONS_MOST))).is_ok());
    let many = Command::parse_batch(raw(&list(put(1), OPERATIONS_MOST + 1))).expect_err("too many");
    assert_eq!((many.code(), many.to_string().as_str()), ("bad_field", "the value has more than 1024 items"));
    let large = Command::parse_batch(raw(&list(put(VALUE_MOST - 2), 4))).expect_err("too large");
    assert_eq!(large.code(), "body_too_large");
}
