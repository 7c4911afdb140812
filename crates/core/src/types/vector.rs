//! The records that a history includes: for each epoch, the highest index.
//!
//! A state that includes a record includes everything that its leader's log had before it. So a vector is closed downwards, two
//! vectors join by the greater index of each epoch, and "nothing of mine is unknown to you" is a comparison of vectors, no
//! matter how often and in which order sides have met.
//!
//! For example, after two sides went on alone from 5.1@40 (P34 has the drawing):
//!
//! ```text
//! {5.1: 42} and {5.1: 40, 6.2: 43}     neither includes the other: two histories that have to be merged
//! {5.1: 42, 6.2: 43}                   the two joined; it covers 5.1@1 to 5.1@42 and 6.2@1 to 6.2@43
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::position::{Epoch, Index, Misspelt, Position, number};

/// Counters further apart than this belong to different beginnings: a disk that may have forgotten its epochs draws its next
/// counter at random, in steps of this size.
pub const BEGINNING: u64 = 1 << 20;

/// The highest included index of each epoch. Records that every disk of the topology has had are stored as a few settled
/// stretches instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vector {
    epochs: BTreeMap<Epoch, Index>,
    settled: Vec<Settled>,
}

/// All epochs from one counter on, up to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Settled {
    first: u64,
    top: Position,
}

impl Settled {
    /// In an epoch below the top every index counts as covered: every disk has had everything that was written there.
    fn covers(self, position: Position) -> bool {
        let below = position.epoch < self.top.epoch && position.epoch.counter >= self.first;
        below || (position.epoch == self.top.epoch && position.index <= self.top.index)
    }
}

impl Vector {
    /// The vector of one history without branches, up to a position: a log that was written in safe mode.
    pub fn linear(upto: Position) -> Vector {
        let mut vector = Vector::default();
        if upto != Position::ZERO {
            vector.epochs.insert(upto.epoch, upto.index);
            vector.settled.push(Settled { first: 1, top: upto });
        }
        vector
    }

    pub fn is_empty(&self) -> bool {
        self.epochs.is_empty() && self.settled.is_empty()
    }

    /// The number of epochs that are stored separately.
    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    pub fn note(&mut self, position: Position) {
        let upto = self.epochs.entry(position.epoch).or_default();
        *upto = position.index.max(*upto);
    }

    pub fn covers(&self, position: Position) -> bool {
        let noted = self.epochs.get(&position.epoch).is_some_and(|upto| position.index <= *upto);
        noted || self.is_settled(position)
    }

    /// Whether every disk of the topology has had this record (P35).
    pub fn is_settled(&self, position: Position) -> bool {
        self.settled.iter().any(|settled| settled.covers(position))
    }

    /// Whether everything that `other` includes is included here. A vector that includes the end of a settled stretch includes
    /// the whole stretch.
    pub fn includes(&self, other: &Vector) -> bool {
        let epochs = other.epochs.iter().map(|(epoch, index)| Position::new(*epoch, *index));
        epochs.chain(other.settled.iter().map(|settled| settled.top)).all(|position| self.covers(position))
    }

    /// A stretch is identified by its first counter: of two stretches with the same one, the longer includes the other.
    pub fn join(&mut self, other: &Vector) {
        for (epoch, index) in &other.epochs {
            self.note(Position::new(*epoch, *index));
        }
        for theirs in &other.settled {
            match self.settled.iter_mut().find(|ours| ours.first == theirs.first) {
                Some(ours) if reaches(theirs.top) > reaches(ours.top) => ours.top = theirs.top,
                Some(_) => {}
                None => self.settled.push(*theirs),
            }
        }
        self.settled.sort_by_key(|settled| settled.first);
    }

    /// Every disk has had every record up to here, so the epochs below are no longer stored separately (P35).
    pub fn settle(&mut self, upto: Position) {
        let below = self.epochs.iter().filter(|(epoch, _)| **epoch < upto.epoch);
        let one = |(epoch, index): (&Epoch, &Index)| Settled {
            first: epoch.counter,
            top: Position::new(*epoch, *index),
        };
        let mut stretches: Vec<Settled> = below.map(one).collect();
        stretches.append(&mut self.settled);
        stretches.push(Settled { first: upto.epoch.counter, top: upto });
        stretches.sort_by_key(|stretch| (stretch.first, stretch.top.epoch));
        self.epochs.retain(|epoch, _| *epoch >= upto.epoch);
        for next in stretches {
            match self.settled.last_mut() {
                // A disk that begins alone draws a counter at least one beginning away, and the gap that a later claim leaves
                // is at most half of one (P36). So stretches that are at most half a beginning apart belong to the same
                // beginning.
                Some(last) if next.first <= last.top.epoch.counter.saturating_add(BEGINNING / 2) => {
                    if reaches(next.top) > reaches(last.top) {
                        last.top = next.top;
                    }
                }
                _ => self.settled.push(next),
            }
        }
    }

