//! Bodies are read within a size and a time, and parsed as JSON.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::http::answer::{Code, Problem};

/// Reads it all, or says why not. A body that came with its head costs no timer and no copy.
pub async fn read(mut body: Body, most: usize, deadline: Instant) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let reading = async {
        let first = next(&mut body).await?.unwrap_or_default();
        if first.len() > most {
            return Err(too_large(most));
        }
        if body.is_end_stream() {
            return Ok(first);
        }
        let mut whole = BytesMut::from(first.as_ref());
        while let Some(more) = next(&mut body).await? {
            if whole.len() + more.len() > most {
                return Err(too_large(most));
            }
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    };
    match timeout_at(deadline, reading).await {
        Ok(read) => read,
        Err(_) => Err(Problem::new(Code::RequestTimeout, "the body took too long; nothing was done with it")),
    }
}

/// The next piece; none at the end.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(_)) => {
                return Err(Problem::new(
                    Code::RequestTimeout,
                    "the body broke off; nothing was done with it",
                ));
            }
            // Trailers say nothing that we ask for.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn too_large(most: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("the body has more than {most} bytes")).with("most", most)
}

/// A stream of commands.
pub fn is_ndjson(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| essence(value).eq_ignore_ascii_case(b"application/x-ndjson"))
}

/// A media type without its parameters.
fn essence(value: &HeaderValue) -> &[u8] {
    value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// JSON by its name, or what a plain `curl -d` calls it, or not called anything.
pub fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = essence(value);
    let ends_in_json = essence.len() > 5 && essence[essence.len() - 5..].eq_ignore_ascii_case(b"+json");
    let known = [b"application/json".as_slice(), b"application/x-www-form-urlencoded"];
    if ends_in_json || essence.is_empty() || known.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, "send JSON, with `content-type: application/json` or none"))
}

/// One JSON value, as it stands.
pub fn raw(body: &[u8]) -> Result<&RawValue, Problem> {
    Ok(serde_json::from_slice(body)?)
}

/// For bodies that say nothing: empty or `{}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// An object of known members. An empty body is an empty object.
pub fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        match inner.is_data() {
            true => Problem::field(&path, inner.to_string()),
            false => inner.into(),
        }
    })?;
    reader.end()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        number: Option<u32>,
    }

    fn problem(body: &str) -> Option<(Code, serde_json::Value)> {
        let problem = object::<Known>(body.as_bytes()).err()?;
        let around = crate::http::answer::Surroundings { request_id: "", leader: None };
        let text = serde_json::to_value(problem.document(around)).expect("it is plain data");
        Some((problem.code(), text["field"].clone()))
    }

    /// At once, as most come, or piece by piece.
    #[tokio::test]
    async fn a_body_has_at_most_so_many_bytes() {
        let far = Instant::now() + std::time::Duration::from_secs(3600);
        let pieces = |pieces: &'static [&'static str]| {
            let pieces = pieces.iter().map(|piece| Ok::<_, std::convert::Infallible>(*piece));
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        for whole in [Body::from("abcd"), pieces(&["abcd"]), pieces(&["ab", "cd"])] {
            assert_eq!(read(whole, 4, far).await.ok().as_deref(), Some(&b"abcd"[..]));
        }
        for larger in [Body::from("abcde"), pieces(&["abcde"]), pieces(&["ab", "cde"])] {
            let refused = read(larger, 4, far).await.err().map(|problem| problem.code());
            assert_eq!(refused, Some(Code::BodyTooLarge));
        }
    }

    #[test]
    fn objects_are_read_or_the_field_is_named() {
        for good in ["", " \n", "{}", "{\"number\": 7}", "{\"number\": null}"] {
            assert_eq!(problem(good), None, "{good}");
        }
        assert_eq!(object::<Known>(b"{\"number\":7}").ok().and_then(|known| known.number), Some(7));
        for wrong in ["{\"number\": \"7\"}", "{\"number\": -1}", "{\"number\": 1.5}"] {
            assert_eq!(problem(wrong), Some((Code::BadField, "number".into())), "{wrong}");
        }
        assert_eq!(problem("{\"nubmer\": 7}"), Some((Code::BadField, "nubmer".into())));
        for broken in ["{", "{}x", "{\"number\": 7,}", "\u{0}", "nul"] {
            assert_eq!(problem(broken).map(|(code, _)| code), Some(Code::BadJson), "{broken}");
        }
        assert_eq!(problem("[]").map(|(code, _)| code), Some(Code::BadField));
    }

    #[test]
    fn json_has_several_names() {
        let check = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            check_media_type(&headers).is_ok()
        };
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
            "application/x-www-form-urlencoded",
            "",
        ] {
            assert!(check(good), "{good}");
        }
        for bad in ["text/plain", "application/xml", "json", "+json", "application/jsonx"] {
            assert!(!check(bad), "{bad}");
        }
        assert!(check_media_type(&HeaderMap::new()).is_ok());
    }
}
