//! What a holder shows besides its name and its token, which everybody can read (P53).
//!
//! Only a one-way hash of it stands in the log and in the state, and no reader is shown that.

use std::fmt::{self, Write};

use crate::protocol::mutant::{self, Mutant};
use crate::store::encoding::{BadField, Fields, Problem};

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash(u128);

impl SecretHash {
    pub fn of(secret: &str) -> SecretHash {
        let hash = blake3::derive_key("eldest 2026 secret of a lease", secret.as_bytes());
        let (half, _) = hash.split_at(size_of::<u128>());
        SecretHash(half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// As clients send it.
    pub fn of_field(fields: &Fields) -> Result<Option<SecretHash>, BadField> {
        Ok(fields.name_if_given("secret")?.map(|secret| SecretHash::of(&secret)))
    }

    /// As it stands in a record.
    pub fn read(fields: &Fields) -> Result<Option<SecretHash>, BadField> {
        let Some(text) = fields.name_if_given("secret_hash")? else { return Ok(None) };
        let hash =
            u128::from_str_radix(&text, 16).map_err(|_| BadField::new("secret_hash", Problem::NotText))?;
        Ok(Some(SecretHash(hash)))
    }

    /// A member with its comma before it, if there is one.
    pub fn write(hash: Option<SecretHash>, out: &mut dyn Write) -> fmt::Result {
        hash.map_or(Ok(()), |hash| write!(out, ",\"secret_hash\":\"{:032x}\"", hash.0))
    }

    /// Whether who shows `shown` may speak for what was granted under `granted`.
    pub fn admits(granted: Option<SecretHash>, shown: Option<SecretHash>) -> bool {
        granted.is_none() || granted == shown || mutant::is_on(Mutant::AnySecret)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}
