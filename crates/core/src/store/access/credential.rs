//! A token's id, which is public, and the hash of its secret, which exists only in records and rows.

use std::fmt;
use std::str::FromStr;

use crate::store::encoding::{Hash, Mix};

/// 64 random bits, as 16 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u64);

/// The hash of a secret of 32 random bytes. Such a secret cannot be guessed, so hashing it once is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(blake3::Hash);

impl TokenHash {
    pub fn of(secret: &[u8]) -> TokenHash {
        TokenHash(blake3::hash(secret))
    }

    /// The comparison takes the same time for every input, because `blake3` compares in constant time.
    pub fn is_of(&self, secret: &[u8]) -> bool {
        self.0 == blake3::hash(secret)
    }

    /// The hash as records hold it: 64 hexadecimal digits in lower case. It is never shown to readers.
    pub(in crate::store) fn to_hex(self) -> String {
        self.0.to_hex().to_string()
    }

    pub(in crate::store) fn from_hex(text: &str) -> Option<TokenHash> {
        let hash = TokenHash(blake3::Hash::from_hex(text).ok()?);
        (hash.to_hex() == text).then_some(hash)
    }
}

/// A failed assertion or a debug line shows no hash.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for TokenId {
    type Err = ();

    /// Accepts only the form that `Display` writes.
    fn from_str(text: &str) -> Result<TokenId, ()> {
        let id = u64::from_str_radix(text, 16).map(TokenId).map_err(|_| ())?;
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

impl Mix for TokenId {
    fn mix(&self, hash: &mut Hash) {
        hash.word(self.0);
    }
}

impl Mix for TokenHash {
    fn mix(&self, hash: &mut Hash) {
        hash.bytes(self.0.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_in_one_way() {
        let id = TokenId(0x00ab_cdef_0123_4567);
        assert_eq!(id.to_string(), "00abcdef01234567");
        assert_eq!("00abcdef01234567".parse(), Ok(id));
        for wrong in ["", "abcdef01234567", "00ABCDEF01234567", "+0abcdef01234567", "00abcdef012345678", "x"]
        {
            assert_eq!(wrong.parse::<TokenId>(), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn a_hash_is_of_one_secret_and_shows_nothing() {
        let hash = TokenHash::of(b"secret");
        assert!(hash.is_of(b"secret") && !hash.is_of(b"Secret") && !hash.is_of(b""));
        assert_eq!(format!("{hash:?}"), "TokenHash(…)");
        assert_eq!(TokenHash::from_hex(&hash.to_hex()), Some(hash));
        assert_eq!(TokenHash::from_hex(&hash.to_hex().to_uppercase()), None);
        assert_eq!(TokenHash::from_hex("ab"), None);
    }
}
