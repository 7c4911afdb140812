//! Tests of the store: of each rule, and at random.

mod access;
mod batches;
mod bonds;
mod calls;
mod differences;
mod document;
mod fixed;
mod garbage;
mod journal;
mod lease_lists;
pub mod leases;
mod load;
mod meetings;
mod merging;
mod parse;
mod quota;
mod random;
mod restore;
mod rng;
mod rules;
mod secrets;
mod sides;
mod tables;
mod views;

use serde_json::value::RawValue;

use super::*;
use crate::types::{Entry, Epoch, KeyedCall, NodeId, Position, Record, Span, Stamp, WallTime};

/// A store with a clock, and with the log of its records.
#[derive(Clone, Debug, Default)]
struct Bench {
    store: Store,
    now: Stamp,
}

impl Bench {
    fn new() -> Bench {
        let now = Stamp { wall: WallTime(1_796_000_000_000_000), cluster: Span(0) };
        Bench { store: Store::default(), now }
    }

    fn pass(&mut self, span: Span) {
        self.now.wall.0 += span.0;
        self.now.cluster = self.now.cluster + span;
    }

    fn record(&self, entry: Entry) -> Record {
        let position = Position::new(Epoch::new(7, NodeId(1)), self.store.applied().index + 1);
        Record { position, stamp: self.now, entry }
    }

    fn apply(&mut self, command: &Command, call: Option<KeyedCall>) -> Applied {
        let record = self.record(Entry::Client(command.to_payload(call)));
        self.store.apply(&record).expect("readable")
    }

    fn apply_entry(&mut self, entry: Entry) -> Applied {
        let record = self.record(entry);
        self.store.apply(&record).expect("readable")
    }

    /// The result of a single command: the reply, or the rejection's code and text.
    fn run(&mut self, storage_cmd: &str, payload: &str) -> Result<String, String> {
        let command = command(storage_cmd, payload);
        let applied = self.apply(&command, None);
        assert_eq!(applied.changes.is_empty(), applied.outcome.is_err());
        told(applied)
    }

    fn ok(&mut self, storage_cmd: &str, payload: &str) -> String {
        self.run(storage_cmd, payload).expect("accepted")
    }

    fn entries(&self) -> Vec<(Key, String)> {
        self.store.entries().collect()
    }
}

fn told(applied: Applied) -> Result<String, String> {
    match applied.outcome {
        Ok(reply) => Ok(reply.json.to_string()),
        Err(rejection) => Err(format!("{}: {rejection}", rejection.code())),
    }
}

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("JSON")
}

fn command(storage_cmd: &str, payload: &str) -> Command {
    Command::parse(storage_cmd, raw(payload)).expect("a command")
}

fn call(key: u128, body: u64) -> Option<KeyedCall> {
    Some(KeyedCall { key, body, who: 0 })
}

/// Some users, an election with a vote, and some documents.
fn furnished() -> Bench {
    let mut bench = Bench::new();
    bench.ok("CreateUser", r#"{"name":"ann","group":"staff","age":31}"#);
    bench.ok("CreateUser", r#"{"name":"bob"}"#);
    bench.ok("CreateElection", r#"{"name":"cake","choices":["plum","apple"]}"#);
    bench.ok("CreateElection", r#"{"name":"chair","choices":["x"],"groups":["staff","board"]}"#);
    bench.ok("VoteElection", r#"{"election_name":"cake","voter_name":"bob","choice":"plum"}"#);
    bench.ok("PutDoc", r#"{"key":"conf/a","value":{"n":1.50,"b":[true,null]}}"#);
    bench.ok("PutDoc", r#"{"key":"conf/b","value":"\u0007"}"#);
    bench
}

impl Store {
    /// Invariants of every state: its size is counted correctly, and no document outlives its lease (P54, P55).
    fn check_sound(&self) {
        assert_eq!(self.digest(), self.recomputed_digest());
        assert_eq!(self.bytes(), self.recounted_bytes());
        assert_eq!(self.loose_docs(), Vec::<crate::types::Text>::new());
    }

    /// The digest, recomputed from all rows.
    fn recomputed_digest(&self) -> u64 {
        let tables = [
            self.users.recomputed_digest(),
            self.elections.recomputed_digest(),
            self.votes.table().recomputed_digest(),
            self.docs.table().recomputed_digest(),
            self.roles.recomputed_digest(),
            self.processes.recomputed_digest(),
            self.access.recomputed_digest(),
            super::state::token_digest(self.last_token),
            super::state::history_digest(self.history),
            self.idempotency_keys.table().recomputed_digest(),
            self.merging.as_ref().map_or(0, |sides| {
                let tables = [
                    sides.tombstones.recomputed_digest(),
                    sides.rivals.recomputed_digest(),
                    sides.conflicts.recomputed_digest(),
                ];
                tables.into_iter().fold(0, u64::wrapping_add)
            }),
        ];
        tables.into_iter().fold(0, u64::wrapping_add)
    }
}
