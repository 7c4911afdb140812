//! A backup is read in pieces of any size and checked to its last byte. It cannot be used before that.
//!
//! The rows become the steps of a restore while they are read. No record is written before `finish`, so a damaged or cut
//! backup changes no data.

use std::fmt;

use crc32fast::Hasher;

use super::form::{BackupHead, Home, NAME};
use crate::store::{self, BadRow, Guard, RowSteps, Steps};

/// The bound is that of a snapshot: no call that a node accepts comes near this length.
const LINE_BYTES_MOST: usize = 64 << 20;

/// The reason why a backup is refused as a whole.
#[derive(Debug)]
pub enum BadBackup {
    Head,
    /// The line is not a row.
    Line(u64),
    /// The row is not allowed there.
    Row(u64, BadRow),
    /// The row does not sort after the row before.
    Order(u64),
    TooLong(u64),
    Checksum,
    /// The head has another number of rows.
    Count,
    Unfinished,
    AfterEnd,
    /// The rows together are not allowed.
    Whole(BadRow),
}

impl BadBackup {
    /// The number of the wrong line, if a single line is wrong. The head is line 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            BadBackup::Head => Some(1),
            BadBackup::Line(line)
            | BadBackup::Row(line, _)
            | BadBackup::Order(line)
            | BadBackup::TooLong(line) => Some(*line),
            _ => None,
        }
    }

    /// Whether the rows exceed the size that the state may have.
    pub fn is_too_large(&self) -> bool {
        matches!(self, BadBackup::Row(_, BadRow::TooLarge { .. }) | BadBackup::Whole(BadRow::TooLarge { .. }))
    }
}

impl fmt::Display for BadBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBackup::Head => write!(f, "it does not begin with `{NAME}` and a description of the backup"),
            BadBackup::Line(line) => write!(f, "line {line} does not have a table, a key and a value"),
            BadBackup::Row(line, error) => write!(f, "line {line}: {error}"),
            BadBackup::Order(line) => write!(f, "line {line} is not in order"),
            BadBackup::TooLong(line) => write!(f, "line {line} has more than {LINE_BYTES_MOST} bytes"),
            BadBackup::Checksum => {
                write!(f, "number of rows or checksum differ from its last line")
            }
            BadBackup::Count => write!(f, "the number of rows differs from its first line"),
            BadBackup::Unfinished => write!(f, "it ends too early"),
            BadBackup::AfterEnd => write!(f, "it continues after its last line"),
            BadBackup::Whole(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadBackup {}

#[derive(Debug)]
pub struct BackupReader {
    /// The beginning of a line whose end has not arrived yet.
    pending: Vec<u8>,
    crc: Hasher,
    rows: u64,
    head: Option<BackupHead>,
    /// The cluster that would restore the backup. `None` if the reader only checks the backup. The cluster is compared with
    /// the first line, because the rows of another cluster are read differently: its leases do not exist here.
    home: Option<Home>,
    /// Table and key of the previous row.
    last: (String, String),
    steps: RowSteps,
    ended: bool,
}

impl BackupReader {
    pub fn new(steps: RowSteps, home: Home) -> BackupReader {
        BackupReader { home: Some(home), ..BackupReader::of(steps) }
    }

    pub fn only_checking() -> BackupReader {
        BackupReader::of(RowSteps::only_checking())
    }

    fn of(steps: RowSteps) -> BackupReader {
        let (pending, crc, last) = (Vec::new(), Hasher::new(), Default::default());
        BackupReader { pending, crc, rows: 0, head: None, home: None, last, steps, ended: false }
    }

    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), BadBackup> {
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

    /// The restore of this backup. A backup of another cluster replaces data only if `replaces_other` is set.
    pub fn finish(self, replaces_other: bool) -> Result<(BackupHead, Steps), BadBackup> {
        let elsewhere = self.is_elsewhere();
        let head = self.head.filter(|_| self.ended && self.pending.is_empty());
        let head = head.ok_or(BadBackup::Unfinished)?;
        // Without an id, another cluster that was started later under the same name could not be distinguished.
        let is_own = !elsewhere && head.cluster_id.is_some();
        let guard = Guard {
            time: head.wall(),
            is_own,
            is_foreign: !is_own,
            only_if_empty: elsewhere && !replaces_other,
            ..Guard::default()
        };
        let steps = self.steps.finish(guard).map_err(BadBackup::Whole)?;
        Ok((head, steps))
    }

    fn is_elsewhere(&self) -> bool {
        let of = |home: &Home| self.head.as_ref().is_none_or(|head| head.is_of(home));
        self.home.as_ref().is_some_and(|home| !of(home))
    }

    /// The number of the current line. The head is line 1.
    fn number(&self) -> u64 {
        self.rows + 1 + u64::from(self.head.is_some())
    }

    fn pend(&mut self, bytes: &[u8]) -> Result<(), BadBackup> {
        if self.pending.len() + bytes.len() > LINE_BYTES_MOST {
            return Err(BadBackup::TooLong(self.number()));
        }
        if self.ended && !bytes.is_empty() {
            return Err(BadBackup::AfterEnd);
        }
        self.pending.extend_from_slice(bytes);
        // A text that is not a backup is refused before its first line ends.
        let begins = NAME.as_bytes().iter().zip(&self.pending).all(|(name, byte)| name == byte);
        if self.head.is_none() && !begins { Err(BadBackup::Head) } else { Ok(()) }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), BadBackup> {
        if self.ended {
            return Err(BadBackup::AfterEnd);
        }
        let number = self.number();
        let text = std::str::from_utf8(line).ok().and_then(|text| text.strip_suffix('\n'));
        let text = text.ok_or(BadBackup::Line(number))?;
        if self.head.is_none() {
            self.head = Some(BackupHead::read(text).ok_or(BadBackup::Head)?);
            if self.is_elsewhere() {
                self.steps.leave_bound_docs();
            }
        } else if let Some(last) = text.strip_prefix("end ") {
            return self.end(last);
        } else {
            self.row(number, text)?;
        }
        self.crc.update(line);
        Ok(())
    }

    fn row(&mut self, number: u64, text: &str) -> Result<(), BadBackup> {
        let (table, key, value) = store::entry_in(text).ok_or(BadBackup::Line(number))?;
        let before = (self.last.0.as_str(), self.last.1.as_str());
        if self.rows > 0 && before >= (table, key.as_str()) {
            return Err(BadBackup::Order(number));
        }
        self.steps.add(table, &key, value).map_err(|error| BadBackup::Row(number, error))?;
        if self.last.0 != table {
            self.last.0 = table.to_string();
        }
        self.last.1 = key;
        self.rows += 1;
        Ok(())
    }

    fn end(&mut self, last: &str) -> Result<(), BadBackup> {
        self.crc.update(format!("end {} ", self.rows).as_bytes());
        let crc = self.crc.clone().finalize();
        if last != format!("{} {crc:08x}", self.rows) {
            return Err(BadBackup::Checksum);
        }
        self.ended = true;
        let counted = self.head.as_ref().is_some_and(|head| head.rows == self.rows);
        if counted { Ok(()) } else { Err(BadBackup::Count) }
    }
}
