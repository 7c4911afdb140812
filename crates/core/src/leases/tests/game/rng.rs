//! Seeded randomness of the game's own, the same over versions of every crate.

use crate::types::Span;

/// Xorshift64*.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // Small seeds are alike and zero stays zero: spread them first.
        Rng(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// From `low` to `high` milliseconds, to the microsecond.
    pub fn span(&mut self, low: u64, high: u64) -> Span {
        Span(low * 1000 + self.below((high - low) * 1000))
    }
}
