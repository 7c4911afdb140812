//! The ranges of single numbers: the smallest and the largest value of each.

use serde_json::Value as Json;

use super::WrongValue;
use super::keys;
use super::layers::Merged;
use super::mistakes::Findings;

/// A time of more than a day is a mistaken unit.
const MS_MOST: u64 = 24 * 60 * 60 * 1000;

/// A longer interval between backups is not worth a schedule: such backups are made by hand.
const BACKUP_MS_MOST: u64 = 31 * MS_MOST;

/// The entries of a queue. A longer queue hides an overload instead of bounding it.
const ENTRIES_MOST: u64 = 100_000_000;

/// One message or body is held in memory as a whole, several times over.
const MESSAGE_BYTES_MOST: u64 = 1 << 30;

/// More memory than machines have: a mistaken unit.
const MEMORY_BYTES_MOST: u64 = 1 << 40;

/// The largest document of the HTTP contract, 1 MiB, with its key and its frame.
const BODY_BYTES_LEAST: u64 = (1 << 20) + (64 << 10);

/// The smallest buffer with which the HTTP server reads a head.
const HEAD_BYTES_LEAST: u64 = 8192;

/// More than any client sends: a larger head is an attack.
const HEAD_BYTES_MOST: u64 = 1 << 20;

/// The number of file descriptors that a machine gives to one process.
const CONNECTIONS_MOST: u64 = 1_000_000;

/// Every number among the settings, with its smallest and its largest value. The smallest is zero if zero means
/// "none".
pub const RANGES: [(&str, u64, u64); 40] = [
    ("snapshot_every", 1, ENTRIES_MOST),
    ("backup.every_ms", 100, BACKUP_MS_MOST),
    ("backup.keep", 1, 100_000),
    ("timing.heartbeat_ms", 1, MS_MOST),
    ("timing.dead_after_ms", 1, MS_MOST),
    ("timing.declare_ms", 1, MS_MOST),
    ("timing.stagger_ms", 0, MS_MOST),
    ("timing.lease_ms", 1, MS_MOST),
    ("timing.drift_percent", 0, 100),
    ("timing.window_ms", 1, MS_MOST),
    ("timing.stable_for_ms", 0, MS_MOST),
    ("timing.hold_ms", 0, MS_MOST),
    ("timing.hold_most_ms", 0, MS_MOST),
    ("timing.poll_ms", 1, MS_MOST),
    ("limits.batch", 1, ENTRIES_MOST),
    ("limits.batch_bytes", 1024, MESSAGE_BYTES_MOST),
    ("limits.inflight", 1, 10_000),
    ("limits.uncommitted", 1, ENTRIES_MOST),
    ("limits.uncommitted_bytes", 1024, MEMORY_BYTES_MOST),
    ("limits.reads", 1, ENTRIES_MOST),
    ("limits.keep", 0, ENTRIES_MOST),
    ("limits.keep_bytes", 0, MEMORY_BYTES_MOST),
    ("limits.ready_lag", 0, ENTRIES_MOST),
    ("limits.merge_bytes", 1024, MEMORY_BYTES_MOST),
    ("limits.conflicts", 1, ENTRIES_MOST),
    ("limits.conflict_bytes", 1024, MEMORY_BYTES_MOST),
    ("limits.state_bytes", 1024, MEMORY_BYTES_MOST),
    ("limits.connections", 1, CONNECTIONS_MOST),
    ("limits.connections_each", 0, CONNECTIONS_MOST),
    ("limits.requests", 1, CONNECTIONS_MOST),
    ("limits.address_percent", 1, 100),
    ("limits.body_bytes", BODY_BYTES_LEAST, MESSAGE_BYTES_MOST),
    ("limits.bodies_bytes", BODY_BYTES_LEAST, MEMORY_BYTES_MOST),
    ("limits.bodies_bytes_each", 0, MEMORY_BYTES_MOST),
    ("limits.head_bytes", HEAD_BYTES_LEAST, HEAD_BYTES_MOST),
    ("limits.header_timeout_ms", 1, MS_MOST),
    ("limits.body_timeout_ms", 1, MS_MOST),
    ("limits.answer_timeout_ms", 1, MS_MOST),
    ("limits.request_timeout_ms", 1, MS_MOST),
    ("limits.idle_timeout_ms", 1, MS_MOST),
];

pub fn check(settings: &Merged, findings: &mut Findings) {
    let table = settings.raw.table();
    for (path, least, most) in RANGES {
        let number = keys::at(&table, path).and_then(Json::as_u64);
        let number = number.expect("every range is that of a number");
        if !(least..=most).contains(&number) {
            let wrong = WrongValue::OutOfRange { found: number.to_string(), least, most };
            findings.spoil(settings.place(path), wrong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::raw::Raw;

    #[test]
    fn every_number_has_a_range_and_every_default_is_in_it() {
        let table = Raw::default().table();
        let mut numbers = keys::paths(&table);
        numbers.retain(|path| keys::at(&table, path).is_some_and(Json::is_number));
        let mut ranges: Vec<_> = RANGES.iter().map(|(path, ..)| path.to_string()).collect();
        numbers.sort();
        ranges.sort();
        assert_eq!(numbers, ranges);
        for (path, least, most) in RANGES {
            let default = keys::at(&table, path).and_then(Json::as_u64).unwrap();
            assert!((least..=most).contains(&default), "{path}");
        }
    }
}
