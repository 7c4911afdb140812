//! `Idempotency-Key`: which call a write is, as hashes. The store remembers them with the result.

use axum::http::request::Parts;

use super::headers::IDEMPOTENCY_KEY;
use super::path::decode;
use super::problem::Problem;
use crate::types::Call;

/// A line's worth: clients send random numbers, or names of their own jobs.
const KEY_MOST: usize = 255;

/// None without the header. The same key with another method, path or body is another call under a used name.
pub fn call(parts: &Parts, body: &[u8]) -> Result<Option<Call>, Problem> {
    let mut keys = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else {
        return Ok(None);
    };
    let key = key.as_bytes();
    let printable = key.iter().all(|byte| (b' '..=b'~').contains(byte));
    if keys.next().is_some() || !printable || !(1..=KEY_MOST).contains(&key.len()) {
        let detail = format!("send one Idempotency-Key of 1 to {KEY_MOST} printable ASCII characters");
        return Err(Problem::field("Idempotency-Key", detail));
    }
    Ok(Some(Call { key: hash(&[key]), body: what_is_asked(parts, body) }))
}

/// The path is decoded first: on its way through another node its percent signs may have changed.
fn what_is_asked(parts: &Parts, body: &[u8]) -> u64 {
    let path = parts.uri.path();
    let decoded = decode(path);
    let path = decoded.as_deref().unwrap_or(path);
    hash(&[parts.method.as_str().as_bytes(), path.as_bytes(), body]) as u64
}

/// Of all parts, each with its length, so that no two lists of parts look the same.
fn hash(parts: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn asked(path: &str, key: &[u8], body: &str) -> Result<Option<Call>, Problem> {
        let request = Request::put(path).header(IDEMPOTENCY_KEY, key).body(());
        let (parts, ()) = request.expect("it is well formed").into_parts();
        call(&parts, body.as_bytes())
    }

    #[test]
    fn a_call_is_its_key_and_what_is_asked() {
        let call = |path, key, body| asked(path, key, body).expect("the key is sound").expect("there is one");
        let first = call("/v1/docs/a%20b", b"k 1", "1");
        assert_eq!(first, call("/v1/docs/%61%20b", b"k 1", "1"));
        assert_eq!(first.key, call("/v1/docs/c", b"k 1", "2").key);
        assert_ne!(first.body, call("/v1/docs/a%20b", b"k 1", "2").body);
        assert_ne!(first.body, call("/v1/docs/a", b"k 1", "1").body);
        assert_ne!(first.key, call("/v1/docs/a%20b", b"k 2", "1").key);
    }

    #[test]
    fn a_key_is_a_short_printable_line() {
        let long = [b'k'; KEY_MOST + 1];
        assert!(asked("/", &long[1..], "").is_ok());
        for wrong in [b"".as_slice(), &long, b"a\tb", "é".as_bytes()] {
            assert!(asked("/", wrong, "").is_err());
        }
    }
}
