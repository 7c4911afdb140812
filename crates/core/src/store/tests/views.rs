//! The forms that readers see.

use super::*;

#[test]
fn elections_are_shown_with_what_they_came_to() {
    let mut bench = furnished();
    bench.ok("VoteElection", r#"{"election_name":"cake","voter_name":"ann","choice":"apple"}"#);
    bench.ok("CreateUser", r#"{"name":"eve"}"#);
    bench.ok("VoteElection", r#"{"election_name":"cake","voter_name":"eve","choice":"apple"}"#);
    let cake = r#"{"name":"cake","choices":["plum","apple"],"tally":{"plum":1,"apple":2},"votes":3}"#;
    assert_eq!(bench.store.election("cake").expect("there").to_json(), cake);
    assert_eq!(bench.store.election("soup"), None);
    let page = bench.store.elections("", None, 1);
    assert_eq!(page.to_json(), format!(r#"{{"items":[{cake}],"next":"cake"}}"#));
    let page = bench.store.elections("", page.next.as_deref(), 1);
    assert_eq!((page.items.len(), page.items[0].votes(), page.next), (1, 0, None));
}

#[test]
fn users_are_shown_as_they_were_created() {
    let bench = furnished();
    let expected = r#"{"items":[{"name":"ann","group":"staff","age":31},{"name":"bob"}],"next":null}"#;
    assert_eq!(bench.store.users("", None, 10).to_json(), expected);
    assert_eq!(bench.store.users("b", None, 10).to_json(), r#"{"items":[{"name":"bob"}],"next":null}"#);
    assert_eq!(bench.store.users("", Some("ann"), 10).to_json(), r#"{"items":[{"name":"bob"}],"next":null}"#);
    assert_eq!(bench.store.users("", Some("zoe"), 10).to_json(), r#"{"items":[],"next":null}"#);
}

#[test]
fn documents_are_paged_by_prefix() {
    let mut bench = Bench::new();
    for key in ["a", "conf/1", "conf/2", "conf/3", "conf0", "d"] {
        bench.ok("PutDoc", &format!(r#"{{"key":"{key}","value":{{"k": "{key}"}}}}"#));
    }
    let first = bench.store.docs("conf/", None, 2);
    let expected = r#"{"items":[{"key":"conf/1","rev":"2","value":{"k":"conf/1"}},"#.to_string()
        + r#"{"key":"conf/2","rev":"3","value":{"k":"conf/2"}}],"next":"conf/2"}"#;
    assert_eq!(first.to_json(), expected);
    let keys = |prefix: &str, after: Option<&str>, limit: usize| {
        let page = bench.store.docs(prefix, after, limit);
        let keys: Vec<_> = page.items.iter().map(|item| item.key.to_string()).collect();
        (keys.join(" "), page.next.map(|next| next.to_string()))
    };
    assert_eq!(keys("conf/", Some("conf/2"), 2), ("conf/3".into(), None));
    assert_eq!(keys("conf/", Some("a"), 1), ("conf/1".into(), Some("conf/1".into())));
    assert_eq!(keys("conf/", Some("d"), 1), (String::new(), None));
    assert_eq!(keys("conf/", None, 3), ("conf/1 conf/2 conf/3".into(), None));
    assert_eq!(keys("", None, 0), ("a".into(), Some("a".into())));
    assert_eq!(keys("", Some("conf/3"), 9), ("conf0 d".into(), None));
    assert_eq!(keys("x", None, 9), (String::new(), None));
}

#[test]
fn a_page_is_bounded_in_bytes() {
    let mut bench = Bench::new();
    let value = format!("\"{}\"", "x".repeat(VALUE_MOST - 2));
    for number in 0..6 {
        bench.ok("PutDoc", &format!(r#"{{"key":"{number}","value":{value}}}"#));
    }
    let page = bench.store.docs("", None, 10);
    assert_eq!((page.items.len(), page.next.as_deref()), (3, Some("2")));
}
