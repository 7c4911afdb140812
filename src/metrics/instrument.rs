//! Numbers that any thread counts up without a lock. Each is true by itself; read together they may be a moment apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Only ever grows.
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

/// How long something took, in buckets whose bounds are about a factor of two apart: from what memory takes to what a time-out
/// does.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Each counts those up to its bound and above the one before; the last one all above.
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

    /// So many took as long.
    pub fn observe_many(&self, took: Duration, count: u64) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].add(count);
        self.sum_us.add(us.saturating_mul(count));
    }

    /// How many took at most so many seconds, for each bound; and how many there are in all.
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
