//! The simulator's random numbers. A seed stays a seed, no matter what else changes.

use eldest_storage::files::Dice;

#[derive(Clone, Debug)]
pub struct Rng(Dice);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Dice::new(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    /// Another stream, so that one concern's draws do not shift another's.
    pub fn fork(&mut self) -> Rng {
        Rng(Dice::new(self.next()))
    }

    pub fn next(&mut self) -> u64 {
        self.0.roll()
    }

    /// Below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// From `low` to `high`, both included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        self.0.pick(items)
    }

    /// One of these, as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, items: &[(T, u64)]) -> T {
        let mut draw = self.below(items.iter().map(|(_, weight)| weight).sum());
        for (item, weight) in items {
            if draw < *weight {
                return *item;
            }
            draw -= weight;
        }
        unreachable!("drawn below the sum of the weights")
    }

    /// Many short ones, few long ones, from `low` to `high`.
    pub fn skewed(&mut self, low: u64, high: u64) -> u64 {
        let unit = self.below(1 << 20) as f64 / (1 << 20) as f64;
        low + ((high - low) as f64 * unit * unit * unit) as u64
    }
}
