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

    /// From the members of an object that may have others. One without the other says nothing.
    pub fn read(fields: &Fields) -> Result<Option<Holding>, BadField> {
        let role = fields.name_if_given("if_role")?;
        let token = fields.given("role_token").map(|_| fields.token("role_token")).transpose()?;
        match (role, token) {
            (None, None) => Ok(None),
            (Some(role), Some(token)) => Ok(Some(Holding { role, token })),
            (Some(_), None) => Err(BadField::new("role_token", Problem::Missing)),
            (None, Some(_)) => Err(BadField::new("if_role", Problem::Missing)),
        }
    }

    /// The same from the two parts of a header.
    pub fn of_text(role: &str, token: &str) -> Result<Holding, BadField> {
        fields::check_text(role, NAME_MOST).map_err(|error| error.within("if_role"))?;
        let token = token.parse().ok().filter(|token| *token < TOKENS_END);
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
