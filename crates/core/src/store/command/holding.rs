//! A write on condition of a role (P59): it takes effect only while the token is still the role's.
//!
//! `"if_role": "leader", "role_token": 12`, HTTP's `If-Role: leader; token=12`.

use std::fmt::{self, Write};

use crate::protocol::mutant::{self, Mutant};
use crate::store::encoding::{BadField, Fields, NAME_MOST, Problem, TOKENS_END, fields, write_text};
use crate::types::Text;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub role: Text,
    pub token: u64,
}

impl Holding {
    /// The member names that every object with such a condition has.
    pub const MEMBERS: [&str; 2] = ["if_role", "role_token"];

    /// Reads the condition from an object that may have other members. Both members must be there. `null` does not count as a
    /// value, because a program may hold `null` after it has lost its lease.
    pub fn read(fields: &Fields) -> Result<Option<Holding>, BadField> {
        match Holding::MEMBERS.iter().any(|name| fields.member(name).is_some()) {
            true => Ok(Some(Holding { role: fields.name("if_role")?, token: fields.token("role_token")? })),
            false => Ok(None),
        }
    }

    /// Reads the condition from the two parts of a header.
    pub fn of_text(role: &str, token: &str) -> Result<Holding, BadField> {
        fields::check_text(role, NAME_MOST).map_err(|error| error.within("if_role"))?;
        let token = digits(token).filter(|token| *token < TOKENS_END);
        let token = token.ok_or_else(|| BadField::new("role_token", Problem::NotAToken))?;
        Ok(Holding { role: role.into(), token })
    }

    /// Writes its members, each with a comma before it.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(",\"if_role\":")?;
        write_text(out, &self.role)?;
        write!(out, ",\"role_token\":{}", self.token)
    }
}

/// Accepts digits only: a sign in front is an error.
pub fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

// A lease holder's secret. It is shown in addition to the name and the token, which everyone can read (P53).
//
// The log and the state have a one-way hash of it, and readers never see that hash.

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash(u128);

impl SecretHash {
    /// Clients choose these secrets, so a weak one can be guessed from its hash: one more reason to show the hash to no
    /// reader. Half of the 256 bits is enough to tell secrets apart.
    pub fn of(secret: &str) -> SecretHash {
        let hash = blake3::derive_key("eldest 2026 secret of a lease", secret.as_bytes());
        let (half, _) = hash.split_at(size_of::<u128>());
        SecretHash(half.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Reads the secret as clients send it.
    pub fn of_field(fields: &Fields) -> Result<Option<SecretHash>, BadField> {
        Ok(fields.name_if_given("secret")?.map(|secret| SecretHash::of(&secret)))
    }

    /// Reads the hash as records hold it.
    pub fn read(fields: &Fields) -> Result<Option<SecretHash>, BadField> {
        let Some(text) = fields.name_if_given("secret_hash")? else { return Ok(None) };
        let hash =
            u128::from_str_radix(&text, 16).map_err(|_| BadField::new("secret_hash", Problem::NotText))?;
        Ok(Some(SecretHash(hash)))
    }

    /// Writes the hash as a member with a comma before it, if there is one.
    pub fn write(hash: Option<SecretHash>, out: &mut dyn Write) -> fmt::Result {
        hash.map_or(Ok(()), |hash| write!(out, ",\"secret_hash\":\"{:032x}\"", hash.0))
    }

    /// Whether a caller that shows `shown` may act for a lease that was granted under `granted`.
    pub fn admits(granted: Option<SecretHash>, shown: Option<SecretHash>) -> bool {
        granted.is_none() || granted == shown || mutant::is_on(Mutant::AnySecret)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}
