//! Names in paths and queries.

use crate::error::Error;

/// Encodes a name as one segment of a path, including its slashes. Fails with [`Error::BadOption`] if the name is
/// empty, `.` or `..`.
pub fn segment(what: &'static str, name: &str) -> Result<String, Error> {
    match name {
        "" => Err(Error::BadOption { name: what, why: "must not be empty" }),
        // URL libraries remove these segments, even encoded ones, and the call would go to another path.
        "." | ".." => Err(Error::BadOption { name: what, why: "must not be . or .." }),
        _ => Ok(encoded(name)),
    }
}

/// The query `?a=b&c=d` of the pairs that have a value. Empty if there is none.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            query.push_str(&encoded(&value));
        }
    }
    query
}

/// Encodes text as one segment of a path, or as one value of a query.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_travel_whole() {
        assert_eq!(segment("role", "a/b é").ok().as_deref(), Some("a%2Fb%20%C3%A9"));
        let query = query([("a", Some("x&y".into())), ("b", None), ("c", Some("1".into()))]);
        assert_eq!(query, "?a=x%26y&c=1");
    }

    #[test]
    fn a_name_never_leads_elsewhere() {
        for name in ["", ".", ".."] {
            assert!(segment("role", name).is_err(), "{name:?}");
        }
        assert_eq!(segment("key", "../roles").ok().as_deref(), Some("..%2Froles"));
    }
}
