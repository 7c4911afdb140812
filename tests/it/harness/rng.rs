//! The random numbers of callers. A seed always gives the same numbers.

use eldest_storage::files::Dice;

#[derive(Clone, Debug)]
pub struct Rng(Dice);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Dice::new(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    pub fn next(&mut self) -> u64 {
        self.0.roll()
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        self.0.pick(items)
    }

    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
