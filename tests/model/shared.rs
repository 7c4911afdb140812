//! A value that many states share, with its hash computed once: hashing and cloning whole nodes for every
//! transition would cost more than the protocol itself.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

#[derive(Debug)]
pub struct Shared<T> {
    print: u64,
    value: Arc<T>,
}

impl<T: Hash> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        // Fixed keys: the same value has the same print in every thread and every run.
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Shared { print: hasher.finish(), value: Arc::new(value) }
    }
}

impl<T> Shared<T> {
    pub fn print(&self) -> u64 {
        self.print
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared { print: self.print, value: self.value.clone() }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.print == other.print
    }
}

impl<T> Eq for Shared<T> {}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.print);
    }
}
