//! Random numbers for the store's tests, with a method that picks from a list.

use eldest_storage::files::Dice;

#[derive(Clone, Debug)]
pub struct Rng(Dice);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(Dice::new(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.place(bound)
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}
