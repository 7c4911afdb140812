//! A directory that was once written in format 1 must always open.

use std::path::{Path, PathBuf};

use super::finding::{Doubt, Finding};
use super::meta::Boundary;
use super::recover::{Opened, Options, open};
use super::snapshot::SnapshotError;
use super::testing::{TempDir, image, record, restore, vote};
use crate::types::{
    Boot, Entry, Format, Founding, Incarnation, Index, KeyedCall, NodeId, Owner, Payload, Record, Span, Text,
};

const CLUSTER: &str = "fixture";
const NODE: NodeId = NodeId(2);
/// The snapshot is in the middle of the first segment.
const SNAPSHOT: Index = 8;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/disk-v1")
}

fn options(dir: &Path) -> Options {
    let options = Options::new(dir, CLUSTER, NODE, Boot(1));
    Options { adopt_copy: true, segment_bytes: 1024, ..options }
}

/// Three rounds with one record of each kind.
fn records() -> Vec<Record> {
    let founders = [(NodeId(1), Incarnation(0x11)), (NodeId(2), Incarnation(u64::MAX))].into_iter().collect();
    let payload = |kind, format, call, text: &str| {
        Entry::Client(Payload { kind, format: Format(format), call, text: Text::from(text) })
    };
    let call = Some(KeyedCall { key: u128::MAX - 1, body: 7, who: 0 });
    let round = [
        Entry::Lead { founding: Some(Box::new(Founding { founders, ..Founding::default() })) },
        payload(1, 1, None, "{\"name\":\"ann\",\"group\":\"ä\\n\"}"),
        payload(100, 1, call, "[{\"type\":1},{\"type\":4}]"),
        payload(7, 2, None, "{}"),
        Entry::Rejoin { node: NodeId(3), incarnation: Incarnation(0x33) },
        Entry::ServiceDown {
            owner: Owner::Merge,
            ttl: Span(5_000_000),
            reason: Text::from("two \"sides\"\n"),
        },
        Entry::ServiceUp { owner: Owner::Merge },
        Entry::Lead { founding: None },
    ];
    let entries = round.iter().cycle().take(3 * round.len());
    entries.zip(1u64..).map(|(entry, index)| record(index.div_ceil(8), index, entry.clone())).collect()
}

#[test]
fn format_1_opens() {
    let dir = TempDir::new();
    restore(&image(&fixture()), dir.path());
    let Opened { recovered, lines, snapshots, findings, .. } = open(&options(dir.path())).unwrap();
    assert_eq!(findings, [Finding::Doubtful(Doubt::Copied)]);
    assert!(recovered.records == records());
    assert_eq!(recovered.base, Boundary::default().meta);
    assert_eq!((recovered.vote.promise, recovered.vote.formed), (vote(5).promise, true));
    assert!(!recovered.vote.admitted, "a copy is another disk");
    assert_eq!(lines.chain_at(24), Some(0xf958_b0e9));
    let snapshots = snapshots.lock().unwrap();
    let newest = snapshots.newest().map(|newest| (newest.index(), Some(newest.chain)));
    assert_eq!(newest, Some((SNAPSHOT, lines.chain_at(SNAPSHOT))));
    let mut rows = Vec::new();
    let row = |table: &str, key: &str, value: &str| {
        rows.push(format!("{table} {key} {value}"));
        Ok::<_, SnapshotError>(())
    };
    snapshots.load(row).unwrap();
    assert_eq!(rows, ["doc a \"b\" {\"x\":1}"]);
}
