//! All data as one document.

use super::*;

pub fn document(store: &Store) -> String {
    let mut text = String::new();
    store.to_document(&mut text).expect("writing to a String cannot fail");
    text
}

fn restored(text: &str) -> Result<Store, String> {
    let at = Position::new(Epoch::new(9, NodeId(2)), 50);
    Store::from_document(text, at, Stamp::default()).map_err(|error| error.to_string())
}

#[test]
fn a_document_holds_everything() {
    let expected = r#"{"users":[{"name":"ann","group":"staff","age":31},{"name":"bob"}],"#.to_string()
        + r#""elections":[{"name":"cake","choices":["plum","apple"],"votes":[{"voter_name":"bob","choice":"plum"}]},"#
        + r#"{"name":"chair","choices":["x"],"groups":["staff","board"],"votes":[]}],"#
        + r#""docs":[{"key":"conf/a","rev":"6","value":{"n":1.50,"b":[true,null]}},{"key":"conf/b","rev":"7","value":"\u0007"}]}"#;
    assert_eq!(document(&furnished().store), expected);
}

#[test]
fn a_restored_state_has_the_same_data_and_new_revisions() {
    let mut bench = furnished();
    bench.apply(&command("RemoveUser", r#"{"name":"bob"}"#), call(1, 1));
    let text = document(&bench.store);
    let store = restored(&text).expect("our own document");
    assert_eq!(store.applied().index, 50);
    assert_eq!(
        document(&store),
        text.replace(r#""rev":"6""#, r#""rev":"50""#).replace(r#""rev":"7""#, r#""rev":"50""#)
    );
    assert_eq!(store.digest(), store.recomputed_digest());
    let cake = store.election("cake").map(|election| election.to_json());
    assert_eq!(cake, bench.store.election("cake").map(|election| election.to_json()));
    assert_eq!(store.entry(&Key::Call(1)), None);
    assert_eq!(load::reloaded(&store), store);
    let again = restored(&format!(" {} ", text.replace(',', " ,\n"))).expect("the same with blanks");
    assert_eq!(again, store);
}

#[test]
fn parts_may_be_left_out() {
    assert_eq!(restored("{}").map(|store| store.len()), Ok(0));
    assert_eq!(restored(r#"{"users":null,"docs":[{"key":"k","value":1}]}"#).map(|store| store.len()), Ok(1));
}

#[test]
fn errors_have_paths() {
    let cases = [
        ("", "the value must be valid JSON"),
        ("[]", "the value must be an object"),
        (r#"{"roles":[]}"#, "roles is an unknown field"),
        (r#"{"users":{}}"#, "users must be an array"),
        (r#"{"users":[{"name":"a"},{}]}"#, "users[1].name is missing"),
        (r#"{"users":[{"name":"a"},{"name":"a"}]}"#, "users[1].name is given twice"),
        (r#"{"elections":[7]}"#, "elections[0] must be an object"),
        (r#"{"elections":[{"name":"e","choices":["x"],"votes":7}]}"#, "elections[0].votes must be an array"),
        (r#"{"docs":[{"key":"k"}]}"#, "docs[0].value is missing"),
        (r#"{"docs":[{"key":"k","value":1,"ttl":1}]}"#, "docs[0].ttl is an unknown field"),
        (r#"{"docs":[{"key":"k","value":1},{"key":"k","value":1}]}"#, "docs[1].key is given twice"),
    ];
    for (text, expected) in cases {
        assert_eq!(restored(text).map(|store| store.len()), Err(expected.into()), "{text}");
    }
    let votes = |votes: &str| {
        let text = format!(r#"{{"elections":[{{"name":"e","votes":[{votes}],"choices":["x"]}}]}}"#);
        restored(&text).map(|store| store.election("e").expect("there").votes())
    };
    let vote = r#"{"voter_name":"v","choice":"x"}"#;
    assert_eq!(votes(vote), Ok(1));
    assert_eq!(
        votes(&format!("{vote},{vote}")),
        Err("elections[0].votes[1].voter_name is given twice".into())
    );
    let unknown = votes(r#"{"voter_name":"v","choice":"y"}"#);
    assert_eq!(unknown, Err("elections[0].votes[0].choice is not one of the choices".into()));
}

#[test]
fn what_is_restored_can_be_loaded_again() {
    let deep = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        restored(&format!(r#"{{"elections":[{{"name":"e","choices":["x"],"x":{open}{close}}}]}}"#))
    };
    let store = deep(DEPTH_MOST - 1).expect("not too deep");
    assert_eq!(load::reloaded(&store), store);
    assert_eq!(
        deep(DEPTH_MOST).map(|store| store.len()),
        Err("elections[0] is nested deeper than 100 levels".into())
    );
    let odd =
        restored("{\"elections\":[{\"name\":\"e\",\"choices\":[\"x\"],\"a\\n\u{9b}\\\"\":\"\u{7f}\"}]}");
    let store = odd.expect("odd names are names");
    assert!(store.entries().all(|(_, value)| !value.contains(char::is_control)));
    assert_eq!(load::reloaded(&store), store);
}
