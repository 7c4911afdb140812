//! The trace that a call belongs to, in the W3C's `traceparent` header.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of `00-<32 digits>-<16 digits>-<2 digits>`; additions of later versions are ignored.
const LENGTH: usize = 55;

const SAMPLED: u8 = 1;

/// The place of one span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
    /// The caller's span.
    pub parent: Option<u64>,
    /// Whether the caller wants its trace to be kept.
    pub sampled: bool,
}

impl TraceContext {
    /// Begins a new span under the one that the headers name, or the first span of a new trace.
    /// A header that does not follow the standard is ignored, as the standard asks: a new trace begins.
    pub fn begin(headers: &HeaderMap) -> TraceContext {
        let span = random();
        let given = headers.get(TRACEPARENT).and_then(|value| parse(value.as_bytes()));
        match given {
            Some((trace, parent, flags)) => {
                TraceContext { trace, span, parent: Some(parent), sampled: flags & SAMPLED != 0 }
            }
            None => {
                let trace = u128::from(random()) << 64 | u128::from(random());
                TraceContext { trace, span, parent: None, sampled: true }
            }
        }
    }

    /// Returns the header for calls that are made on behalf of this call.
    pub fn header(&self) -> HeaderValue {
        let TraceContext { trace, span, .. } = self;
        let text = format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.sampled));
        HeaderValue::from_str(&text).expect("digits")
    }
}

/// Returns a number that is not 0, since 0 means no span.
/// Without random numbers all spans would have one id: spans are then useless, and no call fails for that.
fn random() -> u64 {
    getrandom::u64().unwrap_or(1).max(1)
}

/// Returns trace, span and flags, if they follow the standard.
fn parse(text: &[u8]) -> Option<(u128, u64, u8)> {
    let text = str::from_utf8(text).ok()?;
    let (version, known) = (text.get(..2)?, text.get(..LENGTH)?);
    let has_more = text.len() > LENGTH;
    if version == "ff" || (version == "00" && has_more) || (has_more && text.as_bytes()[LENGTH] != b'-') {
        return None;
    }
    let mut parts = known.split('-');
    let mut digits = |count: usize| {
        let part = parts.next()?;
        let lower = part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (part.len() == count && lower).then_some(part)
    };
    let (_, trace, span, flags) = (digits(2)?, digits(32)?, digits(16)?, digits(2)?);
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn begun(text: &'static str) -> TraceContext {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::from_static(text));
        TraceContext::begin(&headers)
    }

    #[test]
    fn a_span_belongs_to_its_callers_trace() {
        let own = begun(GIVEN);
        assert_eq!(
            (own.trace, own.parent),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, Some(0x00f0_67aa_0ba9_02b7))
        );
        assert!(own.sampled && own.span != 0);
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, own.header());
        let next = TraceContext::begin(&headers);
        assert_eq!((next.trace, next.parent, next.sampled), (own.trace, Some(own.span), true));
        assert!(!begun("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").sampled);
        assert!(begun("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").parent.is_some());
    }

    #[test]
    fn what_is_no_parent_begins_a_trace() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        ] {
            let own = begun(wrong);
            assert_eq!(own.parent, None, "{wrong}");
            assert!(own.trace != 0 && own.sampled);
        }
    }
}
