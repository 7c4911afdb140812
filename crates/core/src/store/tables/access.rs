//! The rows of clients' tokens (P56).

use std::sync::Arc;

use serde_json::value::RawValue;

use super::data::parts;
use super::key::written;
use super::table::{Row, Weight};
use crate::store::access::{Grants, TokenHash, TokenId};
use crate::store::command::NewToken;
use crate::store::encoding::{Fields, Hash, Mix};
use crate::types::{Position, Text, WallTime};

/// A client's token: it grants access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub at: Position,
    /// The time in the stamp of its record.
    pub made_at: WallTime,
    pub(in crate::store) new: Arc<NewToken>,
}

impl Token {
    pub fn name(&self) -> &Text {
        &self.new.name
    }

    pub fn grants(&self) -> &Grants {
        &self.new.grants
    }

    pub fn hash(&self) -> &TokenHash {
        &self.new.hash
    }

    /// `None` for a token that stays until it is revoked.
    pub fn ends_at(&self) -> Option<WallTime> {
        self.new.ttl.map(|ttl| WallTime(self.made_at.0.saturating_add(ttl.0)))
    }

    pub fn has_ended(&self, now: WallTime) -> bool {
        self.ends_at().is_some_and(|end| now >= end)
    }

    /// Whether `secret` belongs to this token, and the token has not expired. The comparison takes the same time for every
    /// input.
    pub fn verifies(&self, secret: &[u8], now: WallTime) -> bool {
        self.new.hash.is_of(secret) && !self.has_ended(now)
    }

    /// `{"name","hash","grants","ttl_ms"?,"made_us"}`
    pub fn value(&self) -> String {
        let mut text = String::from("{");
        self.new.write(true, &mut text).expect("writing to a String cannot fail");
        text + &format!(",\"made_us\":{}}}", self.made_at.0)
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn from_entry(id: TokenId, json: &str) -> Option<Token> {
        let (at, value) = parts(json)?;
        Token::read(id, at, value)
    }

    pub fn read(id: TokenId, at: Position, value: &RawValue) -> Option<Token> {
        let fields = Fields::read(value).ok()?;
        let new = NewToken::recorded(id, &fields, "made_us").ok()?;
        // A stamp beyond this bound is never written (P30).
        let made = fields.member("made_us")?.get().parse().ok().filter(|made| *made <= WallTime::MOST.0)?;
        Some(Token { at, made_at: WallTime(made), new: new.into() })
    }
}

impl Row for Token {
    const TABLE: &'static str = "access";

    fn weight(&self) -> usize {
        self.new.size()
    }
}

impl Weight for TokenId {
    fn weight(&self) -> usize {
        16
    }
}

impl Mix for Token {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(self.made_at.0);
        self.new.name.mix(hash);
        self.new.hash.mix(hash);
        self.new.grants.mix(hash);
        hash.word(self.new.ttl.map_or(0, |ttl| ttl.0));
    }
}
