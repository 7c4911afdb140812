//! Numbers that any thread counts without a lock. Each is correct by itself; two of them may be from slightly different moments.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations in buckets whose bounds are about a factor of two apart: from the time of a memory access to that of a time-out.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Each bucket counts durations up to its bound and above the bound before; the last one counts all longer ones.
    buckets: [Counter; BOUNDS_US.len() + 1],
    sum_us: Counter,
}

/// In microseconds.
const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

impl Histogram {
    pub fn observe(&self, took: Duration) {
        self.observe_many(took, 1);
    }

    /// Counts `count` events of the same duration.
    pub fn observe_many(&self, took: Duration, count: u64) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].add(count);
        self.sum_us.add(us.saturating_mul(count));
    }

    /// Returns the number of events within each bound, in seconds; and the number of all events.
    pub fn upto(&self) -> (Vec<(f64, u64)>, u64) {
        let mut all = 0;
        let mut rows = Vec::with_capacity(BOUNDS_US.len());
        for (bound, bucket) in BOUNDS_US.iter().zip(&self.buckets) {
            all += bucket.get();
            rows.push((seconds(*bound), all));
        }
        (rows, all + self.buckets[BOUNDS_US.len()].get())
    }

    pub fn sum_seconds(&self) -> f64 {
        seconds(self.sum_us.get())
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_as_long_as_a_bound_is_within_it() {
        let histogram = Histogram::default();
        for us in [0, 100, 101, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let (rows, all) = histogram.upto();
        assert_eq!((rows[0], rows[1], rows[15]), ((0.0001, 2), (0.00025, 3), (10.0, 4)));
        assert_eq!(all, 5);
        assert!((histogram.sum_seconds() - 20.000202).abs() < 1e-9);
    }
}
