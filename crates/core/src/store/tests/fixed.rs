//! The digest of a fixed state: nodes of two builds compare their digests (P25).

use super::*;
use crate::store::tables::TABLES;
use crate::types::{DIGESTS, Vector};

/// The digest of the state below, by each version of the computation. A change to the computation adds a line here and raises
/// `DIGESTS`. Otherwise a cluster under upgrade would treat its sound nodes as diverged, and stop them.
const BY_VERSION: [(u32, u64); 1] = [(1, 14_924_438_102_196_383_522)];

/// One row of each kind, with all its optional members.
const ROWS: [(&str, &str, &str); 22] = [
    ("user", "ann", r#"{"at":"7.1@11","value":{"name":"ann","group":"staff","age":31}}"#),
    ("user", "bob", r#"{"at":"3.1@7","value":{"name":"bob"}}"#),
    (
        "election",
        "cake",
        r#"{"at":"1.4@4","value":{"name":"cake","choices":["x","y"],"groups":["g"],"end_date":"2026-11-30T01:00:00Z"}}"#,
    ),
    ("vote", r#"["cake","bob"]"#, r#"{"at":"3.1@8","value":"x"}"#),
    ("doc", "é", r#"{"at":"1.3@2","value":{"b":[1,2],"a":1.50}}"#),
    ("doc", "l", r#"{"at":"7.1@7","value":1,"ttl_ms":7000}"#),
    ("doc", "m", r#"{"at":"1.3@9","value":"m","with":"role/s","token":1796000000010242}"#),
    (
        "role",
        "s",
        "{\"at\":\"1.3@8\",\"value\":{\"instance_id\":\"a\",\"ttl_ms\":30000,\"address\":\"a:1\",\
         \"metadata\":{\"z\":1},\"secret_hash\":\"2790dab617eb04d87132faa179ac4de2\",\"token\":1796000000010242,\"since_us\":1796000000010146,\"aged\":true}}",
    ),
    (
        "role",
        "t",
        r#"{"at":"1.3@8","value":{"instance_id":"b","ttl_ms":30000,"token":1796000000009219,"since_us":1796000000008861}}"#,
    ),
    (
        "process",
        "b",
        r#"{"at":"1.1@7","value":{"identifier":"t","ttl_ms":45000,"token":1796000000005121,"since_us":1796000000004370,"aged":true}}"#,
    ),
    (
        "process",
        "c",
        "{\"at\":\"1.2@2\",\"value\":{\"identifier\":\"r\",\"role\":\"w\",\"capabilities\":[\"x\"],\
         \"metadata\":{\"z\":1},\"ttl_ms\":45000,\"token\":1796000000001026,\"since_us\":1796000000000357}}",
    ),
    (
        "access",
        "0000000000000008",
        "{\"at\":\"7.1@9\",\"value\":{\"name\":\"t8\",\
         \"hash\":\"aad70b8add4a0fd22f6827545789b8435f8dcf6cba5696a71ae49141b9b8bbd3\",\"grants\":[\"read docs\"],\
         \"ttl_ms\":60000,\"made_us\":1796000000000000}}",
    ),
    ("token", "last", "1796000000010242"),
    ("history", "mark", "\"5f3a9c01\""),
    (
        "call",
        "00000000000000000000000000000009",
        r#"{"at":"2.2@7","body":"0000000000000001","since_us":8000,"created":[0]}"#,
    ),
    ("call", "00000000000000000000000000000016", r#"{"at":"1.1@8","body":"0000000000000001","since_us":0}"#),
    ("side", "bounds", r#"{"settled":"1.1@1","untold":"2.2@1","calls_us":0,"calls_at":"0.0@0"}"#),
    ("tomb", "doc:n", r#"{"at":"4.3@8","deleted":true}"#),
    ("tomb", "doc:o", r#"{"at":"3.1@6","deleted":true,"ended":true}"#),
    ("rival", "doc:l:2.2@4", r#"{"at":"2.2@4","value":{"n":2},"ttl_ms":5000}"#),
    ("rival", "doc:é:3.3@8", r#"{"at":"3.3@8","deleted":true}"#),
    (
        "conflict",
        "doc:l:2.3@7",
        r#"{"at":"3.1@9","value":{"lost":{"at":"2.3@7","value":0,"ttl_ms":5000},"kept":{"at":"1.1@3","value":1},"wall_us":1796000000007440}}"#,
    ),
];

fn state() -> Store {
    let mut loader = Loader::mergeable(Vector::default());
    for (table, name, value) in ROWS {
        loader.add(table, name, value).unwrap_or_else(|error| panic!("{table} {name}: {error}"));
    }
    loader.finish(Position::ZERO, Stamp::default())
}

#[test]
fn another_computation_has_another_version() {
    let computed = (DIGESTS, state().digest());
    assert_eq!(
        BY_VERSION.last(),
        Some(&computed),
        "digests are computed otherwise: raise DIGESTS, and add a line"
    );
    assert!(BY_VERSION.iter().map(|(version, _)| *version).eq(1..=DIGESTS));
}

#[test]
fn each_kind_of_row_is_there() {
    let mut missing: Vec<_> = TABLES.iter().filter(|table| ROWS.iter().all(|row| row.0 != **table)).collect();
    missing.sort();
    assert!(missing.is_empty(), "{missing:?}");
}
