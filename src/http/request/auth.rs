//! The admin routes take calls with the configured token. Without a configured token they take calls on a loopback
//! listener only.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::http::answer::{Code, Problem, unauthorized};

#[derive(Debug)]
pub struct AdminAuth {
    /// Hashes are compared, in constant time: neither length nor content of the token can be told by timing.
    token: Option<blake3::Hash>,
    loopback: bool,
}

impl AdminAuth {
    pub fn new(token: Option<&str>, loopback: bool) -> AdminAuth {
        AdminAuth { token: token.map(|token| blake3::hash(token.as_bytes())), loopback }
    }

    /// Whether a call comes with the configured token.
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
        self.token.is_some() && self.check(headers).is_ok()
    }

    pub fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = self.token else {
            let open = "no admin token is configured, so this route is open on loopback listeners only";
            return if self.loopback { Ok(()) } else { Err(Problem::new(Code::Forbidden, open)) };
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
        match given {
            None => Err(unauthorized()),
            Some(given) if blake3::hash(given) == token => Ok(()),
            Some(_) => Err(Problem::new(Code::Forbidden, "that is not the admin token")),
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn code(admin: &AdminAuth, value: Option<&'static str>) -> Option<Code> {
        let mut headers = HeaderMap::new();
        if let Some(value) = value {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        }
        admin.check(&headers).err().map(|problem| problem.code())
    }

    #[test]
    fn a_token_is_asked_for_and_compared() {
        let admin = AdminAuth::new(Some("correct horse"), true);
        assert_eq!(code(&admin, Some("Bearer correct horse")), None);
        assert_eq!(code(&admin, Some("bearer  correct horse ")), None);
        assert_eq!(code(&admin, Some("Bearer correct hors")), Some(Code::Forbidden));
        assert_eq!(code(&admin, Some("Bearer ")), Some(Code::Forbidden));
        for none in [None, Some("Basic Zm9v"), Some("Bearer"), Some("")] {
            assert_eq!(code(&admin, none), Some(Code::Unauthorized), "{none:?}");
        }
    }

    #[test]
    fn without_a_token_only_loopback_is_open() {
        assert_eq!(code(&AdminAuth::new(None, true), None), None);
        assert_eq!(code(&AdminAuth::new(None, false), None), Some(Code::Forbidden));
        assert_eq!(code(&AdminAuth::new(None, false), Some("Bearer x")), Some(Code::Forbidden));
    }
}
