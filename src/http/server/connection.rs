//! Serves a connection with hyper, watches for its silence, and closes it.
//!
//! Each connection has one timer, however many bytes move on it. Bytes only note the time; when the timer
//! fires, it reads the notes and computes when it has to look again (`admission::timeouts`).

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use axum::http::Version;
use axum::http::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::front::Front;
use super::sort::{self, Lane};
use super::tls::{self, Stream};
use crate::config::HttpLimits;
use crate::http::admission::{ConnectionPlace, ConnectionTimeouts, Decision};
use crate::http::request::{Connection, Context};
use crate::wire::MESSAGE_BYTES_MOST;

/// Concurrent streams of one HTTP/2 connection: enough for a busy client, but not the full capacity of the node.
/// Beyond it the client's HTTP library waits until one of its streams ends.
const STREAMS_MOST: u32 = 256;

/// The smallest buffer in which hyper reads a head; with less, ordinary requests and the longest ones of peers would fail.
const BUFFER_LEAST: usize = 64 << 10;
/// Method, route and the envelope's other headers.
const REST_OF_HEAD: usize = 4 << 10;
const _: () = assert!(MESSAGE_BYTES_MOST + REST_OF_HEAD <= BUFFER_LEAST);

/// The time limit of a reserve connection until its call has come, and between two calls of a peer.
/// There are few of these connections, and the probes and operators that they are for call at once.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that an ended connection has to write its remaining bytes: a slower reader is treated as gone.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The progress of the server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// Open calls are answered, then connections are closed.
    Draining,
    Over,
}

/// Everything needed to serve a connection.
pub struct Served {
    pub front: Arc<Front>,
    pub builder: Arc<Builder>,
    pub phase: watch::Receiver<Phase>,
    pub place: ConnectionPlace,
    pub lane: Lane,
}

impl Served {
    /// Returns the time limit of the first head.
    pub fn head_timeout(&self) -> Duration {
        self.front.context.limits.header_timeout.min(most(self.place.is_reserve))
    }
}

pub type Builder = auto::Builder<TokioExecutor>;

/// A head that exceeds the limit by a little is read and answered with a problem; beyond that hyper answers a bare 431 and closes.
/// The limit itself is checked in `front`, which knows the request's id and can explain the refusal.
pub fn builder(context: &Context) -> Builder {
    let head = context.limits.head_bytes;
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER_LEAST.max(head.saturating_mul(2)));
    let list = u32::try_from(head.saturating_mul(2)).unwrap_or(u32::MAX);
    builder.http2().max_concurrent_streams(STREAMS_MOST).max_header_list_size(list);
    builder
}

/// Serves until the peer closes, the connection is silent for too long, or the server stops.
pub async fn run(stream: TcpStream, served: Served) {
    let Served { front, builder, mut phase, place, lane } = served;
    let lane = Arc::new(lane);
    let limits = &front.context.limits;
    let timeouts = Arc::new(timeouts(limits, place.is_reserve));
    let opened = tokio::select! {
        opened = tls::open(stream, &front, timeouts.first_deadline()) => opened,
        // No request has come yet.
        _ = phase.wait_for(|phase| *phase != Phase::Serving) => None,
    };
    let Some((stream, certified)) = opened else {
        return;
    };
    let called = Arc::new(Notify::new());
    let (caller, is_reserve) = (place.caller.clone(), place.is_reserve);
    let known = Arc::new(Connection { timeouts: timeouts.clone(), caller, certified, is_reserve });
    let watched = TokioIo::new(Watched { stream, timeouts: timeouts.clone() });
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        // `busy` ends when the response exists, not when the client has it: from then on the answer time-out
        // counts, by `Untaken` in the body.
        let (front, known, busy) = (front.clone(), known.clone(), timeouts.begin(request.version()));
        let last = is_reserve && request.version() < Version::HTTP_2;
        if is_reserve {
            called.notify_one();
        }
        let (request, lane) = (request.map(axum::body::Body::new), lane.clone());
        async move {
            let mut response = sort::answer(&lane, front, known, request).await;
            // HTTP/1 clients learn from the header that this was the last call; HTTP/2 clients learn it from
            // GOAWAY, which `called` below causes.
            if last {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            drop(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder.serve_connection(watched, service));
    let mut check = pin!(sleep(timeouts.first_deadline()));
    // A reserve connection ends with its first call.
    let mut draining = false;
    loop {
        tokio::select! {
            // Errors are the client's: it disconnected, or did not speak HTTP and got a refusal.
            _ = connection.as_mut() => return,
            () = check.as_mut() => match timeouts.check() {
                Decision::CheckAfter(after) => check.as_mut().reset(Instant::now() + after),
                Decision::Close => break,
            },
            () = called.notified(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            changed = phase.changed() => match changed.map(|()| *phase.borrow_and_update()) {
                Ok(Phase::Draining) if !draining => {
                    draining = true;
                    connection.as_mut().graceful_shutdown();
                }
                Ok(Phase::Serving | Phase::Draining) => {}
                Ok(Phase::Over) | Err(_) => return,
            },
        }
    }
    // The remaining bytes are written, for example a GOAWAY or the rest of a refusal; no further request is
    // read.
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection.as_mut() => {}
        () = sleep_until(Instant::now() + CLOSE_TIMEOUT) => {}
    }
}

fn timeouts(limits: &HttpLimits, is_reserve: bool) -> ConnectionTimeouts {
    let [header, idle, answer] = [limits.header_timeout, limits.idle_timeout, limits.answer_timeout]
        .map(|time| time.min(most(is_reserve)));
    ConnectionTimeouts::new(header, idle, answer)
}

fn most(is_reserve: bool) -> Duration {
    if is_reserve { RESERVE_TIMEOUT } else { Duration::MAX }
}

/// A stream that reports when bytes move, and that takes a limit for unacknowledged bytes.
/// hyper does not show these events, and the time-outs need them.
struct Watched {
    stream: Stream,
    timeouts: Arc<ConnectionTimeouts>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(task, buf);
        let ended = match &polled {
            // No bytes although there was room: the other side has closed in order. A reset is an error, and
            // is not counted as a close: a device in between may have sent it (P45).
            Poll::Ready(Ok(())) => buf.remaining() > 0,
            // TLS reports a connection that ended without its closing message in this way.
            Poll::Ready(Err(error)) => error.kind() == io::ErrorKind::UnexpectedEof,
            Poll::Pending => false,
        };
        if buf.filled().len() > before {
            self.timeouts.read_some();
        } else if ended {
            self.timeouts.peer_closed();
        }
        polled
    }
}

impl Watched {
    /// The handler that wants the limit has only the time-outs, and not the socket. So the option is set
    /// here, once, before the next write.
    fn before_write(&self) {
        if let Some(most_ms) = self.timeouts.user_timeout_ms() {
            // Without this option the system's own time-out applies, which is about a quarter of an hour.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(self.stream.socket(), most_ms);
        }
    }

    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(1..)) => self.timeouts.wrote_some(),
            Poll::Ready(_) => {}
            Poll::Pending => self.timeouts.write_waits(),
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.before_write();
        let polled = Pin::new(&mut self.stream).poll_write(task, buf);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.before_write();
        let polled = Pin::new(&mut self.stream).poll_write_vectored(task, bufs);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
