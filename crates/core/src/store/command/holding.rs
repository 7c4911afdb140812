//! A write in the name of a role (P59): it goes through only while that token is the role's.
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
    /// The members that every object has which may say it.
    pub const MEMBERS: [&str; 2] = ["if_role", "role_token"];

    /// From the members of an object that may have others. One without the other says nothing, and neither does a null, which may be all
    /// that a program has of a lease that it has lost.
    pub fn read(fields: &Fields) -> Result<Option<Holding>, BadField> {
        match Holding::MEMBERS.iter().any(|name| fields.member(name).is_some()) {
            true => Ok(Some(Holding { role: fields.name("if_role")?, token: fields.token("role_token")? })),
            false => Ok(None),
        }
    }

    /// The same from the two parts of a header.
    pub fn of_text(role: &str, token: &str) -> Result<Holding, BadField> {
        fields::check_text(role, NAME_MOST).map_err(|error| error.within("if_role"))?;
        let token = digits(token).filter(|token| *token < TOKENS_END);
        let token = token.ok_or_else(|| BadField::new("role_token", Problem::NotAToken))?;
        Ok(Holding { role: role.into(), token })
    }

    /// Its members, each with its comma before it.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(",\"if_role\":")?;
        write_text(out, &self.role)?;
        write!(out, ",\"role_token\":{}", self.token)
    }
}

/// A sign in front is none of a number's digits.
pub fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

// What a holder shows besides its name and its token, which everybody can read (P53).
//
// Only a one-way hash of it stands in the log and in the state, and no reader is shown that.

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
