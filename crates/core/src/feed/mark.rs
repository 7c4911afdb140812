//! Ids of events, and the places in a history that they name.
//!
//! ```text
//! 12        the only event of record 12; as a place: behind all of record 12
//! 12.2      the second of several
//! 7.1@12.2  the same in available mode, where two sides may have a record 12
//! 7.1@12.0  a part of the merge that ends at 12: a reader cannot go on from here
//! 12.2-5f3a9c01  the same after a restore of another cluster's data, because readers may know a record 12 of that cluster (P60)
//! ```

use std::fmt;

use crate::types::{Epoch, History, Index, Position};

/// A place among events: behind the n-th event of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub index: Index,
    pub n: u32,
}

impl Mark {
    /// The place behind a record, however many events it has.
    pub fn behind(index: Index) -> Mark {
        Mark { index, n: u32::MAX }
    }
}

/// The number of every part of a replacement. Events of a record count from one.
pub const PART: u32 = 0;

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    pub at: Position,
    /// The number of the event among several. The only event of a record has no number.
    pub n: Option<u32>,
    /// Whether histories may part, as in available mode. If so, the id contains the epoch.
    pub sides: bool,
    pub history: History,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sides {
            true => write!(f, "{}", self.at)?,
            false => write!(f, "{}", self.at.index)?,
        }
        if let Some(n) = self.n {
            write!(f, ".{n}")?;
        }
        if self.history.is_first() { Ok(()) } else { write!(f, "-{}", self.history) }
    }
}

/// The place where a reader wants to go on: behind the event with that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    pub mark: Mark,
    /// Set only where histories may part.
    pub epoch: Option<Epoch>,
    pub history: History,
}

impl Since {
    /// `None` for a text that is not an event id of a cluster in this mode.
    pub fn parse(text: &str, sides: bool) -> Option<Since> {
        let (text, history) = match text.split_once('-') {
            Some((text, history)) => (text, history.parse().ok()?),
            None => (text, History::FIRST),
        };
        let (epoch, place) = match (sides, text.split_once('@')) {
            (true, Some((epoch, place))) => (Some(epoch.parse().ok()?), place),
            (false, None) => (None, text),
            _ => return None,
        };
        let (index, n) = match place.split_once('.') {
            Some((index, n)) => (index, number(n).filter(|n| sides || *n > u64::from(PART))?),
            None => (place, u64::from(u32::MAX)),
        };
        let mark = Mark { index: number(index)?, n: u32::try_from(n).ok()? };
        Some(Since { mark, epoch, history })
    }
}

/// Reads digits alone: no sign, no blanks.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NodeId;

    #[test]
    fn ids_are_read_back() {
        let at = Position::new(Epoch::new(7, NodeId(1)), 12);
        let (first, later) = (History::FIRST, History::begun_by(0x5f3a_9c01));
        for (sides, n, history, text) in [
            (false, None, first, "12"),
            (false, Some(2), first, "12.2"),
            (true, None, first, "7.1@12"),
            (true, Some(2), first, "7.1@12.2"),
            (true, Some(PART), first, "7.1@12.0"),
            (false, None, later, "12-5f3a9c01"),
            (false, Some(2), later, "12.2-5f3a9c01"),
            (true, Some(2), later, "7.1@12.2-5f3a9c01"),
        ] {
            assert_eq!(Id { at, n, sides, history }.to_string(), text);
            let since = Since::parse(text, sides).expect(text);
            let mark = n.map_or(Mark::behind(12), |n| Mark { index: 12, n });
            assert_eq!((since.mark, since.epoch, since.history), (mark, sides.then_some(at.epoch), history));
            assert_eq!(Since::parse(text, !sides), None, "{text} belongs to the other mode");
        }
        for wrong in [
            "",
            "x",
            "-1",
            "+1",
            "12-",
            "12-1",
            "12-00000000",
            "12-5f3a9c01.2",
            "12.",
            "12.x",
            ".1",
            "1.2.3",
            "99999999999999999999",
            " 12",
        ] {
            assert_eq!(Since::parse(wrong, false), None, "{wrong}");
        }
        assert_eq!(Since::parse("12.0", false), None, "where nothing merges");
    }
}
