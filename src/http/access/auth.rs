//! Identifies the caller by `Authorization: Bearer …`, and decides what the caller may do.
//!
//! - The admin token, which is in a node's settings, may do everything.
//! - A client's token, `eldest_<id>_<secret>`, may do what its grants say; it is looked up in the state that this node has applied (P56).
//! - A caller without a credential may do what the settings grant to everybody.
//!
//! ```text
//!   Authorization ─► Shown    nothing, right, unknown token, wrong     by this node's tokens, at once, for every call
//!        guard ───► Principal  who it is, and the grants                an unknown token is looked up at the leader first
//!        check ───► Asked      is it covered?                           once by the guard, and by handlers for each operation
//! ```

use std::fmt;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::needs::{Asked, of_command};
use crate::driver::Tokens;
use crate::http::answer::{Code, Problem, unauthorized};
use crate::store::{Area, Command, Grant, Grants, Token, TokenId, Verb};
use crate::types::{Text, WallTime};

/// The prefix of every client token, by which a token that is found somewhere can be recognized.
const TOKEN: &str = "eldest_";

const ALL_GRANTS: [&str; 2] = ["read,write,watch *", "order"];

#[derive(Debug)]
pub struct Guard {
    /// Hashes are compared, in constant time: timing reveals neither the length nor the content of the token.
    admin: Option<blake3::Hash>,
    anonymous: Grants,
}

/// The credential of a call.
#[derive(Clone, Debug)]
pub enum Shown {
    Nothing,
    Right(Principal),
    /// It looks like a token, but this node does not know it: it must be checked again.
    /// The token may have been made a moment ago, or revoked: only the leader's state says which. Its header
    /// is kept for the second look.
    UnknownToken(HeaderMap),
    /// The secret does not match, the token has ended, or the credential has another form. The leader is not
    /// asked.
    Wrong,
}

/// The principal of a call, determined once for each call and read by every handler.
#[derive(Clone, Debug)]
pub struct Principal {
    pub who: Who,
    /// A missing list grants everything. Only the admin token has no list.
    grants: Option<Grants>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    Anonymous,
    Admin,
    Token {
        id: TokenId,
        name: Text,
    },
    /// The caller shows a credential that is invalid, revoked or expired.
    Unknown,
}

impl Guard {
    /// `anonymous` are the grants of a call without a credential; with `may_order` it may also give orders.
    pub fn new(admin_token: Option<&str>, anonymous: &Grants, may_order: bool) -> Guard {
        let order = may_order.then(Grant::order);
        let anonymous = anonymous.iter().cloned().chain(order).collect();
        Guard { admin: admin_token.map(|token| blake3::hash(token.as_bytes())), anonymous }
    }

