//! What is a command and what is not.

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
    assert_eq!(bad("CreateUser", r#""{\"name\":""#), "bad_field: payload is text that does not hold JSON");
    assert_eq!(bad("CreateUser", r#""\"{}\"""#), "bad_field: payload is not an object");
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
    assert_eq!(put(Condition::None), same(r#"{"key":"a/b","value":[1]}"#));
    assert_eq!(put(Condition::Rev("7".into())), same(r#"{"key":"a/b","value":[1],"if_rev":"7"}"#));
    assert_eq!(put(Condition::Rev("*".into())), same(r#"{"key":"a/b","value":[1],"if_rev":"*"}"#));
    let delete = Command::delete_doc("a/b", Condition::Present, None).expect("sound");
    assert_eq!(delete, command("DeleteDoc", r#"{"key":"a/b","if_rev":"*"}"#));
    let bad =
        |key: &str, rev: &str| Command::delete_doc(key, Condition::Rev(rev.into()), None).expect_err("bad");
    assert_eq!(bad("", "1").to_string(), "key is empty");
    assert_eq!(bad("k", "").to_string(), "if_rev is empty");
}

#[test]
fn unknown_commands_and_fields() {
    assert_eq!(bad("createuser", "{}"), "unknown_command: storage_cmd \"createuser\" is no command");
    let long = bad(&"x\n".repeat(1_000_000), "{}");
    assert!(long.len() < 400 && !long.contains('\n'));
    assert_eq!(
        bad("PutDoc", r#"{"key":"k","value":1,"if_reev":"1"}"#),
        "bad_field: payload.if_reev is no field of this"
    );
    assert_eq!(
        bad("DeleteDoc", r#"{"key":"k","if_absent":true}"#),
        "bad_field: payload.if_absent is no field of this"
    );
    let contradiction = r#"{"key":"k","value":1,"if_rev":"1","if_absent":true}"#;
    assert_eq!(bad("PutDoc", contradiction), "bad_field: payload.if_absent contradicts the other condition");
}

#[test]
fn fields_are_named_by_their_path() {
    let cases = [
        ("CreateUser", "[]", "payload is not an object"),
        ("CreateUser", "null", "payload is not an object"),
        ("CreateUser", "{}", "payload.name is missing"),
        ("CreateUser", r#"{"name":null}"#, "payload.name is not a string"),
        ("CreateUser", r#"{"name":""}"#, "payload.name is empty"),
        ("CreateUser", r#"{"name":"a\nb"}"#, "payload.name has control characters"),
        ("CreateUser", "{\"name\":\"a\u{85}b\"}", "payload.name has control characters"),
        ("CreateUser", r#"{"name":"\ud800"}"#, "payload.name is not a string"),
        ("CreateUser", r#"{"name":"a","name":"b"}"#, "payload.name is there twice"),
        ("CreateUser", r#"{"name":"a","x":1,"\u0078":2}"#, "payload.x is there twice"),
        ("CreateUser", r#"{"name":"a","group":1}"#, "payload.group is not a string"),
        ("CreateUser", r#"{"name":"a","public_key":{}}"#, "payload.public_key is not a string"),
        ("CreateElection", r#"{"name":"e"}"#, "payload.choices is missing"),
        ("CreateElection", r#"{"name":"e","choices":[]}"#, "payload.choices is empty"),
        ("CreateElection", r#"{"name":"e","choices":"x"}"#, "payload.choices is not an array"),
        ("CreateElection", r#"{"name":"e","choices":["x",1]}"#, "payload.choices[1] is not a string"),
        ("CreateElection", r#"{"name":"e","choices":["x",""]}"#, "payload.choices[1] is empty"),
        ("CreateElection", r#"{"name":"e","choices":["x","y","x"]}"#, "payload.choices[2] is there twice"),
        ("CreateElection", r#"{"name":"e","choices":["x"],"groups":[]}"#, "payload.groups is empty"),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"groups":[null]}"#,
            "payload.groups[0] is not a string",
        ),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"end_date":5}"#,
            "payload.end_date is not a string",
        ),
        (
            "CreateElection",
            r#"{"name":"e","choices":["x"],"votes":[]}"#,
            "payload.votes is a name that answers use themselves",
        ),
        ("VoteElection", r#"{"election_name":"e","voter_name":"v"}"#, "payload.choice is missing"),
        ("PutDoc", r#"{"key":"k"}"#, "payload.value is missing"),
        ("PutDoc", r#"{"key":"","value":1}"#, "payload.key is empty"),
        ("PutDoc", r#"{"key":"k","value":1,"if_rev":12}"#, "payload.if_rev is not a string"),
        (
            "PutDoc",
            r#"{"key":"k","value":1,"if_absent":"yes"}"#,
            "payload.if_absent is neither true nor false",
        ),
    ];
    for (storage_cmd, payload, expected) in cases {
        assert_eq!(bad(storage_cmd, payload), format!("bad_field: {expected}"), "{payload}");
    }
    let date = bad("CreateElection", r#"{"name":"e","choices":["x"],"end_date":"tomorrow"}"#);
    assert!(date.starts_with("bad_field: payload.end_date is no date and time of RFC 3339"), "{date}");
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
    assert_eq!(read(2, "{"), "a record of type 2: the value is text that does not hold JSON");
    assert_eq!(read(2, "{}"), "a record of type 2: name is missing");
    assert_eq!(read(100, "[]"), "a record of type 100: the value is empty");
    assert_eq!(
        read(100, r#"[{"type":100,"payload":[]}]"#),
        "a record of type 100: [0].payload is not an object"
    );
    assert_eq!(
        read(100, r#"[{"type":2,"payload":{}}]"#),
        "a record of type 100: [0].payload.name is missing"
    );
    assert_eq!(
        read(100, r#"[{"type":"2","payload":{}}]"#),
        "a record of type 100: [0].type is no field of this"
    );
}
