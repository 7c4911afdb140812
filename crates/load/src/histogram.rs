//! A histogram of durations: counts in buckets whose width grows with the value.
//!
//! Each value below `LINEAR` has its own bucket. Above, every power of two is divided into `STEPS` equal
//! buckets. The middle of a bucket stands for its values, so a quantile is wrong by at most half a step: 1 in 256.
//! The greatest value and the mean are exact.

use std::time::Duration;

/// The number of buckets for each power of two.
const STEPS: u64 = 1 << STEP_BITS;
const STEP_BITS: u32 = 7;

/// Below this value the buckets have a width of one.
const LINEAR: u64 = 2 * STEPS;

/// Enough for all of `u64`.
const BUCKETS: usize = ((64 - STEP_BITS as usize) + 1) * STEPS as usize;

/// A histogram of nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: vec![0; BUCKETS].into(), count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    pub fn clear(&mut self) {
        self.buckets.fill(0);
        (self.count, self.sum, self.max) = (0, 0, 0);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(mean as u64)
    }

    /// The smallest value that at least `per_mille` of a thousand values do not exceed.
    pub fn quantile(&self, per_mille: u64) -> Duration {
        let wanted = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return Duration::from_nanos(middle(bucket).min(self.max));
            }
        }
        Duration::ZERO
    }
}

fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < LINEAR {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let step = bucket % STEPS + STEPS;
    (step << shift) + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for value in values {
            histogram.record(Duration::from_nanos(*value));
        }
        histogram
    }

    #[test]
    fn buckets_leave_no_gap_and_keep_the_order() {
        let mut last = 0;
        for value in 0..(1 << 16) {
            let bucket = bucket(value);
            assert!(bucket == last || bucket == last + 1, "{value}");
            last = bucket;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn every_value_is_told_within_one_percent() {
        let mut rng = Rng::new(1);
        let powers = (0..64).flat_map(|bits| [1_u64 << bits, (1 << bits) - 1, (1 << bits) + 1]);
        let random: Vec<u64> = (0..100_000).map(|at| rng.next() >> (at % 64)).collect();
        for value in powers.chain(random).chain([u64::MAX]) {
            let told = middle(bucket(value));
            assert!(u128::from(told.abs_diff(value)) * 100 <= u128::from(value), "{value} told as {told}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut rng = Rng::new(2);
        let mut values: Vec<u64> =
            (0..10_000).map(|_| rng.below(1 << (10 + rng.clone().below(20)))).collect();
        let histogram = of(&values);
        values.sort_unstable();
        for per_mille in [1, 10, 500, 900, 990, 999, 1000] {
            let exact = values[values.len() * per_mille / 1000 - 1];
            let told = histogram.quantile(per_mille as u64).as_nanos() as u64;
            assert!(told.abs_diff(exact) * 100 <= exact, "{per_mille}: {told}, not {exact}");
        }
        let sum: u64 = values.iter().sum();
        assert_eq!(histogram.mean().as_nanos() as u64, sum / 10_000);
        assert_eq!(histogram.max().as_nanos() as u64, *values.last().unwrap());
        assert_eq!(histogram.count(), 10_000);
    }

    #[test]
    fn few_values_are_told_well() {
        assert_eq!(of(&[]).quantile(990), Duration::ZERO);
        assert_eq!(of(&[]).mean(), Duration::ZERO);
        let one = of(&[1_000_001]);
        assert_eq!(one.quantile(1), one.quantile(999));
        assert!(one.quantile(1000) <= one.max());
        let mut cleared = of(&[5, 6]);
        cleared.clear();
        assert_eq!(
            (cleared.count(), cleared.max(), cleared.quantile(500)),
            (0, Duration::ZERO, Duration::ZERO)
        );
    }

    #[test]
    fn the_longest_span_is_recorded() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::MAX);
        histogram.record(Duration::MAX);
        assert_eq!((histogram.count(), histogram.max()), (2, Duration::from_nanos(u64::MAX)));
    }
}
