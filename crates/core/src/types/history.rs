//! Which history an index is of.

use std::fmt;
use std::str::FromStr;

/// A cluster that has taken in the data of another one has a history of its own from there on: what somebody remembers of the other
/// one, a revision or a place in the feed, names nothing here (P60). Zero: no such thing has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct History(u32);

impl History {
    pub const FIRST: History = History(0);

    /// That which begins with this attempt to take something in. Attempts are numbered at random.
    pub fn begun_by(restore: u64) -> History {
        let folded = (restore ^ (restore >> 32)) as u32;
        History(folded.max(1))
    }

    pub fn is_first(self) -> bool {
        self == History::FIRST
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Not what it says of the first one, which nobody writes down.
impl FromStr for History {
    type Err = ();

    fn from_str(text: &str) -> Result<History, ()> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u32::from_str_radix(text, 16).map_err(drop)?;
        if text.len() == 8 && digits && number > 0 { Ok(History(number)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_back() {
        for restore in [0, 1, 7, u64::MAX, 1 << 40] {
            let history = History::begun_by(restore);
            assert!(!history.is_first());
            assert_eq!(history.to_string().parse(), Ok(history));
        }
        for wrong in ["", "0", "00000000", "5f3a9c0", "5F3A9C01", "+f3a9c01", "5f3a9c011"] {
            assert_eq!(wrong.parse::<History>(), Err(()), "{wrong}");
        }
    }
}
