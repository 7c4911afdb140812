//! Random names, random numbers and jitter.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 128 random bits as text: no two calls, programs or machines draw the same.
pub fn id() -> String {
    format!("{:016x}{:016x}", bits(), bits())
}

/// A number below 2^53. It is greater than all numbers that this process has drawn before, even if its wall clock
/// goes back. It is also greater than the numbers of earlier processes, as long as the wall clock goes forward
/// between them. Most likely no other process has drawn it. The numbers just above it are free for counting.
///
/// If the clock was set back between two processes of the same name, the later one draws a smaller number. This does
/// harm only if a renewal of the earlier process arrives after the later one has asked for its role: asking makes the
/// leader forget the earlier numbers (P45).
pub fn rising() -> u64 {
    static NEWEST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = since.as_millis() as u64 % (1 << 42);
    above(&NEWEST, (millis << ROOM) + (bits() & ((1 << ROOM) - 1)))
}

/// The number of bits that count the connections of one grant.
const ROOM: u32 = 10;

/// Returns the drawn number, or the next number that leaves room after the newest one if that is greater.
fn above(newest: &AtomicU64, drawn: u64) -> u64 {
    let number = |newest: u64| drawn.max(newest + (1 << ROOM));
    match newest.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |newest| Some(number(newest))) {
        Ok(newest) | Err(newest) => number(newest),
    }
}

/// A random span between half of `span` and all of it, so that clients that failed together do not retry together.
pub fn jittered(span: Duration) -> Duration {
    let half = span / 2;
    let nanos = half.as_nanos().min(u128::from(u64::MAX)) as u64;
    half + Duration::from_nanos(bits() % (nanos + 1))
}

/// If the system has no source of randomness, the standard library's is used.
fn bits() -> u64 {
    getrandom::u64().unwrap_or_else(|_| RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        let drawn = [id(), id(), id()];
        assert!(drawn.iter().all(|id| id.len() == 32));
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
    }

    #[test]
    fn numbers_rise_though_the_clock_goes_back() {
        let newest = AtomicU64::new(0);
        let drawn = [5_000, 4_000, 1, 20_000, 20_000].map(|drawn| above(&newest, drawn));
        assert_eq!(drawn, [5_000, 6_024, 7_048, 20_000, 21_024]);
    }

    #[test]
    fn a_jittered_wait_is_at_least_half() {
        for _ in 0..1_000 {
            let span = jittered(Duration::from_millis(100));
            assert!((50..=100).contains(&(span.as_millis() as u64)), "{span:?}");
        }
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