    /// Checks the credential, as far as this node knows.
    pub fn look(&self, headers: &HeaderMap, tokens: &Tokens, now: WallTime) -> Shown {
        let Some(given) = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes())) else {
            return Shown::Nothing;
        };
        if self.admin.is_some_and(|admin| blake3::hash(given) == admin) {
            return Shown::Right(Principal { who: Who::Admin, grants: None });
        }
        let Some((id, secret)) = parts(given) else {
            return Shown::Wrong;
        };
        match tokens.get(id) {
            None => {
                let shown = headers.get(AUTHORIZATION).cloned();
                Shown::UnknownToken(shown.into_iter().map(|value| (AUTHORIZATION, value)).collect())
            }
            Some(token) if token.verifies(secret, now) => Shown::Right(Principal::of(id, token)),
            Some(_) => Shown::Wrong,
        }
    }

    pub fn knows_an_admin_token(&self) -> bool {
        self.admin.is_some()
    }

    pub fn anonymous(&self) -> Principal {
        Principal { who: Who::Anonymous, grants: Some(self.anonymous.clone()) }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// The id is part of the token, so a node finds the row without comparing the secret with every row.
fn parts(given: &[u8]) -> Option<(TokenId, &[u8])> {
    let rest = std::str::from_utf8(given).ok()?.strip_prefix(TOKEN)?;
    let (id, secret) = rest.split_once('_')?;
    Some((id.parse().ok()?, secret.as_bytes()))
}

/// Returns a token in the form that its owner receives once.
pub fn written(id: TokenId, secret: &str) -> String {
    format!("{TOKEN}{id}_{secret}")
}

impl Principal {
    pub fn of(id: TokenId, token: &Token) -> Principal {
        Principal { who: Who::Token { id, name: token.name().clone() }, grants: Some(token.grants().clone()) }
    }

    /// Returns a principal without any grant: a call that was never judged is refused.
    pub fn nobody() -> Principal {
        Principal { who: Who::Anonymous, grants: Some(Grants::default()) }
    }

    pub fn covers(&self, verb: Verb, area: Area, name: &str) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.covers(verb, area, name))
    }

    pub fn covers_all(&self, verb: Verb, area: Area) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.covers_all_below(verb, area, ""))
    }

    pub fn may_order(&self) -> bool {
        self.grants.as_ref().is_none_or(Grants::may_order)
    }

    /// Returns the client token by which the caller was identified.
    pub fn token(&self) -> Option<TokenId> {
        match self.who {
            Who::Token { id, .. } => Some(id),
            Who::Anonymous | Who::Admin | Who::Unknown => None,
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.who == Who::Anonymous
    }

    fn has(&self, asked: &Asked) -> bool {
        let Some(grants) = &self.grants else { return true };
        match asked {
            Asked::Nothing => true,
            Asked::Order => grants.may_order(),
            Asked::Some(verb) => grants.iter().any(|grant| grant.has(*verb)),
            Asked::Below(verb, area, prefix) => grants.covers_all_below(*verb, *area, prefix),
            Asked::Named(verb, area, name) => grants.covers(*verb, *area, name),
        }
    }

    pub fn check(&self, asked: &Asked) -> Result<(), Problem> {
        if self.has(asked) { Ok(()) } else { Err(self.refusal(asked)) }
    }

    /// Checks that each operation of the command is granted.
    /// One operation without a grant refuses the whole command: a batch is applied as a whole or not at all
    /// (P12).
    pub fn check_command(&self, command: &Command) -> Result<(), Problem> {
        of_command(command).try_for_each(|asked| self.check(&asked))
    }

    /// A caller without a credential gets 401, since a credential may help. A known caller gets 403, with its
    /// own grants, which are no secret to it.
    fn refusal(&self, asked: &Asked) -> Problem {
        let needs = asked.to_string();
        if self.is_anonymous() {
            return unauthorized(format!(
                "this needs a token: `Authorization: Bearer …`, with the grant {needs:?}"
            ))
            .with("needs", needs);
        }
        let detail = format!("{} has no grant for {needs:?}", self.who);
        Problem::new(Code::Forbidden, detail).with("needs", needs).with("grants", self.written_grants())
    }

    /// Returns the grants as they are written for a token. Those of the admin token are all that there are.
    pub fn written_grants(&self) -> Vec<String> {
        match &self.grants {
            Some(grants) => grants.iter().map(Grant::to_string).collect(),
            None => ALL_GRANTS.map(str::to_string).to_vec(),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Anonymous => f.write_str("anonymous"),
            Who::Admin => f.write_str("admin"),
            Who::Unknown => f.write_str("unknown"),
            Who::Token { id, name } => write!(f, "token {id} ({name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::store::Store;

    const ORDER: Asked = Asked::Order;

    fn code(guard: &Guard, value: Option<&'static str>) -> Option<Code> {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        }
        let principal = match guard.look(&headers, &Tokens::default(), WallTime::default()) {
            Shown::Nothing => guard.anonymous(),
            Shown::Right(principal) => principal,
            Shown::UnknownToken(_) | Shown::Wrong => return Some(Code::Unauthorized),
        };
        principal.check(&ORDER).err().map(|problem| problem.code())
    }

    #[test]
    fn a_token_is_asked_for_and_compared() {
        let guard = Guard::new(Some("correct horse"), &Grants::default(), false);
        assert_eq!(code(&guard, Some("Bearer correct horse")), None);
        assert_eq!(code(&guard, Some("bearer  correct horse ")), None);
        for wrong in ["Bearer correct hors", "Bearer ", "Bearer eldest_x_y", "Basic Zm9v", "Bearer", ""] {
            assert_eq!(code(&guard, Some(wrong)), Some(Code::Unauthorized), "{wrong:?}");
        }
        assert_eq!(code(&guard, None), Some(Code::Unauthorized));
    }

    #[test]
    fn who_shows_nothing_may_do_what_is_granted_to_everybody() {
        assert_eq!(code(&Guard::new(None, &Grants::default(), true), None), None);
        let read: Grants = Grant::parse("read docs/app/").into_iter().collect();
        let anonymous = Guard::new(None, &read, false).anonymous();
        assert!(anonymous.covers(Verb::Read, Area::Docs, "app/x"));
        assert!(!anonymous.may_order() && !anonymous.covers(Verb::Write, Area::Docs, "app/x"));
        assert!(!anonymous.covers_all(Verb::Read, Area::Docs));
    }

    #[test]
    fn what_looks_like_a_token_is_taken_apart() {
        let id = TokenId(0xab);
        assert_eq!(parts(written(id, "s_t").as_bytes()), Some((id, "s_t".as_bytes())));
        for wrong in ["", "eldest_", "eldest_ab_s", "eldest_00000000000000ab", "x_00000000000000ab_s"] {
            assert_eq!(parts(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(Tokens::default().changed_in(&Store::default()).is_none());
    }
}
