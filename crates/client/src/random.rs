//! Names that nobody else has, and waits that differ.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 128 bits, as text: no two calls, programs or machines draw the same.
pub fn id() -> String {
    format!("{:016x}{:016x}", bits(), bits())
}

/// A number below 2^53 that is above those drawn before, here or by an earlier process, as far as the wall clock goes forward; and that
/// nobody else has drawn, most likely. There is room above it to count on.
pub fn rising() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = since.as_millis() as u64 % (1 << 42);
    (millis << 10) + (bits() & 0x3ff)
}

/// Between half of it and all of it, so that those who failed together do not come back together.
pub fn jittered(span: Duration) -> Duration {
    let half = span / 2;
    let nanos = half.as_nanos().min(u128::from(u64::MAX)) as u64;
    half + Duration::from_nanos(bits() % (nanos + 1))
}

/// A system without its source of randomness still has the standard library's.
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
    fn a_jittered_wait_is_at_least_half() {
        for _ in 0..1_000 {
            let span = jittered(Duration::from_millis(100));
            assert!((50..=100).contains(&(span.as_millis() as u64)), "{span:?}");
        }
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
