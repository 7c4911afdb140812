//! One record, one line of text.
//!
//! ```text
//! 12 7.1 9f3a01c2 1763737161123456 5000000 key=<32 hex>:<16 hex> fmt=2 1|{"name":"ann"}
//! index epoch checksum wall_us cluster_us [call] [format, unless 1] type|text
//! ```
//!
//! The checksum covers the previous line's checksum and the whole line without its own. So a log that checks has neither a gap
//! nor a record of another history in it. `docs/disk-format.md` is the grammar.
//!
//! The index and the epoch come first, so that a reader knows the position of a line even if the rest of it is damaged. The
//! text is last and takes the rest of the line, so it needs no length and no escapes.

use std::fmt;

use super::digits::{Cursor, hex8, push_decimal, push_hex};
use super::protocol_records;
use crate::types::{
    Entry, Epoch, Format, KeyedCall, NodeId, Payload, Position, Record, Span, Stamp, Text, WallTime,
};

/// The checksum field and the blank after it.
const CHECKSUM_BYTES: usize = 9;

/// A payload of this format does not mention its format. A line that mentions it is refused, because each record has one
/// form.
const FIRST_FORMAT: Format = Format(1);

/// The reason why a line is not the expected record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// This field is missing or not in the form that the writer uses.
    Field(&'static str),
    Checksum {
        found: u32,
        expected: u32,
    },
    NotUtf8,
    /// The text does not fit the protocol's own type.
    Entry(u16),
    /// The line checks, but is at the wrong position.
    Order(Position),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Field(name) => write!(f, "unreadable {name}"),
            LineError::Checksum { found, expected } => {
                write!(f, "checksum {found:08x}, expected {expected:08x}")
            }
            LineError::NotUtf8 => write!(f, "not UTF-8"),
            LineError::Entry(kind) => write!(f, "the text does not fit type {kind}"),
            LineError::Order(position) => write!(f, "{position} does not follow the record before it"),
        }
    }
}

impl std::error::Error for LineError {}

/// Appends the record's line to `out`. Returns its checksum, which the next line is chained to.
pub fn encode(record: &Record, chain: u32, out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    push_decimal(out, record.index());
    out.push(b' ');
    push_decimal(out, record.epoch().counter);
    out.push(b'.');
    push_decimal(out, u64::from(record.epoch().leader.0));
    out.push(b' ');
    let place = out.len();
    out.extend_from_slice(b"00000000 ");
    push_decimal(out, record.stamp.wall.0);
    out.push(b' ');
    push_decimal(out, record.stamp.cluster.0);
    out.push(b' ');
    match &record.entry {
        Entry::Client(payload) => push_payload(out, payload),
        entry => protocol_records::push(out, entry),
    }
    // The checksum covers what comes before and after its own place, so it is written into that place at the end.
    let rest = place + CHECKSUM_BYTES;
    assert!(!out[rest..].contains(&b'\n'), "callers compact their JSON: a record is one line");
    let crc = checksum(chain, &out[start..place], &out[rest..]);
    out[place..place + 8].copy_from_slice(&hex8(crc));
    out.push(b'\n');
    crc
}

/// The entry as `/catch_up` shows it: `type|JSON`.
pub fn seed_text(entry: &Entry) -> String {
    let mut out = Vec::new();
    match entry {
        Entry::Client(payload) => return format!("{}|{}", payload.kind, payload.text),
        entry => protocol_records::push(&mut out, entry),
    }
    String::from_utf8(out).expect("strings and numbers format as text")
}

fn push_payload(out: &mut Vec<u8>, payload: &Payload) {
    // A client's record under a type of the protocol would be read back as a record of the protocol. With `fmt=` every type
    // is a client's.
    let first = payload.format == FIRST_FORMAT;
    assert!(!(first && protocol_records::is_own(payload.kind)), "a client's record has its own type");
    if let Some(call) = payload.call {
        out.extend_from_slice(b"key=");
        push_hex(out, call.key, 32);
        out.push(b':');
        push_hex(out, u128::from(call.body), 16);
        if call.who != 0 {
            out.push(b':');
            push_hex(out, u128::from(call.who), 8);
        }
        out.push(b' ');
    }
    if !first {
        out.extend_from_slice(b"fmt=");
        push_decimal(out, u64::from(payload.format.0));
        out.push(b' ');
    }
    push_decimal(out, u64::from(payload.kind));
    out.push(b'|');
    out.extend_from_slice(payload.text.as_bytes());
}

