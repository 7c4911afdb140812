//! The lifetime of a document that is not deleted before (P54).
//!
//! With `"ttl_ms"` a document ends when it has not been written or renewed for that long. With `"with": "role/leader", "token"`
//! it ends together with that lease, in the same record. Both may be given. A document with neither stays.

use std::fmt::{self, Write};

use super::holding::SecretHash;
use super::holding::digits;
use super::leases::span_of;
use crate::store::encoding::{
    BadField, DOC_TTL_MOST, Fields, NAME_MOST, Problem, TOKENS_END, TTL_LEAST, fields, write_text,
};
use crate::types::{LeaseName, Span, Text};

/// The end that a writer requests for a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    pub ttl: Option<Span>,
    pub with: Option<Tether>,
}

/// The lease that a document ends with. Clients know no token of a process, so the current registration counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tether {
    pub lease: LeaseName,
    pub token: Option<u64>,
    /// The secret that the writer shows, for a lease that was granted under a secret. The leader checks it before it writes the
    /// record, and the record does not contain it.
    pub secret: Option<SecretHash>,
}

impl Ending {
    /// The member names that every object with such an end has.
    pub const MEMBERS: [&str; 3] = ["ttl_ms", "with", "token"];

    /// Reads the end from an object that may have other members.
    pub fn read(fields: &Fields) -> Result<Ending, BadField> {
        let ttl = span_of(fields, TTL_LEAST, DOC_TTL_MOST)?;
        let token = fields.given("token").map(|_| fields.token("token")).transpose()?;
        let with = fields.given("with").map(fields::text).transpose();
        let with = with.map_err(|error| error.within("with"))?;
        Ending { ttl, with: with.map(|with| tether(&with, token)).transpose()? }.checked(token)
    }

    /// Reads the end from the parameters of a request.
    pub fn of_query(
        ttl_ms: Option<&str>,
        with: Option<&str>,
        token: Option<&str>,
    ) -> Result<Ending, BadField> {
        let ttl = ttl_ms.map(ttl_of).transpose()?;
        let token = token.map(token_of).transpose()?;
        Ending { ttl, with: with.map(|with| tether(with, token)).transpose()? }.checked(token)
    }

    /// A token without a lease is refused: the writer meant to bind the document, and would get one that stays.
    fn checked(self, token: Option<u64>) -> Result<Ending, BadField> {
        match (&self.with, token) {
            (None, Some(_)) => Err(BadField::new("with", Problem::Missing)),
            _ => Ok(self),
        }
    }

    /// Adds the secret that the writer shows for its lease.
    pub fn show(&mut self, secret: Option<SecretHash>) {
        if let Some(tether) = &mut self.with {
            tether.secret = tether.secret.or(secret);
        }
    }

    pub fn shows_a_secret(&self) -> bool {
        self.with.as_ref().is_some_and(|tether| tether.secret.is_some())
    }

    pub fn hide_secret(&mut self) {
        if let Some(tether) = &mut self.with {
            tether.secret = None;
        }
    }

    pub fn is_none(&self) -> bool {
        self.ttl.is_none() && self.with.is_none()
    }

    /// Writes its members, each with a comma before it.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        self.ttl.iter().try_for_each(|ttl| write!(out, ",\"ttl_ms\":{}", ttl.0 / 1000))?;
        let Some(Tether { lease, token, .. }) = &self.with else { return Ok(()) };
        out.write_str(",\"with\":")?;
        write_text(out, &lease_path(lease))?;
        token.iter().try_for_each(|token| write!(out, ",\"token\":{token}"))
    }
}

/// `role/leader`, `process/worker-7`.
pub fn lease_path(lease: &LeaseName) -> String {
    match lease {
        LeaseName::Role(name) => format!("role/{name}"),
        LeaseName::Process(id) => format!("process/{id}"),
        LeaseName::Doc(key) => format!("doc/{key}"),
    }
}

fn tether(with: &str, token: Option<u64>) -> Result<Tether, BadField> {
    let no_lease = || BadField::new("with", Problem::NoLease);
    let (kind, name) = with.split_once('/').ok_or_else(no_lease)?;
    fields::check_text(name, NAME_MOST).map_err(|error| error.within("with"))?;
    let name = Text::from(name);
    match (kind, token) {
        // A role without a token would bind the document to any instance that holds the role when the record is applied.
        ("role", None) => Err(BadField::new("token", Problem::Missing)),
        ("role", token) => Ok(Tether { lease: LeaseName::Role(name), token, secret: None }),
        ("process", token) => Ok(Tether { lease: LeaseName::Process(name), token, secret: None }),
        _ => Err(no_lease()),
    }
}

fn ttl_of(text: &str) -> Result<Span, BadField> {
    let (least, most) = (TTL_LEAST.0 / 1000, DOC_TTL_MOST.0 / 1000);
    let ms = digits(text).filter(|ms| (least..=most).contains(ms));
    let wrong = Problem::NotBetween { least: least as i64, most: most as i64 };
    ms.map(Span::millis).ok_or_else(|| BadField::new("ttl_ms", wrong))
}

fn token_of(text: &str) -> Result<u64, BadField> {
    let token = digits(text).filter(|token| *token < TOKENS_END);
    token.ok_or_else(|| BadField::new("token", Problem::NotAToken))
}
