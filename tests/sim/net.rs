//! A network that loses, repeats, reorders and delays, and can be cut link by link and direction by
//! direction.

use std::collections::{BTreeMap, BTreeSet};

use eldest::protocol::Envelope;
use eldest::types::NodeId;

use crate::rng::Rng;

/// The messages that a scenario singles out.
pub type Filter = fn(&Envelope) -> bool;

/// In a thousand.
const LATE: u64 = 5;

#[derive(Clone, Debug)]
pub struct Net {
    cut: BTreeSet<(NodeId, NodeId)>,
    pub loss: u64,
    pub repeat: u64,
    /// The chance that a message is held up for long, in thousandths.
    pub straggle: u64,
    pub delay: (u64, u64),
    /// Now and then a message is held up, for at most this long; zero if none is.
    pub late: u64,
    /// Messages of some kind that do not pass.
    pub dropped: Option<Filter>,
    /// Links with their own delay.
    pub slow: BTreeMap<(NodeId, NodeId), u64>,
}

impl Net {
    pub fn calm() -> Net {
        Net {
            cut: BTreeSet::new(),
            loss: 0,
            repeat: 0,
            straggle: 0,
            delay: (100, 400),
            late: 0,
            dropped: None,
            slow: BTreeMap::new(),
        }
    }

    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cut.insert((from, to));
    }

    pub fn mend(&mut self, from: NodeId, to: NodeId) {
        self.cut.remove(&(from, to));
    }

    pub fn heal(&mut self) {
        *self = Net { delay: self.delay, late: self.late, ..Net::calm() };
    }

    pub fn passes(&self, from: NodeId, to: NodeId) -> bool {
        !self.cut.contains(&(from, to))
    }

    pub fn both_ways(&self, a: NodeId, b: NodeId) -> bool {
        self.passes(a, b) && self.passes(b, a)
    }

    pub fn drops(&self, envelope: &Envelope) -> bool {
        self.dropped.is_some_and(|dropped| dropped(envelope))
    }

    /// The delays after which the copies of one message arrive: none, one or two.
    pub fn fates(&self, rng: &mut Rng, from: NodeId, to: NodeId) -> Vec<u64> {
        if !self.passes(from, to) || rng.chance(self.loss) {
            return Vec::new();
        }
        let copies = if rng.chance(self.repeat) { 2 } else { 1 };
        let slow = self.slow.get(&(from, to)).copied().unwrap_or(0);
        (0..copies).map(|_| slow + self.delay(rng)).collect()
    }

    pub fn delay(&self, rng: &mut Rng) -> u64 {
        if self.late > 0 && rng.chance(LATE) {
            return rng.skewed(1_000, self.late);
        }
        match rng.chance(self.straggle) {
            true => rng.skewed(1_000, 400_000),
            false => rng.range(self.delay.0, self.delay.1),
        }
    }
}
