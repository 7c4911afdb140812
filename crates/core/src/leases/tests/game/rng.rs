//! The game's random numbers.

use eldest_storage::files::Dice;

use crate::types::Span;

#[derive(Clone, Debug)]
pub struct Rng(Dice);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Dice::new(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.0.one_in(count)
    }

    /// A span from `low` to `high` milliseconds, to the microsecond.
    pub fn span(&mut self, low: u64, high: u64) -> Span {
        Span(low * 1000 + self.below((high - low) * 1000))
    }
}
