//! Every bound of the store, with its reason. A command beyond the bounds on sizes is refused before it is written. The bounds
//! may be raised, never lowered: entries that stand in a log must stay readable.

use crate::types::{Span, WallTime};

/// Names of users, groups, elections and choices, in bytes. They are map keys, and they stand in answers and in every vote. A
/// line of text is enough.
pub const NAME_MOST: usize = 256;

/// Keys of documents, in bytes: long enough for a path, and short enough for a request line.
pub const KEY_MOST: usize = 1024;

/// A revision that a client names, in bytes. Real revisions are shorter; a longer one matches nothing.
pub const REV_MOST: usize = 64;

/// One document, user or election, in bytes once compact: every node holds a record in memory and sends it whole.
pub const VALUE_MOST: usize = 1 << 20;

/// Choices of an election: each has a counter, and all of them stand in every answer about the election.
pub const CHOICES_MOST: usize = 1024;

/// Groups that an election admits, for the same reason.
pub const GROUPS_MOST: usize = 1024;

/// Operations in a batch: a batch is judged and applied in one step, and everything else waits meanwhile.
pub const OPERATIONS_MOST: usize = 1024;

/// Names, keys and values of a batch together, in bytes: it is one record, on one line, in one message.
pub const BATCH_MOST: usize = 4 << 20;

/// Levels of nesting in a value. Common readers, serde_json among them, stop at 128. The remaining levels are for the structure
/// around a value in a batch, a page or a whole-data document.
pub const DEPTH_MOST: usize = 100;

/// Idempotency keys that are remembered: each takes some hundred bytes. At the bound, a new key pushes out the oldest
/// one of the caller that has most; in available mode writes with a key are refused instead (P52).
pub const CALLS_MOST: usize = 1_000_000;

/// The time for which a call is remembered, in cluster time. It is longer than clients retry.
pub const CALLS_KEPT: Span = Span::millis(10 * 60 * 1000);

/// Calls that are forgotten with each record. A record adds at most one call, so more than one keeps up. The number is small,
/// so that no single record pays for all calls that expired in a quiet hour.
pub const FORGOTTEN_MOST: usize = 4;

/// The id of a value that lost a merge, in bytes: the longest key with its table and its position. Names in a ballot may be
/// escaped.
pub const CONFLICT_ID_MOST: usize = 2048;

/// Deletions that are remembered while a node of the topology may not have seen them: each takes some hundred bytes.
/// Beyond the bound the oldest are dropped, and only whole states are transferred until their positions are settled.
pub const TOMBSTONES_MOST: usize = 65_536;

/// Values that lost a merge and are kept next to the winning values while a node of the topology may not have seen them.
/// There is at most one per key and disk. Beyond the bound the oldest are dropped: the journal has their values, and later
/// merges treat them as seen.
pub const RIVALS_MOST: usize = 1_000_000;

/// A number in a value, in bytes. A double needs 17 digits. Jackson refuses more than 1,000 bytes, Python more than 4,300
/// digits.
pub const NUMBER_MOST: usize = 1000;

/// A lease's ttl. A ttl below a second could expire during a failover or on a busy disk. With a ttl beyond an hour, a dead
/// holder blocks a role for longer than people watch.
pub const TTL_LEAST: Span = Span::millis(1000);
pub const TTL_MOST: Span = Span::millis(60 * 60 * 1000);

/// A document's ttl. A new leader restarts the count when it begins to lead, and the log does not contain renewals. With a ttl
/// beyond a day, changes of leader would decide when the document ends.
pub const DOC_TTL_MOST: Span = Span::millis(24 * 60 * 60 * 1000);

/// Documents that end with one lease: they end in one record, at a few microseconds each, and everything else waits meanwhile.
/// The leader adds leases to such a record until their documents come to this number, so a record ends at most twice as many.
pub const TETHERED_MOST: usize = 10_000;

/// The default ttls, as in the original design.
pub const ROLE_TTL: Span = Span::millis(30_000);
pub const PROCESS_TTL: Span = Span::millis(45_000);

/// The time for which a call may wait for a role: proxies and clients give up on longer calls.
pub const WAIT_MOST: Span = Span::millis(60_000);

/// The priority of a waiting call: large enough for any scheme, and small enough that JSON readers do not round it.
pub const PRIORITY_MOST: i64 = 1_000_000;

/// The description of a holder or a process, in bytes: it stands in every list of them.
pub const METADATA_MOST: usize = 16 << 10;

/// Tokens stay below this number: up to it every JSON reader keeps integers exact.
pub const TOKENS_END: u64 = 1 << 53;

/// In available mode a token has its leader's id as its remainder modulo this number, so no two sides grant the same one. A
/// grant raises the last token by up to this much, as a millisecond of wall time does (P30): a larger number would outrun the
/// clock when many roles are granted.
pub const TOKEN_REMAINDERS: u64 = 1024;

/// The greatest value to which a restore raises the last token. Clocks beyond this value are not believed, so tokens have as
/// much room above it as above the greatest clock (P30).
pub const TOKEN_FLOOR_MOST: u64 = WallTime::MOST.0;

/// Clients' tokens: every node scans all of them when it creates one.
pub const TOKENS_MOST: usize = 1000;

/// Grants of a token: every call scans all of them.
pub const GRANTS_MOST: usize = 32;

/// A token's name, in bytes: one line that tells people who uses the token.
pub const TOKEN_NAME_MOST: usize = 128;

/// A token's ttl: ten years. For a longer time, use a token that stays.
pub const TOKEN_TTL_MOST: Span = Span::millis(10 * 365 * 24 * 60 * 60 * 1000);

/// Items in a page.
pub const PAGE_MOST: usize = 1000;

/// Text in a page, in bytes. A page has at least one item, which may have any size.
pub const PAGE_BYTES_MOST: usize = 4 << 20;

/// Rows that one page with a filter scans, and bytes of text that it reads for that: some milliseconds. A filter that matches
/// hardly any row continues on the next page, at the cost of another call.
pub const SCAN_MOST: usize = 10_000;
pub const SCAN_BYTES_MOST: usize = 1 << 20;
