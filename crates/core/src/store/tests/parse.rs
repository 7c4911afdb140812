//! Tests of the parser: which texts are commands, and which are not.

use super::*;
use crate::types::{Format, Payload};

fn bad(storage_cmd: &str, payload: &str) -> String {
    let error = Command::parse(storage_cmd, raw(payload)).expect_err(payload);
    format!("{}: {error}", error.code())
}

fn log_line(storage_cmd: &str, payload: &str) -> String {
    let command = command(storage_cmd, payload);
    let payload = command.to_payload(None);
    assert_eq!(Command::from_payload(&payload), Ok(command));
    format!("{}|{}", payload.kind, payload.text)
}

#[test]
fn the_seeds_commands_are_the_seeds_lines() {
    assert_eq!(log_line("RemoveUser", r#"{"name": "tester"}"#), r#"2|{"name":"tester"}"#);
    let user = "{\n \"name\": \"tester\",\r\n\t\"public_key\": \"k k\", \"age\": 1.50 }";
    assert_eq!(log_line("CreateUser", user), r#"1|{"name":"tester","public_key":"k k","age":1.50}"#);
    let election = r#"{"title": {"de": "Wahl"}, "name": "e", "choices": ["b", "a"], "groups": null}"#;
    let expected = r#"3|{"title":{"de":"Wahl"},"name":"e","choices":["b","a"],"groups":null}"#;
    assert_eq!(log_line("CreateElection", election), expected);
    let vote = r#"{"voter_name": "tester", "choice": "cand1", "election_name": "election1"}"#;
    let expected = r#"4|{"election_name":"election1","voter_name":"tester","choice":"cand1"}"#;
    assert_eq!(log_line("VoteElection", vote), expected);
}

#[test]
fn what_the_seed_wrote_is_read() {
    let payload = Payload { kind: 2, format: Format(1), call: None, text: r#"{"name": "tester"}"#.into() };
    assert_eq!(Command::from_payload(&payload), Ok(command("RemoveUser", r#"{"name":"tester"}"#)));
}

#[test]
fn a_payload_may_be_a_string_of_json() {
    let text = r#""{\"name\":\"tester\", \"x\":\"\\n\"}""#;
    assert_eq!(log_line("CreateUser", text), r#"1|{"name":"tester","x":"\n"}"#);
    assert_eq!(bad("CreateUser", r#""{\"name\":""#), "bad_field: payload must be valid JSON");
    assert_eq!(bad("CreateUser", r#""\"{}\"""#), "bad_field: payload must be an object");
}

#[test]
fn documents_stand_in_the_log_with_their_conditions() {
    let put = |rest: &str| log_line("PutDoc", &format!(r#"{{"value": [1, 2.0], "key": "a/b"{rest}}}"#));
    assert_eq!(put(""), r#"101|{"key":"a/b","value":[1,2.0]}"#);
    assert_eq!(put(r#","if_rev":"12""#), r#"101|{"key":"a/b","if_rev":"12","value":[1,2.0]}"#);
    assert_eq!(put(r#","if_rev":"*""#), r#"101|{"key":"a/b","if_rev":"*","value":[1,2.0]}"#);
    assert_eq!(put(r#","if_absent":true"#), r#"101|{"key":"a/b","if_absent":true,"value":[1,2.0]}"#);
    assert_eq!(put(r#","if_absent":false,"if_rev":null"#), r#"101|{"key":"a/b","value":[1,2.0]}"#);
    let delete = r#"{"key":"a\"b","if_rev":"\u0022"}"#;
    assert_eq!(log_line("DeleteDoc", delete), r#"102|{"key":"a\"b","if_rev":"\""}"#);
    assert_eq!(log_line("PutDoc", r#"{"key":"k","value":null}"#), r#"101|{"key":"k","value":null}"#);
}

#[test]
fn commands_for_documents_need_no_json_around_them() {
    let put =
        |condition| Command::put_doc("a/b", raw("[ 1 ]"), condition, None, Ending::default()).expect("sound");
    let same = |payload: &str| command("PutDoc", payload);
    assert_eq!(put(DocCondition::None), same(r#"{"key":"a/b","value":[1]}"#));
    assert_eq!(put(DocCondition::Rev("7".into())), same(r#"{"key":"a/b","value":[1],"if_rev":"7"}"#));
    assert_eq!(put(DocCondition::Rev("*".into())), same(r#"{"key":"a/b","value":[1],"if_rev":"*"}"#));
    let delete = Command::delete_doc("a/b", DocCondition::Present, None).expect("sound");
    assert_eq!(delete, command("DeleteDoc", r#"{"key":"a/b","if_rev":"*"}"#));
    let bad = |key: &str, rev: &str| {
        Command::delete_doc(key, DocCondition::Rev(rev.into()), None).expect_err("bad")
    };
    assert_eq!(bad("", "1").to_string(), "key is empty");
    assert_eq!(bad("k", "").to_string(), "if_rev is empty");
}

#[test]
fn unknown_commands_and_fields() {
    assert_eq!(bad("createuser", "{}"), "unknown_command: storage_cmd \"createuser\" is not a command");
    let long = bad(&"x\n".repeat(1_000_000), "{}");
    assert!(long.len() < 400 && !long.contains('\n'));
    assert_eq!(
        bad("PutDoc", r#"{"key":"k","value":1,"if_reev":"1"}"#),
        "bad_field: payload.if_reev is an unknown field"
    );
    assert_eq!(
        bad("DeleteDoc", r#"{"key":"k","if_absent":true}"#),
        "bad_field: payload.if_absent is an unknown field"
    );
    let contradiction = r#"{"key":"k","value":1,"if_rev":"1","if_absent":true}"#;
    assert_eq!(bad("PutDoc", contradiction), "bad_field: payload.if_absent contradicts the other condition");
}

#[test]
fn fields_are_named_by_their_path() {
    let cases = [
        ("CreateUser", "[]", "payload must be an object"),
        ("CreateUser", "null", "payload must be an object"),
        ("CreateUser", "{}", "payload.name is missing"),
        ("CreateUser", r#"{"name":null}"#, "payload.name must be a string"),
        ("CreateUser", r#"{"name":""}"#, "payload.name is empty"),
        ("CreateUser", r#"{"name":"a\nb"}"#, "payload.name has control characters"),
        ("CreateUser", "{\"name\":\"a\u{85}b\"}", "payload.name has control characters"),
        ("CreateUser", r#"{"name":"a","name":"b"}"#, "payload.name is given twice"),
        ("CreateUser", r#"{"name":"a","x":1,"\u0078":2}"#, "payload.x is given twice"),
        ("CreateUser", r#"{"name":"a","group":1}"#, "payload.group must be a string"),
        ("CreateUser", r#"{"name":"a","public_key":{}}"#, "payload.public_key must be a string"),
        ("CreateElection", r#"{"name":"e"}"#, "payload.choices is missing"),
        ("CreateElection", r#"{"name":"e","choices":[]}"#, "payload.choices is empty"),
        ("CreateElection", r#"{"name":"e","choices":"x"}"#, "payload.choices must be an array"),
        ("CreateElection", r#"{"name":"e","choices":["x",1]}"#, "payload.choices[1] must be a string"),
        ("CreateElection", r#"{"name":"e","choices":["x",""]}"#, "payload.choices[1] is empty"),
        ("CreateElection", r#"{"name":"e","choices":["x","y","x"]}"#, "payload.choices[2] is given twice"),
        ("CreateElection", r#"{"name":"e","choices":["x"],"groups":[]}"#, "payload.groups is empty"),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"groups":[null]}"#,
            "payload.groups[0] must be a string",
        ),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"end_date":5}"#,
            "payload.end_date must be a string",
        ),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"votes":[]}"#,
            "payload.votes is a name reserved for answers",
        ),
        ("VoteElection", r#"{"election_name":"e","voter_name":"v"}"#, "payload.choice is missing"),
        ("PutDoc", r#"{"key":"k"}"#, "payload.value is missing"),
        ("PutDoc", r#"{"key":"","value":1}"#, "payload.key is empty"),
        ("PutDoc", r#"{"key":"k","value":1,"if_rev":12}"#, "payload.if_rev must be a string"),
        ("PutDoc", r#"{"key":"k","value":1,"if_absent":"yes"}"#, "payload.if_absent must be true or false"),
    ];
    for (storage_cmd, payload, expected) in cases {
        assert_eq!(bad(storage_cmd, payload), format!("bad_field: {expected}"), "{payload}");
    }
    let date = bad("CreateElection", r#"{"name":"e","choices":["x"],"end_date":"tomorrow"}"#);
    assert!(date.starts_with("bad_field: payload.end_date must be a date and time of RFC 3339"), "{date}");
}

#[test]
fn sizes_are_bounded() {
    let user = |name: usize| format!(r#"{{"name":"{}"}}"#, "é".repeat(name / 2));
    log_line("CreateUser", &user(NAME_MOST));
    assert_eq!(bad("CreateUser", &user(NAME_MOST + 2)), "bad_field: payload.name has more than 256 bytes");
    let doc = |key: usize, value: usize| {
        format!(r#"{{"key":"{}","value":"{}" }}"#, "k".repeat(key), "x".repeat(value - 2))
    };
    log_line("PutDoc", &doc(KEY_MOST, VALUE_MOST));
    assert_eq!(bad("PutDoc", &doc(KEY_MOST + 1, 9)), "bad_field: payload.key has more than 1024 bytes");
    assert_eq!(
        bad("PutDoc", &doc(1, VALUE_MOST + 1)),
        "body_too_large: payload.value is larger than 1048576 bytes"
    );
    let nested =
        |depth: usize| format!(r#"{{"key":"k","value":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    log_line("PutDoc", &nested(DEPTH_MOST));
    assert_eq!(
        bad("PutDoc", &nested(DEPTH_MOST + 1)),
        "bad_field: payload.value is nested deeper than 100 levels"
    );
    let election = |count: usize| {
        let choices: Vec<_> = (0..count).map(|number| format!("\"{number}\"")).collect();
        format!(r#"{{"name":"e","choices":[{}]}}"#, choices.join(","))
    };
    log_line("CreateElection", &election(CHOICES_MOST));
    assert_eq!(
        bad("CreateElection", &election(CHOICES_MOST + 1)),
        "bad_field: payload.choices has more than 1024 items"
    );
}

#[test]
fn a_log_from_elsewhere_is_unreadable_and_says_why() {
    let read = |kind: u16, text: &str| {
        let payload = Payload { kind, format: Format(1), call: None, text: text.into() };
        Command::from_payload(&payload).expect_err("unreadable").to_string()
    };
    assert_eq!(read(99, "{}"), "a record of type 99, which this binary does not know");
    assert_eq!(read(2, "{"), "a record of type 2: the value must be valid JSON");
    assert_eq!(read(2, "{}"), "a record of type 2: name is missing");
    assert_eq!(read(100, "[]"), "a record of type 100: the value is empty");
    assert_eq!(
        read(100, r#"[{"type":100,"payload":[]}]"#),
        "a record of type 100: [0].payload must be an object"
    );
    assert_eq!(
        read(100, r#"[{"type":2,"payload":{}}]"#),
        "a record of type 100: [0].payload.name is missing"
    );
    assert_eq!(
        read(100, r#"[{"type":"2","payload":{}}]"#),
        "a record of type 100: [0].type is an unknown field"
    );
}

/// Values that readers of some language cannot read, and the error text for each.
const UNREADABLE: [(&str, &str); 4] = [
    ("1e400", "has a number beyond 1.797e308, such as 1e400, which JSON parsers cannot represent"),
    (
        r#"[0,{"a":-1E999}]"#,
        "has a number beyond 1.797e308, such as 1e400, which JSON parsers cannot represent",
    ),
    (r#"{"a":"\ud800"}"#, "has half of a surrogate pair, such as \\ud800 alone, which is not a character"),
    (
        r#"{"$serde_json::private::RawValue":1}"#,
        "has a name that begins with $serde_json::private::, which breaks parsers in Rust",
    ),
];

#[test]
fn values_that_clients_cannot_read_are_not_taken() {
    let digits = "7".repeat(5000);
    let long = (digits.as_str(), "has a number of more than 1000 bytes");
    for (value, says) in UNREADABLE.into_iter().chain([long]) {
        let of_body = |read: Result<(), BadCommand>| read.expect_err(value).to_string();
        let put = Command::put_doc("k", raw(value), DocCondition::None, None, Ending::default());
        assert_eq!(of_body(put.map(drop)), format!("value {says}"));
        let doc = format!(r#"{{"key":"k","value":{value}}}"#);
        assert_eq!(bad("PutDoc", &doc), format!("bad_field: payload.value {says}"));
        let text = serde_json::to_string(&doc).expect("text");
        assert_eq!(bad("PutDoc", &text), format!("bad_field: payload.value {says}"));
        let user = format!(r#"{{"name":"u","x":{value}}}"#);
        assert_eq!(bad("CreateUser", &user), format!("bad_field: payload.x {says}"));
        let election = format!(r#"{{"name":"e","choices":["a"],"x":{value}}}"#);
        assert_eq!(bad("CreateElection", &election), format!("bad_field: payload.x {says}"));
        let batch = format!(r#"[{{"storage_cmd":"PutDoc","payload":{doc}}}]"#);
        let batch = Command::parse_batch(raw(&batch));
        assert_eq!(of_body(batch.map(drop)), format!("[0].payload.value {says}"));
        let held = format!(r#"{{"instance_id":"a","metadata":{value}}}"#);
        assert_eq!(of_body(Acquisition::read(raw(&held)).map(drop)), format!("metadata {says}"));
        assert_eq!(of_body(RoleClaim::of_body(raw(&held)).map(drop)), format!("metadata {says}"));
        let process = format!(r#"{{"identifier":"a","capabilities":{value}}}"#);
        assert_eq!(of_body(NewProcess::of_body(raw(&process)).map(drop)), format!("capabilities {says}"));
    }
    let half = "has half of a surrogate pair, such as \\ud800 alone, which is not a character";
    assert_eq!(bad("CreateUser", r#"{"name":"\ud800"}"#), format!("bad_field: payload.name {half}"));
    assert_eq!(bad("CreateUser", r#"{"\ud800":"u"}"#), format!("bad_field: payload {half}"));
    assert_eq!(bad("CreateUser", r#""{}\ud800""#), format!("bad_field: payload {half}"));
}

/// A binary that refused a record in its own log could not start, and nodes must not diverge.
#[test]
fn what_was_taken_before_is_read_whatever_it_is() {
    let digits = "7".repeat(5000);
    for value in UNREADABLE.into_iter().map(|(value, _)| value).chain([digits.as_str()]) {
        let doc = format!(r#"{{"key":"k","value":{value}}}"#);
        let role = format!(r#"{{"role":"r","instance_id":"a","ttl_ms":30000,"metadata":{value}}}"#);
        let process = format!(r#"{{"id":"p","identifier":"a","metadata":{value},"ttl_ms":30000}}"#);
        let batch =
            format!(r#"[{{"type":101,"payload":{doc}}},{{"type":1,"payload":{{"name":"u","x":{value}}}}}]"#);
        for (kind, text) in [(101, &doc), (105, &role), (117, &process), (100, &batch)] {
            let payload = Payload { kind, format: Format(1), call: None, text: text.as_str().into() };
            let command = Command::from_payload(&payload).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(command.to_payload(None).text, payload.text);
        }
        let document = format!(r#"{{"users":[{{"name":"u","x":{value}}}],"docs":[{doc}]}}"#);
        assert!(restore_steps(&document, 1).is_ok(), "{document}");
    }
}
