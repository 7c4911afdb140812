//! Bytes that peers and clients send.

use bytes::Bytes;
use eldest::wire::{self, Attached, Attachment, Challenge, ClusterHead, Sender};
use eldest_core::store::{Command, Loader, Store, merge_steps, restore_steps};
use eldest_core::types::{Entry, Epoch, NodeId, Position, Record, Span, Stamp, WallTime};
use eldest_storage::decode_all;
use serde_json::value::RawValue;

use crate::sums;

/// Three header lines, a challenge and a body. A message that can be read is written again as itself.
pub fn wire(bytes: &[u8]) {
    let mut parts = bytes.splitn(5, |byte| *byte == b'\n');
    let mut line = || str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default().to_string();
    let (cluster, sender, message, challenge) = (line(), line(), line(), line());
    let body = parts.next().unwrap_or_default();
    stays(&cluster, |text| ClusterHead::decode(text).ok().map(|head| head.encode()));
    stays(&sender, |text| Sender::decode(text).ok().map(|sender| sender.encode()));
    stays(&challenge, |text| Challenge::decode(text).map(|challenge| challenge.encode()));
    let _ = wire::needs_available_mode(&message);
    let Ok((attached, chain)) = attached(&message, body) else { return };
    if let Ok(read) = wire::decode(&message, attached) {
        let written = wire::encode(&read, chain);
        if let Ok((attached, chain)) = self::attached(&written, body) {
            let again = wire::decode(&written, attached).expect("what is written can be read");
            assert_eq!(wire::encode(&again, chain), written);
        }
    }
}

/// A value that was read is written and read as the same.
fn stays(text: &str, again: impl Fn(&str) -> Option<String>) {
    if let Some(written) = again(text) {
        assert_eq!(again(&written).as_ref(), Some(&written));
    }
}

fn attached(message: &str, body: &[u8]) -> Result<(Attached, u32), ()> {
    match wire::attachment(message).map_err(drop)? {
        Attachment::Lines { chain, .. } => {
            let batch = decode_all(Bytes::from(sums::log_lines(body, chain)), chain).map_err(drop)?;
            Ok((Attached::Lines(batch.records.into()), chain))
        }
        Attachment::Nothing => Ok((Attached::Nothing, 0)),
        Attachment::Snapshot | Attachment::Difference => Err(()),
    }
}

/// Lines of `name {payload}`, judged and applied in turn. The log's text of a command is read as the same
/// command, and a state that is written down is read as the same state.
pub fn commands(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut store = Store::default();
    for line in text.lines() {
        let (name, payload) = line.split_once(' ').unwrap_or((line, "{}"));
        let Ok(payload) = serde_json::from_str::<&RawValue>(payload) else { continue };
        let Ok(command) = Command::parse(name, payload) else { continue };
        let logged = command.to_payload(None);
        let read = Command::from_payload(&logged).expect("what is logged can be read");
        assert_eq!(read.to_payload(None), logged, "another command comes back");
        let (at, stamp) = place(store.applied().index + 1);
        let _ = store.judge(&command, None, stamp);
        let record = Record { position: at, stamp, entry: Entry::Client(logged) };
        store.apply(&record).expect("a command that was parsed can be applied");
    }
    let (at, stamp) = (store.applied(), store.stamp());
    let mut loader = Loader::default();
    for (key, value) in store.entries() {
        loader.add(key.table(), &key.name(), &value).expect("what is written can be read");
    }
    assert_eq!(loader.finish(at, stamp).digest(), store.digest());
}

/// Whole-data documents.
pub fn document(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (at, stamp) = place(1);
    let _ = merge_steps(text, 1);
    let Ok(steps) = restore_steps(text, 1) else { return };
    let mut restored = Store::default();
    for (payload, number) in steps.steps.into_iter().zip(1..) {
        let (position, stamp) = place(number);
        let record = Record { position, stamp, entry: Entry::Client(payload) };
        restored.apply(&record).expect("steps of a document that was read");
    }
    let store = Store::from_document(text, at, stamp).expect("the steps were made of it");
    let (mut expected, mut found) = (String::new(), String::new());
    store.to_document(&mut expected).expect("strings have room");
    restored.to_document(&mut found).expect("strings have room");
    assert_eq!(without_revisions(&found), without_revisions(&expected), "the steps give another state");
}

/// The revisions that the steps give are later. The document is compared as text, because a value may be a
/// number that no type can represent.
fn without_revisions(document: &str) -> String {
    let mut parts = document.split("\"rev\":\"");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once('"').map_or("", |(_, rest)| rest))
}

fn place(index: u64) -> (Position, Stamp) {
    let stamp = Stamp { wall: WallTime(1_796_000_000_000_000 + index), cluster: Span(index) };
    (Position::new(Epoch::new(1, NodeId(1)), index), stamp)
}
