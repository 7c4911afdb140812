//! A state transfer as text, in the form in which one node sends it to another.
//!
//! ```text
//! eldest-difference 1 part 000000009c1f03aa {"epoch":…}     `part` or `whole`; digest and boundary of the sender's state
//! doc "greeting" {"at":"7.1@12","value":"hello"}            the store's lines
//! end 1 9c1f03aa                                            number of lines; crc32 of every byte before its digits
//! ```
//!
//! The boundary tells the receiver which history it takes over. The digest is that of the sender's whole state, even if only
//! a part is sent. So an override that was computed against another state is detected: its result does not have that digest.
//! A merge makes a new state, for which no digest is known.
//!
//! The receiver reads the text as it arrives, and uses no part of it before the last line, which shows that the text is
//! complete.

use std::fmt;
use std::io::{self, Write};

use crc32fast::Hasher;

use super::summing::Summing;
use crate::meta::Boundary;
use crate::replica::StateTransfer;
use crate::store::{self, Difference, Loader, Unreadable};
use crate::types::Digest;

const NAME: &str = "eldest-difference 1";
/// An entry that is not in the state transfer does not exist, and the receiver drops its own.
const WHOLE: &str = "whole";
/// An entry that is not in the state transfer stays as the receiver has it.
const PART: &str = "part";
/// The bound is that of a snapshot: no call that a node accepts comes near this length.
const LINE_BYTES_MOST: usize = 64 << 20;

/// A state transfer, with the boundary and the digest of the sender's state.
#[derive(Debug)]
pub struct SentDifference {
    pub boundary: Boundary,
    pub digest: Digest,
    pub difference: Difference,
}

/// The reason why a state transfer is refused as a whole.
#[derive(Debug)]
pub enum BadDifference {
    Head,
    Line(u64),
    Entry(Unreadable),
    TooLong,
    Checksum,
    Unfinished,
    AfterEnd,
    /// An entry is at a position that the sender's own vector does not cover.
    Stray,
}

impl fmt::Display for BadDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadDifference::Head => {
                write!(f, "it does not begin with `{NAME}`, its extent, a digest and a boundary")
            }
            BadDifference::Line(line) => write!(f, "line {line} does not have a table, a key and a value"),
            BadDifference::Entry(error) => error.fmt(f),
            BadDifference::TooLong => write!(f, "a line has more than {LINE_BYTES_MOST} bytes"),
            BadDifference::Checksum => write!(f, "number of lines or checksum differ"),
            BadDifference::Unfinished => write!(f, "it ends too early"),
            BadDifference::Stray => write!(f, "an entry belongs to no history that its sender includes"),
            BadDifference::AfterEnd => write!(f, "it continues after its last line"),
        }
    }
}

impl std::error::Error for BadDifference {}

impl From<SentDifference> for StateTransfer {
    fn from(handed: SentDifference) -> StateTransfer {
        let SentDifference { boundary: Boundary { meta, chain, origin }, digest, difference } = handed;
        StateTransfer { meta, origin, chain, digest, difference }
    }
}

impl SentDifference {
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = Summing::new(out);
        let extent = if self.difference.is_whole() { WHOLE } else { PART };
        writeln!(out, "{NAME} {extent} {} {}", self.digest, self.boundary.to_json())?;
        let mut count = 0u64;
        let mut line = String::new();
        for (key, value) in self.difference.entries() {
            line.clear();
            store::write_entry(&mut line, &key, &value).expect("writing to a String cannot fail");
            out.write_all(line.as_bytes())?;
            count += 1;
        }
        out.end(count)
    }

    /// The length of the text in bytes. The text is generated once only to count it: the sender needs the length before it
    /// sends the first byte, and a stored text could be as large as the state.
    pub fn length(&self) -> u64 {
        let mut counting = Counting(0);
        self.write(&mut counting).expect("counting lines cannot fail");
        counting.0
    }
}

struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the text in pieces of any size. It keeps the parsed entries, not the text. The caller bounds their total size,
/// because all of them are in memory until they are merged.
#[derive(Debug)]
pub struct Receiving {
    /// The beginning of a line whose end has not arrived yet.
    pending: Vec<u8>,
    crc: Hasher,
    lines: u64,
    head: Option<Head>,
    loader: Loader,
    ended: bool,
}

#[derive(Debug)]
struct Head {
    whole: bool,
    digest: Digest,
    boundary: Boundary,
}

impl Default for Receiving {
    fn default() -> Receiving {
        let (pending, crc, loader) = (Vec::new(), Hasher::new(), Difference::loader());
        Receiving { pending, crc, lines: 0, head: None, loader, ended: false }
    }
}

impl Receiving {
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), BadDifference> {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(at + 1);
            bytes = rest;
            if self.pending.is_empty() {
                self.line(line)?;
            } else {
                self.pend(line)?;
                let line = std::mem::take(&mut self.pending);
                self.line(&line)?;
            }
        }
        self.pend(bytes)
    }

    fn pend(&mut self, bytes: &[u8]) -> Result<(), BadDifference> {
        if self.pending.len() + bytes.len() > LINE_BYTES_MOST {
            return Err(BadDifference::TooLong);
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// The state transfer, if its last line has matched. No entry may be used before that, because the checksum comes last.
    pub fn finish(self) -> Result<SentDifference, BadDifference> {
        match self.head {
            Some(Head { whole, digest, boundary }) if self.ended && self.pending.is_empty() => {
                let difference = Difference::loaded(whole, self.loader).map_err(BadDifference::Entry)?;
                // This is checked here, because the core cannot undo a state transfer once it has received it.
                match boundary.meta.vector.as_ref().is_some_and(|vector| difference.is_within(vector)) {
                    true => Ok(SentDifference { boundary, digest, difference }),
                    false => Err(BadDifference::Stray),
                }
            }
            _ => Err(BadDifference::Unfinished),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), BadDifference> {
        if self.ended {
            return Err(BadDifference::AfterEnd);
        }
        let text = std::str::from_utf8(line).ok().and_then(|text| text.strip_suffix('\n'));
        let text = text.ok_or(BadDifference::Line(self.lines + 1))?;
        if self.head.is_none() {
            self.head = Some(head(text).ok_or(BadDifference::Head)?);
        } else if let Some(last) = text.strip_prefix("end ") {
            return self.end(last);
        } else {
            self.lines += 1;
            let (table, key, value) = store::entry_in(text).ok_or(BadDifference::Line(self.lines))?;
            self.loader.add(table, &key, value).map_err(BadDifference::Entry)?;
        }
        self.crc.update(line);
        Ok(())
    }

    fn end(&mut self, last: &str) -> Result<(), BadDifference> {
        self.crc.update(format!("end {} ", self.lines).as_bytes());
        let crc = self.crc.clone().finalize();
        self.ended = last == format!("{} {crc:08x}", self.lines);
        if self.ended { Ok(()) } else { Err(BadDifference::Checksum) }
    }
}

fn head(text: &str) -> Option<Head> {
    let (extent, rest) = text.strip_prefix(NAME)?.strip_prefix(' ')?.split_once(' ')?;
    let (digest, boundary) = rest.split_once(' ')?;
    let whole = match extent {
        WHOLE => true,
        PART => false,
        _ => return None,
    };
    let digest = digest.parse().ok()?;
    Some(Head { whole, digest, boundary: Boundary::from_json(boundary)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    use crate::store::{Command, Store};
    use crate::types::{Entry, Epoch, KeyedCall, NodeId, Position, Record, Stamp, Vector};

    fn handed() -> SentDifference {
        let mut store = Store::mergeable();
        let vector: Vector = "7.1@6;1-6.2@9".parse().unwrap();
        let commands = [
            ("CreateUser", r#"{"name":"ann","group":"a"}"#),
            ("CreateElection", r#"{"name":"e","choices":["x","y"]}"#),
            ("VoteElection", r#"{"election_name":"e","voter_name":"ann","choice":"x"}"#),
            ("PutDoc", r#"{"key":"a \"key\" \\","value":"x y"}"#),
            ("PutDoc", r#"{"key":"é","value":[1, 2]}"#),
            ("DeleteDoc", r#"{"key":"é"}"#),
        ];
        for (index, (name, payload)) in (1..).zip(commands) {
            let payload = RawValue::from_string(payload.to_string()).unwrap();
            let call = Some(KeyedCall { key: index.into(), body: 1, who: 0 });
            let entry = Entry::Client(Command::parse(name, &payload).unwrap().to_payload(call));
            let position = Position::new(Epoch::new(7, NodeId(1)), index);
            store.apply(&Record { position, stamp: Stamp::default(), entry }).unwrap().outcome.unwrap();
        }
        let base = "7.1@2".parse().unwrap();
        let difference = store.difference(&base).unwrap();
        let mut boundary = Boundary { chain: 77, origin: 5, ..Boundary::default() };
        boundary.meta.vector = Some(vector);
        SentDifference { boundary, digest: Digest::new(store.digest()), difference }
    }

    fn text(handed: &SentDifference) -> Vec<u8> {
        let mut text = Vec::new();
        handed.write(&mut text).unwrap();
        text
    }

    fn read(text: &[u8], pieces: usize) -> Result<SentDifference, BadDifference> {
        let mut receiving = Receiving::default();
        text.chunks(pieces).try_for_each(|piece| receiving.take(piece))?;
        receiving.finish()
    }

    #[test]
    fn it_arrives_as_it_left_in_pieces_of_any_size() {
        let handed = handed();
        let sent = text(&handed);
        assert_eq!(handed.length(), sent.len() as u64);
        assert!(sent.starts_with(b"eldest-difference 1 part "));
        assert!(handed.difference.len() >= 3, "{:?}", handed.difference);
        for pieces in [1, 2, 7, sent.len()] {
            let read = read(&sent, pieces).unwrap();
            assert_eq!((&read.boundary, read.digest), (&handed.boundary, handed.digest));
            assert_eq!(read.difference, handed.difference);
            assert_eq!(text(&read), sent);
        }
    }

    #[test]
    fn everything_arrives_as_everything() {
        let mut handed = handed();
        let (store, _) =
            Store::mergeable().overridden(&handed.difference, Position::ZERO, Stamp::default()).unwrap();
        handed.difference = store.whole();
        let sent = text(&handed);
        assert!(sent.starts_with(b"eldest-difference 1 whole "));
        let read = read(&sent, sent.len()).unwrap();
        assert!(read.difference.is_whole());
        assert_eq!(read.difference, handed.difference);
    }

    #[test]
    fn whatever_is_cut_or_changed_is_refused() {
        let sent = text(&handed());
        for length in 0..sent.len() {
            assert!(read(&sent[..length], 64).is_err(), "{length} bytes of {}", sent.len());
        }
        for at in 0..sent.len() {
            for bit in [0, 5, 7] {
                let mut changed = sent.clone();
                changed[at] ^= 1 << bit;
                assert!(read(&changed, 64).is_err(), "bit {bit} of byte {at}");
            }
        }
        let more = [&sent[..], b"doc \"b\" 1\n"].concat();
        assert!(matches!(read(&more, 64), Err(BadDifference::AfterEnd)));
        let mut stray = handed();
        stray.boundary.meta.vector = Some("7.1@4;1-6.2@9".parse().unwrap());
        assert!(matches!(read(&text(&stray), 64), Err(BadDifference::Stray)));
        assert!(matches!(read(&[&sent[..], b"x"].concat(), 64), Err(BadDifference::Unfinished)));
    }
}