    /// The greatest index of any record included.
    /// The state of a merge stands above this index of both sides (C24).
    pub fn highest(&self) -> Index {
        let noted = self.epochs.values().copied();
        noted.chain(self.settled.iter().map(|settled| settled.top.index)).max().unwrap_or(0)
    }

    /// The greatest epoch included.
    pub fn newest(&self) -> Epoch {
        let noted = self.epochs.keys().copied();
        noted.chain(self.settled.iter().map(|settled| settled.top.epoch)).max().unwrap_or_default()
    }
}

fn reaches(position: Position) -> (Epoch, Index) {
    (position.epoch, position.index)
}

/// `7.1@120,8.2@50;1-6.3@90`: epochs, then settled stretches by first counter and end. Empty: `-`.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "-");
        }
        for (number, (epoch, index)) in self.epochs.iter().enumerate() {
            write!(f, "{}{epoch}@{index}", if number > 0 { "," } else { "" })?;
        }
        for settled in &self.settled {
            write!(f, ";{}-{}", settled.first, settled.top)?;
        }
        Ok(())
    }
}

impl FromStr for Vector {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Vector, Misspelt> {
        let mut vector = Vector::default();
        if text == "-" {
            return Ok(vector);
        }
        let mut parts = text.split(';');
        for noted in parts.next().unwrap_or_default().split(',').filter(|noted| !noted.is_empty()) {
            vector.note(noted.parse()?);
        }
        for settled in parts {
            let (first, top) = settled.split_once('-').ok_or(Misspelt)?;
            let first = number(first).ok_or(Misspelt)?;
            vector.settled.push(Settled { first, top: top.parse()? });
        }
        Ok(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NodeId;

    fn at(counter: u64, leader: u32, index: Index) -> Position {
        Position::new(Epoch::new(counter, NodeId(leader)), index)
    }

    fn vector(positions: &[Position]) -> Vector {
        let mut vector = Vector::default();
        positions.iter().for_each(|position| vector.note(*position));
        vector
    }

    #[test]
    fn two_sides_include_each_other_only_once_joined() {
        let (mut one, two) = (vector(&[at(1, 1, 9), at(2, 1, 12)]), vector(&[at(1, 1, 9), at(2, 2, 11)]));
        assert!(!one.includes(&two) && !two.includes(&one));
        one.join(&two);
        assert!(one.includes(&two) && !two.includes(&one));
        assert!(one.covers(at(2, 2, 11)) && !one.covers(at(2, 2, 12)));
        assert_eq!(one.highest(), 12);
    }

    #[test]
    fn what_is_settled_stays_covered_without_its_names() {
        let mut vector = vector(&[at(1, 1, 9), at(3, 2, 20), at(4, 1, 30)]);
        vector.settle(at(4, 1, 28));
        assert_eq!(vector.to_string(), "4.1@30;1-4.1@28");
        assert!(vector.covers(at(2, 3, 99)), "an epoch that nobody has a record of");
        assert!(vector.covers(at(4, 1, 30)) && !vector.covers(at(4, 1, 31)));
        assert!(vector.is_settled(at(4, 1, 28)) && !vector.is_settled(at(4, 1, 29)));
    }

    #[test]
    fn a_lonely_beginning_is_not_taken_for_settled() {
        let lonely = 77 * BEGINNING;
        let mut vector = vector(&[at(1, 1, 9), at(lonely, 2, 20), at(lonely + 1, 1, 30)]);
        vector.settle(at(lonely + 1, 1, 30));
        assert!(!vector.covers(at(40 * BEGINNING, 3, 1)));
        assert!(vector.covers(at(1, 1, 9)) && vector.covers(at(lonely, 2, 20)));
        assert!(!vector.covers(at(1, 1, 10)));
    }

    #[test]
    fn a_vector_reads_as_it_is_written() {
        let mut one = vector(&[at(1, 1, 9), at(90 * BEGINNING, 2, 20)]);
        one.settle(at(90 * BEGINNING, 2, 11));
        for vector in [Vector::default(), vector(&[at(7, 3, 4)]), one, Vector::linear(at(4, 2, 8))] {
            assert_eq!(vector.to_string().parse(), Ok(vector));
        }
        assert_eq!("7.1".parse::<Vector>(), Err(Misspelt));
    }

    #[test]
    fn of_one_history_everything_below_is_included() {
        let vector = Vector::linear(at(5, 1, 40));
        assert!(vector.covers(at(3, 2, 39)) && !vector.covers(at(5, 1, 41)));
        assert!(vector.includes(&Vector::linear(at(5, 1, 30))));
        assert!(Vector::linear(Position::ZERO).is_empty());
    }
}
