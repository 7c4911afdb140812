//! The body of a response in pieces, so that the node can tell whether its reader takes any. The body's memory is accounted for until the
//! last piece has left, no matter where it waits until then.
//!
//! ```text
//!   Body, one frame ─► Accounted: owner of the bytes ─► pieces of 16 KiB, each a reference ─► hyper's buffer ─► socket
//!                         └ given back when the last piece is dropped
//! ```
//!
//! hyper asks for the next piece when it has room for it: on HTTP/2 when the client's window is open. So each
//! piece that is asked for shows that the reader has taken earlier ones.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::http::admission::{Held, Seat, Untaken};

/// A slow reader must take at least one piece within the answer time-out. Smaller pieces would cost more calls for each response;
/// much larger ones would end connections that are slow but alive.
const PIECE: usize = 16 << 10;

/// The accounting of a response for as long as its bytes are anywhere in this process.
#[derive(Debug, Default)]
pub struct Account {
    pub held: Option<Held>,
    pub untaken: Option<Untaken>,
}

/// Bytes that free their reserved memory when the last piece of them is gone.
struct Accounted {
    bytes: Bytes,
    _held: Option<Held>,
    _untaken: Option<Untaken>,
}

impl AsRef<[u8]> for Accounted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct HeldBody {
    inner: Body,
    /// The number of bytes of the body that have not been passed on yet.
    left: u64,
    /// The rest of the current frame.
    piece: Bytes,
    account: Account,
    /// The connection, for as long as the response is in this process: it is notified when more has been taken.
    progress: Option<Untaken>,
}

/// `length` is that of the whole body; a stream of unknown length has its own bounds.
pub fn held(inner: Body, length: u64, account: Account, progress: Option<Untaken>) -> Body {
    Body::new(HeldBody { inner, left: length, piece: Bytes::new(), account, progress })
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.piece.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(task)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        // A body of known length is one frame, and that frame takes the whole account with
                        // it.
                        let Account { held, untaken } = std::mem::take(&mut self.account);
                        self.piece = Bytes::from_owner(Accounted { bytes, _held: held, _untaken: untaken });
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        if let Some(progress) = &self.progress {
            progress.goes_on();
        }
        let most = PIECE.min(self.piece.len());
        let piece = self.piece.split_to(most);
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

// A body that keeps its seat until it has been sent or dropped, because it uses memory that counts.

pub struct Seated {
    body: Body,
    _seat: Arc<Seat>,
}

impl Seated {
    pub fn body(body: Body, seat: Arc<Seat>) -> Body {
        Body::new(Seated { body, _seat: seat })
    }
}

impl hyper::body::Body for Seated {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::config::HttpLimits;
    use crate::http::admission::Callers;

    #[tokio::test]
    async fn memory_is_held_until_the_last_piece_has_gone() {
        let whole = PIECE * 2 + 7;
        let limits = HttpLimits { bodies_bytes: whole, bodies_bytes_each: whole, ..HttpLimits::default() };
        let callers = Callers::new(&limits);
        let caller = callers.place([10, 0, 0, 1].into(), false, 0).expect("there is room").caller.clone();
        let account = Account { held: caller.hold(whole), untaken: None };
        let mut body = held(Body::from(vec![b'x'; whole]), whole as u64, account, None);
        assert_eq!(body.size_hint().exact(), Some(whole as u64));
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.expect("it is memory").into_data().expect("it is data"));
        }
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [PIECE, PIECE, 7]);
        let last = pieces.pop();
        drop(pieces);
        assert!(caller.hold(1).is_none(), "its last piece waits somewhere");
        drop(last);
        assert!(caller.hold(whole).is_some());
    }
}
