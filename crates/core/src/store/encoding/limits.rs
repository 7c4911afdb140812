//! Every bound of the store, and what it is for. Beyond the bounds on sizes a command is refused before it is written;
//! they may be raised, never lowered: what stands in a log must stay readable.

use crate::types::{Span, WallTime};

/// Names of users, groups, elections and choices, in bytes. They are map keys, stand in answers and in every vote: a line
/// of text is room enough.
pub const NAME_MOST: usize = 256;

/// Keys of documents, in bytes: a path, and still short enough for a request line.
pub const KEY_MOST: usize = 1024;

/// A revision that a client names, in bytes. Ours are shorter; anything longer matches nothing.
pub const REV_MOST: usize = 64;

/// One document, user or election, in bytes once compact: a record is held in memory by every node and sent whole.
pub const VALUE_MOST: usize = 1 << 20;

/// Choices of an election: each has a counter, and all of them stand in every answer about it.
pub const CHOICES_MOST: usize = 1024;

/// Groups that an election admits, for the same reason.
pub const GROUPS_MOST: usize = 1024;

/// Operations in a batch: it is judged and applied in one go, while everything else waits.
pub const OPERATIONS_MOST: usize = 1024;

/// Names, keys and values of a batch together, in bytes: it is one record, on one line, in one message.
pub const BATCH_MOST: usize = 4 << 20;

/// Levels of nesting in a value. Common readers, serde_json among them, stop at 128; the rest is for what stands around
/// a value in a batch, a page or a whole-data document.
pub const DEPTH_MOST: usize = 100;

/// Idempotency keys remembered: some hundred bytes each. At the bound writes with a key are put off.
pub const CALLS_MOST: usize = 1_000_000;

/// How long a call is remembered, in cluster time: longer than clients retry.
pub const CALLS_KEPT: Span = Span::millis(10 * 60 * 1000);

/// Calls forgotten with each record. A record adds one at most, so that more than one keeps up; few, so that no record
/// pays for all that lapsed in a quiet hour.
pub const FORGOTTEN_MOST: usize = 4;

/// The name of what lost, in bytes: the longest key with its table and its position; names in a ballot may be escaped.
pub const CONFLICT_ID_MOST: usize = 2048;

/// Deletions remembered while a node of the topology may not know of them: some hundred bytes each. Beyond that the
/// oldest go, and a node that was away for so long is given the whole state.
pub const TOMBSTONES_MOST: usize = 65_536;

/// Values that lost in a merge and that are remembered beside the ones that won, while a node of the topology may not know of them:
/// at most one of a key for each disk. Beyond this the oldest go: what they said is in the journal, and in later merges it
/// counts as known.
pub const RIVALS_MOST: usize = 1_000_000;

/// A number in a value, in bytes. A double needs 17 digits; Jackson stops at 1,000 bytes, Python at 4,300 digits.
pub const NUMBER_MOST: usize = 1000;

/// A lease's ttl. Below a second a failover or a busy disk would end it; beyond an hour a dead holder blocks a role
/// for longer than anybody watches.
pub const TTL_LEAST: Span = Span::millis(1000);
pub const TTL_MOST: Span = Span::millis(60 * 60 * 1000);

/// A document's ttl. A leader counts anew from when it begins to lead, and the log says nothing of renewals: beyond a day, changes of
/// leader would decide when it ends.
pub const DOC_TTL_MOST: Span = Span::millis(24 * 60 * 60 * 1000);

/// Documents that end with one lease: they go in one record, at a few microseconds each, while everything else waits. The leader
/// ends fewer leases at a time where they have many, so that no record takes more than this with it.
pub const TETHERED_MOST: usize = 10_000;

/// Unless told: the seeds' own.
pub const ROLE_TTL: Span = Span::millis(30_000);
pub const PROCESS_TTL: Span = Span::millis(45_000);

/// How long a call may wait for a role: proxies and clients give up on calls that take longer.
pub const WAIT_MOST: Span = Span::millis(60_000);

/// Of those who wait: room for any scheme, and no number that JSON readers round.
pub const PRIORITY_MOST: i64 = 1_000_000;

/// What a holder or a process may say of itself, in bytes: it stands in every list of them.
pub const METADATA_MOST: usize = 16 << 10;

/// Tokens stay below: up to there every JSON reader keeps whole numbers exact.
pub const TOKENS_END: u64 = 1 << 53;

/// The greatest token that a restore raises the last one to. No clock that shows more is believed, so above it there is as much room as
/// the clock leaves (P30).
pub const TOKEN_FLOOR_MOST: u64 = WallTime::MOST.0;

/// Tokens of clients: every node looks at all of them when it makes one.
pub const TOKENS_MOST: usize = 1000;

/// Grants of a token: all of them are looked at with every call.
pub const GRANTS_MOST: usize = 32;

/// A token's name, in bytes: a line that says to people whose it is.
pub const TOKEN_NAME_MOST: usize = 128;

/// A token's ttl: ten years. Who wants more means one that stays.
pub const TOKEN_TTL_MOST: Span = Span::millis(10 * 365 * 24 * 60 * 60 * 1000);

/// Items in a page.
pub const PAGE_MOST: usize = 1000;

/// Text in a page, in bytes. A page holds one item at least, whatever its size.
pub const PAGE_BYTES_MOST: usize = 4 << 20;

/// Rows that one page with a filter looks at, and text that it reads to look into them, in bytes: some milliseconds. Who asks for what
/// hardly any row has goes on with the next page, and pays for it with another call.
pub const SCAN_MOST: usize = 10_000;
pub const SCAN_BYTES_MOST: usize = 1 << 20;
