//! Entries are written, and loaded again.

use super::*;

pub fn reloaded(store: &Store) -> Store {
    let mut loader = Loader::default();
    for (key, value) in store.entries() {
        loader.add(key.table(), &key.name(), &value).expect("an entry of ours");
    }
    loader.finish(store.applied(), store.stamp())
}

#[test]
fn entries_are_lines_sorted_by_table_and_name() {
    let mut bench = furnished();
    bench.apply(&command("PutDoc", r#"{"key":"z","value":"é"}"#), call(0xab, 0xcd));
    let lines: Vec<_> =
        bench.store.entries().map(|(key, value)| format!("{} {} {value}", key.table(), key.name())).collect();
    let expected = [
        r#"call 000000000000000000000000000000ab {"at":"7.1@8","body":"00000000000000cd","since_us":0,"created":[0]}"#,
        r#"doc conf/a {"at":"7.1@6","value":{"n":1.50,"b":[true,null]}}"#,
        r#"doc conf/b {"at":"7.1@7","value":"\u0007"}"#,
        r#"doc z {"at":"7.1@8","value":"é"}"#,
        r#"election cake {"at":"7.1@3","value":{"name":"cake","choices":["plum","apple"]}}"#,
        r#"election chair {"at":"7.1@4","value":{"name":"chair","choices":["x"],"groups":["staff","board"]}}"#,
        r#"user ann {"at":"7.1@1","value":{"name":"ann","group":"staff","age":31}}"#,
        r#"user bob {"at":"7.1@2","value":{"name":"bob"}}"#,
        r#"vote ["cake","bob"] {"at":"7.1@5","value":"plum"}"#,
    ];
    assert_eq!(lines, expected);
    for (key, value) in bench.store.entries() {
        assert_eq!(bench.store.entry(&key), Some(value));
    }
    assert_eq!(bench.store.entry(&Key::User("eve".into())), None);
}

#[test]
fn a_loaded_store_is_equal_and_goes_on_alike() {
    let mut bench = furnished();
    bench.apply(&command("PutDoc", r#"{"key":"z","value":1}"#), call(5, 6));
    let mut other = Bench { store: reloaded(&bench.store), now: bench.now };
    assert_eq!(other.store, bench.store);
    assert_eq!(other.store.digest(), bench.store.digest());
    let vote = command("VoteElection", r#"{"election_name":"cake","voter_name":"ann","choice":"plum"}"#);
    assert_eq!(bench.apply(&vote, None), other.apply(&vote, None));
    assert_eq!(other.store, bench.store);
    assert_eq!(other.store.election("cake").expect("there").votes(), 2);
}

#[test]
fn what_is_no_entry_is_an_error() {
    let election = r#"{"at":"7.1@3","value":{"name":"e","choices":["x"]}}"#;
    let cases = [
        ("pet", "k", "{}"),
        ("", "", ""),
        ("doc", "k", ""),
        ("doc", "k", "{}"),
        ("doc", "k", r#"{"at":"7.1@3"}"#),
        ("doc", "k", r#"{"at":"7.1","value":1}"#),
        ("doc", "k", r#"{"at":"7.1@3","value":1,"x":1}"#),
        ("doc", "k", r#"{"at":"7.1@3","value":1"#),
        ("doc", "", r#"{"at":"7.1@3","value":1}"#),
        ("doc", "a\nb", r#"{"at":"7.1@3","value":1}"#),
        ("user", "ann", r#"{"at":"7.1@3","value":{"name":"bob"}}"#),
        ("user", "ann", r#"{"at":"7.1@3","value":"ann"}"#),
        ("election", "f", election),
        ("vote", "e", r#"{"at":"7.1@3","value":"x"}"#),
        ("vote", r#"["e","v"]"#, r#"{"at":"7.1@3","value":"y"}"#),
        ("vote", r#"["e","v"]"#, r#"{"at":"7.1@3","value":1}"#),
        ("vote", r#"["f","v"]"#, r#"{"at":"7.1@3","value":"x"}"#),
        ("vote", r#"["e", "v"]"#, r#"{"at":"7.1@3","value":"x"}"#),
        ("call", "5", r#"{"at":"7.1@3","body":"1","since_us":0}"#),
        ("call", "00000000000000000000000000000005", r#"{"at":"7.1@3","body":"x","since_us":0}"#),
        ("call", "00000000000000000000000000000005", r#"{"at":"7.1@3","body":"1","since_us":-1}"#),
    ];
    for (table, key, value) in cases {
        let mut loader = Loader::default();
        loader.add("election", "e", election).expect("sound");
        let error = loader.add(table, key, value).expect_err(value);
        assert!(matches!(error, Unreadable::Table(_) | Unreadable::Entry { .. }), "{error}");
    }
}

#[test]
fn nothing_is_there_twice() {
    let bench = {
        let mut bench = furnished();
        bench.apply(&command("PutDoc", r#"{"key":"z","value":1}"#), call(5, 6));
        bench
    };
    for (key, value) in bench.store.entries() {
        let mut loader = Loader::from(bench.store.clone());
        loader.add(key.table(), &key.name(), &value).expect_err("twice");
    }
}
