//! Reads bodies within a size and a time limit, and parses them as JSON.
//!
//! Three bounds hold for each body: its size, which is checked before the first byte if the caller states it;
//! the time for all of it; and a least rate, so that a caller that sends a byte now and then does not hold
//! memory for all of that time.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Duration, Instant, timeout_at};

use crate::http::admission::{Caller, Held, no_memory};
use crate::http::answer::{Code, Problem};

/// The time before a body's rate counts: a lost packet is sent again within it.
const GRACE: Duration = Duration::from_secs(3);
/// The minimum rate in bytes per second. A slower body does not mean a slow line: the sender holds it back. The rate counts from
/// the beginning of the body: after `n` bytes it may have taken the grace and `n` / 16 KiB seconds.
const RATE_LEAST: usize = 16 << 10;

/// Reads the whole body. A body that arrives with its head costs no timer and no copy.
pub async fn read(body: Body, most: usize, deadline: Instant) -> Result<Bytes, Problem> {
    Ok(read_held(body, most, deadline, None).await?.0)
}

/// Does the same if there is memory for this caller's bodies. The memory is held as long as the returned guard.
/// The bound of one caller and that of all callers hold together; beyond either the call is refused, and what
/// was read of the body is dropped.
pub async fn read_held(
    mut body: Body,
    most: usize,
    deadline: Instant,
    caller: Option<&Arc<Caller>>,
) -> Result<(Bytes, Option<Held>), Problem> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut reading = Reading { most, began: Instant::now(), deadline, held: None };
    // The first piece is in hyper's buffer already, so its memory is counted after it was read. Later pieces
    // are counted as the buffer for the whole body grows.
    let first = reading.next(&mut body, 0).await?.unwrap_or_default();
    if let Some(caller) = caller {
        reading.held = Some(caller.hold(first.len()).ok_or_else(no_memory)?);
    }
    if body.is_end_stream() {
        return Ok((first, reading.held));
    }
    let mut whole = BytesMut::from(first.as_ref());
    drop(first);
    while let Some(more) = reading.next(&mut body, whole.len()).await? {
        let before = whole.capacity();
        whole.extend_from_slice(&more);
        // The allocated capacity counts, filled or not.
        let grown = whole.capacity().saturating_sub(before);
        if grown > 0 && reading.held.as_mut().is_some_and(|held| !held.grow(grown)) {
            return Err(no_memory());
        }
    }
    Ok((whole.freeze(), reading.held))
}

/// A body too large to be held in memory: it is read piece by piece, and each piece is used before the next one is read.
#[derive(Debug)]
pub struct LongBody {
    body: Body,
    reading: Reading,
    so_far: usize,
}

impl LongBody {
    pub fn new(body: Body, most: usize, deadline: Instant) -> LongBody {
        let reading = Reading { most, began: Instant::now(), deadline, held: None };
        LongBody { body, reading, so_far: 0 }
    }

    /// Returns the next piece, or None at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = self.reading.next(&mut self.body, self.so_far).await?;
        self.so_far += piece.as_ref().map_or(0, Bytes::len);
        Ok(piece)
    }

    /// Excludes the time that this node needed for the last piece: the rate is that of the sender.
    /// Otherwise a disk or a thread of this node that is slow would make a fast sender look slow.
    pub fn exclude_pause(&mut self, by: Duration) {
        self.reading.began += by;
    }
}

/// A body that is being read.
#[derive(Debug)]
struct Reading {
    most: usize,
    began: Instant,
    deadline: Instant,
    held: Option<Held>,
}

impl Reading {
    /// Returns the next piece after `so_far` bytes, or None at the end.
    async fn next(&self, body: &mut Body, so_far: usize) -> Result<Option<Bytes>, Problem> {
        let in_time = GRACE + Duration::from_millis((so_far * 1000 / RATE_LEAST) as u64);
        // The limit for the next piece follows from the bytes so far, so one timer notices a sender that is
        // slow and one that stops.
        let piece = timeout_at(self.deadline.min(self.began + in_time), next(body)).await;
        let late = "the body took too long; nothing was done with it";
        let piece = piece.map_err(|_| Problem::new(Code::RequestTimeout, late))??;
        match piece.as_ref().is_some_and(|piece| so_far + piece.len() > self.most) {
            true => Err(too_large(self.most)),
            false => Ok(piece),
        }
    }
}

/// Returns the next piece, or None at the end.
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
            // Trailers are ignored.
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

/// Returns whether the body is a stream of commands.
pub fn is_ndjson(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| essence(value).eq_ignore_ascii_case(b"application/x-ndjson"))
}

/// Returns a media type without its parameters.
fn essence(value: &HeaderValue) -> &[u8] {
    value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Accepts JSON, the media type of a plain `curl -d`, or none.
/// A plain `curl -d` sends the type of a form, and would otherwise need another option. A page of a foreign
/// origin could send that type without a preflight; the check of the origin stops it (`web`).
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

/// Returns the body as one JSON value, unparsed.
pub fn raw(body: &[u8]) -> Result<&RawValue, Problem> {
    Ok(serde_json::from_slice(body)?)
}

/// For bodies without content: empty or `{}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// Parses an object of known members. An empty body is an empty object.
/// An unknown member is refused, so that a misspelt name is never ignored. The problem names the member by
/// its path.
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
    use futures_util::StreamExt;

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

    /// The body arrives at once, as most do, or piece by piece.
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

    /// A body that sends a byte now and then is not worth waiting for.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up_long_before_its_time() {
        let far = Instant::now() + Duration::from_secs(3600);
        let drip = |bytes: usize| {
            let piece = Bytes::from(vec![b' '; bytes]);
            Body::from_stream(futures_util::stream::repeat(piece).then(|piece| async {
                tokio::time::sleep(Duration::from_millis(900)).await;
                Ok::<_, std::convert::Infallible>(piece)
            }))
        };
        for (bytes, code, seconds) in [(1, Code::RequestTimeout, 3), (RATE_LEAST, Code::BodyTooLarge, 58)] {
            let began = Instant::now();
            let refused = read(drip(bytes), 64 * RATE_LEAST, far).await.err().map(|problem| problem.code());
            assert_eq!((refused, began.elapsed().as_secs()), (Some(code), seconds));
        }
    }

    #[tokio::test]
    async fn what_is_held_of_a_body_is_given_back_with_it() {
        let limits =
            crate::config::HttpLimits { bodies_bytes: 100, bodies_bytes_each: 100, ..Default::default() };
        let callers = crate::http::admission::Callers::new(&limits);
        let caller = callers.place([10, 0, 0, 1].into(), false, 0).expect("there is room").caller.clone();
        let far = Instant::now() + Duration::from_secs(3600);
        let refused = read_held(Body::from(vec![b' '; 101]), 1000, far, Some(&caller)).await.err();
        assert_eq!(refused.map(|problem| problem.code()), Some(Code::TooManyRequests));
        let held =
            read_held(Body::from(vec![b' '; 60]), 1000, far, Some(&caller)).await.expect("there is room");
        assert!(caller.hold(41).is_none());
        drop(held);
        assert!(caller.hold(100).is_some());
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
