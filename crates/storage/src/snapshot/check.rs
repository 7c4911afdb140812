//! Checks the lines of a file: its grammar, its order, its count and its checksum.
//!
//! This module reads no file: the lines come from a file at the start, from files that are merged, or from a peer's stream, in
//! pieces of any size, and the same rules apply to all of them.
//!
//! The order is part of the format: merging relies on it, and it makes sure that a key has one line in a file. The count and
//! the checksum are at the end, so a file is written in one pass, and a file without its end is never complete.

use std::cmp::Ordering;
use std::io::{self, BufRead, Read};
use std::mem;

use crc32fast::Hasher;

use super::change::LINE_BYTES_MAX;
use super::error::Why;
use super::row::Row;
use crate::Boundary;
use crate::types::Index;

const NAME: &str = "eldest-snapshot";

/// The version of the format. A different version is a different kind of file.
const VERSION: &str = "1";

/// The first line.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The state that the lines change. Zero is the empty state.
    pub from: Index,
    /// The state after the changes.
    pub boundary: Boundary,
}

impl Head {
    pub fn encode(&self) -> String {
        format!("{NAME} {VERSION} from={} {}\n", self.from, self.boundary.to_json())
    }

    fn parse(line: &str) -> Result<Head, Why> {
        let text = line.strip_suffix('\n').and_then(|text| text.strip_prefix(NAME)).ok_or(Why::Head)?;
        let (version, text) =
            text.strip_prefix(' ').and_then(|text| text.split_once(' ')).ok_or(Why::Head)?;
        if version != VERSION {
            return Err(Why::Version);
        }
        let (from, boundary) =
            text.strip_prefix("from=").and_then(|text| text.split_once(' ')).ok_or(Why::Head)?;
        let from = from.parse().map_err(|_| Why::Head)?;
        let boundary = Boundary::from_json(boundary).ok_or(Why::Boundary)?;
        if boundary.index() <= from { Err(Why::Stretch) } else { Ok(Head { from, boundary }) }
    }
}

/// The last line up to the checksum, which covers every byte before its own eight digits.
pub(super) fn end(rows: u64) -> String {
    format!("end {rows} ")
}

pub(super) fn checksum(crc: Hasher) -> String {
    format!("{:08x}\n", crc.finalize())
}

#[derive(Debug)]
pub(super) enum Step {
    Head(Head),
    /// See `Check::row`.
    Row,
    /// The last line, and the whole file is good.
    End,
}

#[derive(Debug)]
pub(super) enum Trouble {
    Io(io::Error),
    Bad(Why),
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Head,
    Rows {
        whole: bool,
    },
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct Check {
    stage: Stage,
    crc: Hasher,
    lines: u64,
    rows: u64,
    row: Row,
    previous: Row,
    /// The beginning of a line whose end has not arrived yet. Between lines it is a buffer to reuse.
    pending: Vec<u8>,
}

impl Check {
    /// Takes the next line from `input`. Returns `None` if the input ends before the line does.
    pub fn advance(&mut self, input: &mut impl BufRead) -> Result<Option<Step>, Trouble> {
        // A peer may send a stream without line ends: it is refused before it fills the memory.
        let room = LINE_BYTES_MAX - self.pending.len();
        input.by_ref().take(room as u64).read_until(b'\n', &mut self.pending).map_err(Trouble::Io)?;
        if self.pending.last() != Some(&b'\n') {
            let too_long = self.pending.len() == LINE_BYTES_MAX;
            return if too_long { Err(Trouble::Bad(Why::LineTooLong)) } else { Ok(None) };
        }
        self.lines += 1;
        let line = String::from_utf8(mem::take(&mut self.pending)).map_err(|_| Trouble::Bad(Why::NotUtf8))?;
        self.judge(line).map(Some).map_err(Trouble::Bad)
    }

    /// The last row taken.
    pub fn row(&self) -> &Row {
        &self.row
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of the wrong line: the last line taken, or the one that has begun since.
    pub fn line(&self) -> u64 {
        self.lines + u64::from(!self.pending.is_empty())
    }

    pub fn is_untouched(&self) -> bool {
        self.line() == 0
    }

    fn judge(&mut self, line: String) -> Result<Step, Why> {
        match self.stage {
            Stage::Head => self.judge_head(line),
            // No table is called `end`, so this cannot be a row.
            Stage::Rows { .. } if line.starts_with("end ") => self.judge_end(&line),
            Stage::Rows { whole } => self.judge_row(line, whole),
            Stage::Ended => Err(Why::AfterEnd),
        }
    }

    fn judge_head(&mut self, line: String) -> Result<Step, Why> {
        let head = Head::parse(&line)?;
        self.crc.update(line.as_bytes());
        self.stage = Stage::Rows { whole: head.from == 0 };
        Ok(Step::Head(head))
    }

    fn judge_row(&mut self, line: String, whole: bool) -> Result<Step, Why> {
        self.crc.update(line.as_bytes());
        let row = Row::parse(line)?;
        // Two rows and one buffer are enough: each new line takes the memory of the row before the previous one.
        let before = mem::replace(&mut self.previous, mem::replace(&mut self.row, row));
        self.pending = before.recycle();
        if self.rows > 0 && self.row.place().cmp(&self.previous.place()) != Ordering::Greater {
            return Err(Why::Order);
        }
        // A whole state has nothing to delete from. A deletion there was not written by this program.
        if whole && self.row.value().is_none() {
            return Err(Why::DeletionInWhole);
        }
        self.rows += 1;
        Ok(Step::Row)
    }

    fn judge_end(&mut self, line: &str) -> Result<Step, Why> {
        let end = end(self.rows);
        let digits = line.strip_prefix(&end).ok_or(Why::Count)?;
        self.crc.update(end.as_bytes());
        if digits != checksum(mem::take(&mut self.crc)) {
            return Err(Why::Checksum);
        }
        self.stage = Stage::Ended;
        Ok(Step::End)
    }
}
