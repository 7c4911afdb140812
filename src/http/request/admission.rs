//! Admission bounds how many client calls are under way. It is a plain counter: a semaphore would queue, and a queue of calls that
//! time out one after the other serves nobody.

use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub struct Admission {
    used: AtomicUsize,
    most: usize,
}

/// A place among them, given back when dropped.
#[derive(Debug)]
pub struct Permit<'a>(&'a Admission);

impl Admission {
    pub fn new(most: usize) -> Admission {
        Admission { used: AtomicUsize::new(0), most }
    }

    /// How many are under way, and how many may be.
    pub fn in_use(&self) -> (usize, usize) {
        (self.used.load(Ordering::Relaxed), self.most)
    }

    /// None when all are taken.
    pub fn enter(&self) -> Option<Permit<'_>> {
        let before = self.used.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(self);
        (before < self.most).then_some(permit)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let admission = Admission::new(2);
        let first = admission.enter();
        let second = admission.enter();
        assert!(first.is_some() && second.is_some());
        assert!(admission.enter().is_none() && admission.enter().is_none());
        drop(first);
        assert!(admission.enter().is_some());
    }
}
