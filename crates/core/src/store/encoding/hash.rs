//! The hash behind the digest of a state (P25).
//!
//! It is not cryptographic: it detects states that diverged by a fault, not states that were made to collide. Each step is a
//! bijection of the state, so two inputs of equal length that differ in one word never collide.
//!
//! Every change here, or to a `Mix` of a row, is another computation: `DIGESTS` has to rise, or nodes of two builds
//! take each other for diverged (P25). The test `store/tests/fixed.rs` has the digest of a fixed state.

use crate::types::{Position, Text};

/// The factor is odd, so multiplication by it loses nothing. Its bits are those of the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// The first fractional bits of pi: any number that is not zero would do.
const START: u64 = 0x243F_6A88_85A3_08D3;

/// The state of a hash in progress.
#[derive(Clone, Copy, Debug)]
pub struct Hash(u64);

/// Values that can be fed to a hash. Different values must feed different words.
pub trait Mix {
    fn mix(&self, hash: &mut Hash);
}

impl Hash {
    pub fn new() -> Hash {
        Hash(START)
    }

    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(FACTOR);
        self.0 ^= self.0 >> 29;
    }

    /// The length goes first, so that neighbouring fields cannot exchange bytes unnoticed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let words = bytes.chunks_exact(8);
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        for word in words {
            self.word(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        self.word(u64::from_le_bytes(last));
    }

    pub fn finish(mut self) -> u64 {
        self.word(self.0 >> 32);
        self.word(0);
        self.0 ^ (self.0 >> 32)
    }
}

impl Mix for str {
    fn mix(&self, hash: &mut Hash) {
        hash.bytes(self.as_bytes());
    }
}

impl Mix for Text {
    fn mix(&self, hash: &mut Hash) {
        self.as_ref().mix(hash);
    }
}

impl Mix for u128 {
    fn mix(&self, hash: &mut Hash) {
        hash.word(*self as u64);
        hash.word((*self >> 64) as u64);
    }
}

impl Mix for Position {
    fn mix(&self, hash: &mut Hash) {
        hash.word(self.epoch.counter);
        hash.word(u64::from(self.epoch.leader.0));
        hash.word(self.index);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hash(bytes: &[u8]) -> u64 {
        let mut hash = Hash::new();
        hash.bytes(bytes);
        hash.finish()
    }

    /// Nodes of two builds compare digests. A different hash is a different computation and needs a new number (`DIGESTS`,
    /// P25).
    #[test]
    fn it_stays_what_it_is() {
        assert_eq!(hash(b""), 8_098_015_778_245_455_089);
        assert_eq!(hash(b"the lowest index"), 2_844_405_920_177_817_900);
        assert_eq!(hash(b"the lowest index leads"), 16_320_925_801_197_174_565);
    }

    #[test]
    fn bytes_do_not_move_between_neighbours() {
        let two = |a: &str, b: &str| {
            let mut hash = Hash::new();
            a.mix(&mut hash);
            b.mix(&mut hash);
            hash.finish()
        };
        let all = [two("ab", "c"), two("a", "bc"), two("", "abc"), two("abc", ""), two("abc\0", "")];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn one_bit_turns_half_of_all_bits() {
        let base = [7_u8; 40];
        let mut turned = [0_u32; 64];
        for bit in 0..base.len() * 8 {
            let mut other = base;
            other[bit / 8] ^= 1 << (bit % 8);
            let difference = hash(&base) ^ hash(&other);
            assert!((10..=54).contains(&difference.count_ones()), "bit {bit}: {difference:x}");
            for (place, count) in turned.iter_mut().enumerate() {
                *count += (difference >> place & 1) as u32;
            }
        }
        assert!(turned.iter().all(|count| (110..=210).contains(count)), "{turned:?}");
    }

    #[test]
    fn numbers_spread_evenly_and_do_not_collide() {
        let mut buckets = [0_u32; 256];
        let mut seen = BTreeSet::new();
        for number in 0..100_000_u64 {
            let value = hash(number.to_string().as_bytes());
            assert!(seen.insert(value), "{number} collides");
            buckets[(value & 255) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| (290..=500).contains(count)), "{buckets:?}");
    }
}
