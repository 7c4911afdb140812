//! The commands on clients' tokens, and their form in the log (P56).
//!
//! | type | command | JSON |
//! |---|---|---|
//! | 121 | CreateToken | `{"id", "name", "hash", "grants": ["read docs", …], "ttl_ms"?}`; the hash of the secret, never the secret |
//! | 122 | RevokeToken | `{"id"}` |
//!
//! The caller has drawn the id and the secret. These commands are orders: they cannot be in a batch, and clients cannot send
//! them as commands.

use std::fmt::{self, Write};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::kind::CommandKind;
use super::leases::span_of;
use crate::store::access::{Grant, Grants, TokenHash, TokenId};
use crate::store::encoding::{
    BadField, Fields, GRANTS_MOST, Problem, TOKEN_NAME_MOST, TOKEN_TTL_MOST, TTL_LEAST, fields, write_list,
    write_text,
};
use crate::types::{Span, Text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenOperation {
    Create(Arc<NewToken>),
    Revoke { id: TokenId },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub id: TokenId,
    /// For people: it is not used for lookups, and two tokens may have the same name.
    pub name: Text,
    pub hash: TokenHash,
    pub grants: Grants,
    /// `None` for a token that stays until it is revoked.
    pub ttl: Option<Span>,
}

impl NewToken {
    /// Reads a client's call, `{"name", "grants", "ttl_ms"?}`, for a token with an id and a hash that were drawn for it.
    pub fn of_call(id: TokenId, hash: TokenHash, body: &RawValue) -> Result<NewToken, BadField> {
        let fields = Fields::read(body)?;
        fields.only(&["name", "grants", "ttl_ms"])?;
        NewToken::read(id, hash, &fields)
    }

    /// Reads a token from an object that may have other members.
    fn read(id: TokenId, hash: TokenHash, fields: &Fields) -> Result<NewToken, BadField> {
        let name = fields::text_of(fields.needed("name")?, TOKEN_NAME_MOST);
        let name = name.map_err(|error| error.within("name"))?;
        let grants = grants_in(fields.needed("grants")?).map_err(|error| error.within("grants"))?;
        Ok(NewToken { id, name, hash, grants, ttl: span_of(fields, TTL_LEAST, TOKEN_TTL_MOST)? })
    }

    /// Reads a token from a record or a row. `known` are the other members that the object may have.
    pub(in crate::store) fn recorded(
        id: TokenId,
        fields: &Fields,
        known: &str,
    ) -> Result<NewToken, BadField> {
        fields.only(&[known, "name", "hash", "grants", "ttl_ms"])?;
        let bad_hash = || BadField::new("hash", Problem::NotText);
        let hash = fields::text(fields.needed("hash")?).map_err(|error| error.within("hash"))?;
        NewToken::read(id, TokenHash::from_hex(&hash).ok_or_else(bad_hash)?, fields)
    }

    /// Writes the members without the id. The first member has no comma before it.
    pub(in crate::store) fn write(&self, with_hash: bool, out: &mut dyn Write) -> fmt::Result {
        out.write_str("\"name\":")?;
        write_text(out, &self.name)?;
        if with_hash {
            write!(out, ",\"hash\":\"{}\"", self.hash.to_hex())?;
        }
        out.write_str(",\"grants\":")?;
        write_list(out, self.grants.iter(), |out, grant| write_text(out, &grant.to_string()))?;
        self.ttl.iter().try_for_each(|ttl| write!(out, ",\"ttl_ms\":{}", ttl.0 / 1000))
    }

    /// The approximate size of its text, in bytes.
    pub(in crate::store) fn size(&self) -> usize {
        const REST: usize = 96;
        const OF_A_GRANT: usize = 32;
        let grants = self.grants.iter().map(|grant| grant.prefix().len() + OF_A_GRANT);
        REST + self.name.len() + grants.sum::<usize>()
    }
}

impl TokenOperation {
    pub fn kind(&self) -> CommandKind {
        match self {
            TokenOperation::Create(_) => CommandKind::CreateToken,
            TokenOperation::Revoke { .. } => CommandKind::RevokeToken,
        }
    }

    pub fn id(&self) -> TokenId {
        match self {
            TokenOperation::Create(new) => new.id,
            TokenOperation::Revoke { id } => *id,
        }
    }

    /// Returns `None` for a kind that is not about tokens.
    pub(in crate::store) fn read(
        kind: CommandKind,
        fields: &Fields,
    ) -> Option<Result<TokenOperation, BadField>> {
        Some(match kind {
            CommandKind::CreateToken => id_in(fields)
                .and_then(|id| NewToken::recorded(id, fields, "id"))
                .map(|new| TokenOperation::Create(new.into())),
            CommandKind::RevokeToken => {
                fields.only(&["id"]).and_then(|()| id_in(fields)).map(|id| TokenOperation::Revoke { id })
            }
            _ => return None,
        })
    }

    pub(in crate::store) fn size(&self) -> usize {
        match self {
            TokenOperation::Create(new) => new.size(),
            TokenOperation::Revoke { .. } => size_of::<TokenId>(),
        }
    }

    pub(in crate::store) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        self.write_with(true, out)
    }

    /// The operation as readers of records see it.
    /// It has no hash: readers of `/catch_up` get records, too.
    pub(in crate::store) fn shown(&self) -> Text {
        let mut text = String::new();
        self.write_with(false, &mut text).expect("writing to a String cannot fail");
        text.into()
    }

    fn write_with(&self, hash: bool, out: &mut dyn Write) -> fmt::Result {
        write!(out, "{{\"id\":\"{}\"", self.id())?;
        if let TokenOperation::Create(new) = self {
            out.write_char(',')?;
            new.write(hash, out)?;
        }
        out.write_char('}')
    }
}

