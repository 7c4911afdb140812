//! A write in the name of a role (P59): it goes through only while that token is the role's.
//!
//! `"if_role": "leader", "role_token": 12`, HTTP's `If-Role: leader; token=12`.

use std::fmt::{self, Write};

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
