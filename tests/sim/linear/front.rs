//! The configurations of the search, and how many of them are worth keeping.

use std::array::from_fn;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::lower::Val;

/// A set of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<const W: usize>([u64; W]);

impl<const W: usize> Bits<W> {
    pub const NONE: Self = Bits([0; W]);

    pub fn has(&self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub fn add(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    pub fn remove(&mut self, slot: usize) {
        self.0[slot / 64] &= !(1 << (slot % 64));
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The lowest slot that is not in the set, if there is one.
    pub fn lowest_absent(&self) -> Option<usize> {
        let mut absent = !*self;
        absent.pop()
    }

    /// Takes out the lowest.
    pub fn pop(&mut self) -> Option<usize> {
        let at = self.0.iter().position(|&word| word != 0)?;
        let slot = 64 * at + self.0[at].trailing_zeros() as usize;
        self.0[at] &= self.0[at] - 1;
        Some(slot)
    }
}

impl<const W: usize> BitAnd for Bits<W> {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Bits(from_fn(|at| self.0[at] & other.0[at]))
    }
}

impl<const W: usize> BitOr for Bits<W> {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Bits(from_fn(|at| self.0[at] | other.0[at]))
    }
}

impl<const W: usize> BitXor for Bits<W> {
    type Output = Self;
    fn bitxor(self, other: Self) -> Self {
        Bits(from_fn(|at| self.0[at] ^ other.0[at]))
    }
}

impl<const W: usize> Not for Bits<W> {
    type Output = Self;
    fn not(self) -> Self {
        Bits(from_fn(|at| !self.0[at]))
    }
}

/// One way things may stand: what the register holds, and how far each open operation is. An open
/// operation in neither set has yet to take effect, and must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config<const W: usize> {
    pub state: Val,
    /// Has taken effect.
    pub used: Bits<W>,
    /// May still take effect, but need not. Never also in `used`.
    pub free: Bits<W>,
}

impl<const W: usize> Config<W> {
    /// Whether all that can follow `other` can follow this one too. Having done a look early costs
    /// nothing, and free beats both used and not used; in all else the two must agree.
    fn covers(&self, other: &Self, looks: Bits<W>) -> bool {
        self.state == other.state
            && (other.free & !self.free).is_empty()
            && (other.used & !self.used & looks).is_empty()
            && ((self.used ^ other.used) & !self.free & !looks).is_empty()
    }
}

/// A set of configurations.
#[derive(Clone, Debug, Default)]
pub struct Front<const W: usize>(pub Vec<Config<W>>);

impl<const W: usize> Front<W> {
    /// Adds a configuration at the end unless it is covered. Returns how many comparisons that took,
    /// which is the cost.
    pub fn append(&mut self, config: Config<W>, looks: Bits<W>) -> u64 {
        let before = self.0.len() as u64;
        if !self.0.iter().any(|old| old.covers(&config, looks)) {
            self.0.push(config);
        }
        before
    }

    /// Drops each configuration that another covers. Returns the cost, too.
    pub fn prune(&mut self, looks: Bits<W>) -> u64 {
        let count = self.0.len() as u64;
        let mut at = 0;
        while at < self.0.len() {
            let config = self.0[at];
            let covers = |(other, old): (usize, &Config<W>)| other != at && old.covers(&config, looks);
            if self.0.iter().enumerate().any(covers) {
                self.0.swap_remove(at);
            } else {
                at += 1;
            }
        }
        count * count
    }

    /// Keeps the given number of the most promising. Returns whether any had to go.
    pub fn keep(&mut self, width: usize, open: Bits<W>) -> bool {
        if self.0.len() > width {
            // Fewest operations still bound to happen first, then most that may still help.
            let owed = |config: &Config<W>| (open & !(config.used | config.free)).count();
            self.0.sort_by_key(|config| (owed(config), Reverse(config.free.count())));
            // The best of each content, then the second best of each, and so on: those of one content
            // differ less in what they can lead to.
            let mut seen = BTreeMap::new();
            let ranks = self.0.iter().map(|config| {
                let rank = seen.entry(config.state).or_insert(0);
                *rank += 1;
                *rank
            });
            let mut ranked: Vec<(u32, Config<W>)> = ranks.zip(self.0.iter().copied()).collect();
            ranked.sort_by_key(|&(rank, _)| rank);
            self.0 = ranked.into_iter().map(|(_, config)| config).collect();
        }
        self.shorten(width)
    }

    /// Keeps the first ones. Returns whether any had to go.
    pub fn shorten(&mut self, width: usize) -> bool {
        let excess = self.0.len() > width;
        self.0.truncate(width);
        excess
    }
}