fn id_in(fields: &Fields) -> Result<TokenId, BadField> {
    let text = fields::text(fields.needed("id")?).map_err(|error| error.within("id"))?;
    text.parse().map_err(|()| BadField::new("id", Problem::NotATokenId))
}

fn grants_in(list: &RawValue) -> Result<Grants, BadField> {
    let texts = fields::array(list)?;
    let grant = |(number, text): (usize, &RawValue)| {
        let text = fields::text(text).map_err(|error| error.at(number))?;
        Grant::parse(&text).map_err(|bad| BadField::new("", Problem::NotAGrant(bad.why())).at(number))
    };
    match texts.len() {
        0 => Err(BadField::new("", Problem::Empty)),
        count if count > GRANTS_MOST => Err(BadField::new("", Problem::TooMany { most: GRANTS_MOST })),
        _ => texts.into_iter().enumerate().map(grant).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::command::Command;

    fn read(body: &str) -> Result<NewToken, String> {
        let body = serde_json::from_str(body).expect("JSON");
        NewToken::of_call(TokenId(7), TokenHash::of(b"s"), body).map_err(|bad| bad.to_string())
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = format!(r#"{{"name":"a","grants":[{}"order"]}}"#, r#""order","#.repeat(GRANTS_MOST));
        let long = format!(r#"{{"name":"{}","grants":["order"]}}"#, "n".repeat(TOKEN_NAME_MOST + 1));
        for (body, field) in [
            (r#"{"grants":["order"]}"#, "name "),
            (r#"{"name":"","grants":["order"]}"#, "name "),
            (&long, "name "),
            (r#"{"name":"a"}"#, "grants "),
            (r#"{"name":"a","grants":[]}"#, "grants "),
            (r#"{"name":"a","grants":"order"}"#, "grants "),
            (&many, "grants "),
            (r#"{"name":"a","grants":["order",7]}"#, "grants[1] "),
            (r#"{"name":"a","grants":["order","reed docs"]}"#, "grants[1] has an unknown verb"),
            (r#"{"name":"a","grants":["order"],"ttl_ms":999}"#, "ttl_ms "),
            (r#"{"name":"a","grants":["order"],"hash":"00"}"#, "hash "),
            (r#"{"name":"a","grants":["order"],"id":"0000000000000001"}"#, "id "),
        ] {
            let said = read(body).expect_err(body);
            assert!(said.starts_with(field), "{body}: {said}");
        }
    }

    #[test]
    fn its_record_is_read_back_and_shown_without_its_hash() {
        let new = read(r#"{"name":"ap\"p","grants":["write,read docs/a b/","order"],"ttl_ms":60000}"#)
            .expect("fine");
        let command = Command::create_token(new);
        let payload = command.to_payload(None);
        assert_eq!((payload.kind, payload.format.0), (121, 2));
        assert_eq!(Command::from_payload(&payload), Ok(command));
        let hash = TokenHash::of(b"s").to_hex();
        assert!(payload.text.contains(&hash) && !Command::shown(&payload).contains(&hash));
        let shown = r#"{"id":"0000000000000007","name":"ap\"p","grants":["read,write docs/a b/","order"],"ttl_ms":60000}"#;
        assert_eq!(&*Command::shown(&payload), shown);
        let revoke = Command::revoke_token(TokenId(7)).to_payload(None);
        assert_eq!((revoke.kind, &*revoke.text), (122, r#"{"id":"0000000000000007"}"#));
        assert_eq!(Command::from_payload(&revoke), Ok(Command::revoke_token(TokenId(7))));
    }
}
