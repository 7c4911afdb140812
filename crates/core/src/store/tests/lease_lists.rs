//! Roles and processes are listed page by page, and the cost of a page is bounded.

use super::leases::{acquire, lease_command, register, text};
use super::*;
use crate::store::encoding::{METADATA_MOST, SCAN_BYTES_MOST};

/// The longest description of its capabilities that a process may register.
const CAPABILITIES: usize = METADATA_MOST;

#[test]
fn lists_go_on_where_they_stopped() {
    let mut bench = Bench::new();
    for name in ["a/1", "a/2", "b"] {
        bench.lease(&acquire(name, "i")).expect("free");
        bench.lease(&register(name, "cms")).expect("new");
    }
    let names = |names: &[&str]| names.iter().map(|name| text(name)).collect::<Vec<_>>();
    assert_eq!(bench.store.roles("a/", None, 1), (names(&["a/1"]), Some(text("a/1"))));
    assert_eq!(bench.store.roles("a/", Some("a/1"), 1), (names(&["a/2"]), None));
    let all = ProcessFilter::default();
    assert_eq!(bench.store.processes(&all, None, 2), (names(&["a/1", "a/2"]), Some(text("a/2"))));
    assert_eq!(bench.store.processes(&all, Some("a/2"), 2), (names(&["b"]), None));
    let other = ProcessFilter { identifier: Some("cmt"), ..all };
    assert_eq!(bench.store.processes(&other, None, 2), (Vec::new(), None));
}

/// A page with a filter has a bounded cost, however few rows it finds.
#[test]
fn a_filter_looks_at_so_much_and_says_where_to_go_on() {
    let mut bench = Bench::new();
    let ids: Vec<String> =
        (0..2 * SCAN_BYTES_MOST / CAPABILITIES).map(|number| format!("{number:04}")).collect();
    for id in &ids {
        let process = NewProcess {
            identifier: text("cms"),
            role: None,
            capabilities: Some(format!("[\"{}\"]", "x".repeat(CAPABILITIES - 4)).into()),
            metadata: None,
            ttl: TTL_LEAST,
            secret: None,
        };
        let operation = LeaseOperation::Register { id: text(id), process: process.into() };
        bench.lease(&lease_command(operation)).expect("new");
    }
    bench.lease(&register("last", "cms")).expect("new");
    let filter = ProcessFilter { capability: Some("gpu"), ..ProcessFilter::default() };
    let half = text(&ids[ids.len() / 2 - 1]);
    assert_eq!(bench.store.processes(&filter, None, 10), (Vec::new(), Some(half.clone())));
    let (found, next) = bench.store.processes(&filter, Some(&half), 10);
    assert_eq!((found, next), (Vec::new(), ids.last().map(|id| text(id))));
    assert_eq!(bench.store.processes(&filter, ids.last().map(String::as_str), 10), (Vec::new(), None));
    // The size of the shown rows is bounded, too: a page has 4 MiB.
    let (shown, next) = bench.store.processes(&ProcessFilter::default(), None, 1000);
    assert_eq!((shown.len(), next), (ids.len() + 1, None));
}

#[test]
fn capabilities_are_found_in_lists_and_objects() {
    let can = |capabilities: &str, wanted: &str| {
        let mut bench = Bench::new();
        let process = NewProcess {
            identifier: text("cms"),
            role: Some(text("slave")),
            capabilities: Some(text(capabilities)),
            metadata: None,
            ttl: TTL_LEAST,
            secret: None,
        };
        let operation = LeaseOperation::Register { id: text("p"), process: process.into() };
        bench.lease(&lease_command(operation)).expect("new");
        let filter = ProcessFilter { capability: Some(wanted), role: Some("slave"), identifier: None };
        !bench.store.processes(&filter, None, 1).0.is_empty()
    };
    assert!(can(r#"["gpu","cpu"]"#, "cpu") && !can(r#"["gpu"]"#, "cpu"));
    assert!(can(r#"{"gpu":true,"slots":0}"#, "gpu") && can(r#"{"slots":0}"#, "slots"));
    assert!(!can(r#"{"gpu":false,"cpu":null}"#, "gpu") && !can(r#"{"cpu":null}"#, "cpu"));
    assert!(can(r#""gpu""#, "gpu") && !can("7", "7"));
}