fn checksum(chain: u32, before: &[u8], after: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&hex8(chain));
    hasher.update(before);
    hasher.update(after);
    hasher.finalize()
}

/// Reads one line, with or without its newline, that follows a line with the checksum `chain`. After the checksum has
/// matched, an error means that this program cannot read the record, and not that the line is damaged.
pub fn decode(line: &[u8], chain: u32) -> Result<(Record, u32), LineError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut cursor = Cursor::new(line);
    let position = position(&mut cursor)?;
    let before = &line[..line.len() - cursor.rest().len()];
    let crc = written_checksum(&mut cursor)?;
    let expected = checksum(chain, before, cursor.rest());
    if crc != expected {
        return Err(LineError::Checksum { found: crc, expected });
    }
    let stamp = stamp(&mut cursor)?;
    let entry = entry(&mut cursor)?;
    Ok((Record { position, stamp, entry }, crc))
}

/// The checksum in a line, right or wrong. It is for callers that have checked the line already.
pub fn checksum_in(line: &[u8]) -> Option<u32> {
    let mut cursor = Cursor::new(line);
    position(&mut cursor).ok()?;
    written_checksum(&mut cursor).ok()
}

/// The position in a line, right or wrong. Reading it is cheap, so callers do it before they check the line.
pub fn position_in(line: &[u8]) -> Option<Position> {
    position(&mut Cursor::new(line)).ok()
}

fn position(cursor: &mut Cursor<'_>) -> Result<Position, LineError> {
    let index = cursor.number().ok_or(LineError::Field("index"))?;
    let mut epoch = || {
        cursor.take(b" ")?;
        let counter = cursor.number()?;
        cursor.take(b".")?;
        let leader = u32::try_from(cursor.decimal()?).ok()?;
        cursor.take(b" ")?;
        Some(Epoch::new(counter, NodeId(leader)))
    };
    Ok(Position::new(epoch().ok_or(LineError::Field("epoch"))?, index))
}

fn written_checksum(cursor: &mut Cursor<'_>) -> Result<u32, LineError> {
    let crc = cursor.hex8().filter(|_| cursor.take(b" ").is_some());
    crc.ok_or(LineError::Field("checksum"))
}

fn stamp(cursor: &mut Cursor<'_>) -> Result<Stamp, LineError> {
    let mut time = |name| {
        let time = cursor.decimal().filter(|_| cursor.take(b" ").is_some());
        time.ok_or(LineError::Field(name))
    };
    Ok(Stamp { wall: WallTime(time("wall time")?), cluster: Span(time("cluster time")?) })
}

fn entry(cursor: &mut Cursor<'_>) -> Result<Entry, LineError> {
    let call = call(cursor)?;
    let format = format(cursor)?;
    let kind = cursor.decimal().and_then(|kind| u16::try_from(kind).ok());
    let kind = kind.filter(|_| cursor.take(b"|").is_some()).ok_or(LineError::Field("type"))?;
    // More than one line was passed. A text never has a newline.
    if cursor.rest().contains(&b'\n') {
        return Err(LineError::Field("end"));
    }
    let text = std::str::from_utf8(cursor.rest()).map_err(|_| LineError::NotUtf8)?;
    if format == FIRST_FORMAT && protocol_records::is_own(kind) {
        return protocol_records::parse(kind, text).filter(|_| call.is_none()).ok_or(LineError::Entry(kind));
    }
    Ok(Entry::Client(Payload { kind, format, call, text: Text::from(text) }))
}

fn call(cursor: &mut Cursor<'_>) -> Result<Option<KeyedCall>, LineError> {
    if cursor.take(b"key=").is_none() {
        return Ok(None);
    }
    let mut call = || {
        let key = cursor.hex(32)?;
        cursor.take(b":")?;
        let body = cursor.hex(16)? as u64;
        let who = match cursor.take(b":") {
            Some(()) => cursor.hex(8)? as u32,
            None => 0,
        };
        cursor.take(b" ")?;
        Some(KeyedCall { key, body, who })
    };
    call().map(Some).ok_or(LineError::Field("key"))
}

fn format(cursor: &mut Cursor<'_>) -> Result<Format, LineError> {
    if cursor.take(b"fmt=").is_none() {
        return Ok(FIRST_FORMAT);
    }
    let number = cursor.decimal().and_then(|number| u16::try_from(number).ok());
    // `fmt=1` would be a second form of the same record.
    let format = number.map(Format).filter(|format| *format != FIRST_FORMAT);
    format.filter(|_| cursor.take(b" ").is_some()).ok_or(LineError::Field("format"))
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
