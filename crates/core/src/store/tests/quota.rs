//! The size of the state, and the commands that may increase it (P55).

use super::sides::{Side, meet};
use super::*;
use crate::types::Text;

const NONE: [(Text, u64); 0] = [];

fn outgrown(bench: &Bench, quota: Quota, storage_cmd: &str, payload: &str) -> Option<Reason> {
    bench.store.outgrown(&command(storage_cmd, payload), bench.now, quota)
}

fn big(key: &str, bytes: usize) -> String {
    format!(r#"{{"key":"{key}","value":"{}"}}"#, "x".repeat(bytes))
}

#[test]
fn a_full_state_takes_what_makes_it_no_larger() {
    let mut bench = furnished();
    bench.ok("PutDoc", &big("k", 2_000));
    let used = bench.store.bytes();
    let quota = Quota { most: used, areas: &NONE };
    let full = Some(Reason::StateFull { area: None, used, most: used });
    for (storage_cmd, payload) in [
        ("PutDoc", big("k", 2_001)),
        ("PutDoc", big("l", 1)),
        ("CreateUser", r#"{"name":"eve"}"#.into()),
        ("CreateElection", r#"{"name":"tea","choices":["x"]}"#.into()),
        ("VoteElection", r#"{"election_name":"cake","voter_name":"ann","choice":"plum"}"#.into()),
    ] {
        assert_eq!(outgrown(&bench, quota, storage_cmd, &payload), full, "{storage_cmd}");
    }
    for (storage_cmd, payload) in [
        ("PutDoc", big("k", 2_000)),
        ("PutDoc", big("k", 10)),
        ("DeleteDoc", r#"{"key":"k"}"#.into()),
        ("RemoveUser", r#"{"name":"ann"}"#.into()),
    ] {
        assert_eq!(outgrown(&bench, quota, storage_cmd, &payload), None, "{storage_cmd}");
    }
    // A batch is judged by its final result. A state beyond its limit can still shrink.
    let swap = Command::parse_batch(raw(&format!(
        r#"[{{"storage_cmd":"DeleteDoc","payload":{{"key":"k"}}}},{{"storage_cmd":"PutDoc","payload":{}}}]"#,
        big("l", 2_000)
    )));
    let swap = swap.expect("a batch");
    assert_eq!(bench.store.outgrown(&swap, bench.now, quota), None);
    let less = Quota { most: used / 2, areas: &NONE };
    assert_eq!(outgrown(&bench, less, "PutDoc", &big("k", 1_999)), None);
    assert!(outgrown(&bench, less, "PutDoc", &big("k", 2_001)).is_some());
}

#[test]
fn an_area_is_full_by_itself() {
    let mut bench = Bench::new();
    bench.ok("PutDoc", &big("conf/a", 1_000));
    bench.ok("PutDoc", &big("jobs/a", 1_000));
    bench.ok("PutDoc", &big("conf", 1_000));
    let used = bench.store.bytes_in("conf/");
    assert_eq!(used, bench.store.bytes_in("jobs/"));
    let areas = [("conf/".into(), used)];
    let quota = Quota { most: u64::MAX, areas: &areas };
    let full = Some(Reason::StateFull { area: Some("conf/".into()), used, most: used });
    assert_eq!(outgrown(&bench, quota, "PutDoc", &big("conf/b/c", 1)), full);
    for key in ["jobs/b", "conf", "configuration/a"] {
        assert_eq!(outgrown(&bench, quota, "PutDoc", &big(key, 3_000)), None, "{key}");
    }
    assert_eq!(outgrown(&bench, quota, "PutDoc", &big("conf/a", 900)), None);
    bench.ok("DeleteDoc", r#"{"key":"conf/a"}"#);
    assert_eq!(bench.store.bytes_in("conf/"), 0);
    assert_eq!(outgrown(&bench, quota, "PutDoc", &big("conf/b", 900)), None);
}

/// The command is short, but the value that it restores may be long.
#[test]
fn what_a_merge_overrode_is_put_back_where_there_is_room() {
    let mut sides = Side::group(&[1, 2], |side| side.put("a/k", "0"));
    sides[0].put("a/k", "1");
    sides[1].put("a/k", &format!("\"{}\"", "x".repeat(5_000)));
    assert_eq!(meet(&mut sides, 0, 1), 1);
    let store = &sides[0].store;
    let lost = store.conflicts("", None, 1).items[0].id.clone();
    let back = command("ApplyConflict", &format!(r#"{{"id":"{lost}"}}"#));
    let (used, now) = (store.bytes(), Bench::new().now);
    let most = used + 4_000;
    let full = Some(Reason::StateFull { area: None, used, most });
    assert_eq!(store.outgrown(&back, now, Quota { most, areas: &NONE }), full);
    assert_eq!(store.outgrown(&back, now, Quota { most: used + 6_000, areas: &NONE }), None);
    let (areas, used) = ([("a/".into(), 4_000)], store.bytes_in("a/"));
    let full = Some(Reason::StateFull { area: Some("a/".into()), used, most: 4_000 });
    assert_eq!(store.outgrown(&back, now, Quota { most: u64::MAX, areas: &areas }), full);
}

/// The size depends neither on the past of a row nor on the marks that the replica's own records set.
#[test]
fn the_size_follows_from_what_is_said() {
    let mut bench = furnished();
    assert_eq!(bench.store.bytes(), bench.store.recounted_bytes());
    assert_eq!(load::reloaded(&bench.store).bytes(), bench.store.bytes());
    bench.lease(&leases::acquire("r", "a")).expect("free");
    let before = bench.store.bytes();
    let leases = vec![(leases::role("r"), bench.token("r"))];
    let age = LeaseOperation::Age { aged: leases, renewed: HeldLeases::new() };
    bench.lease(&leases::lease_command(age)).expect("young");
    assert_eq!(bench.store.bytes(), before, "an ageing makes nothing larger");
}
