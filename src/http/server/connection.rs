//! A connection is served by hyper; this module watches for its silence and closes it.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::front::Front;
use crate::http::request::{ConnectionTimeouts, Context, Decision};
use crate::wire::MESSAGE_BYTES_MOST;

/// Concurrent streams of one HTTP/2 connection: what a busy client multiplexes, and not all that the node can take.
const STREAMS_MOST: u32 = 256;

/// The least that hyper reads a head into; below it ordinary requests fail, and so do peers' longest.
const BUFFER_LEAST: usize = 64 << 10;
/// Method, route and the envelope's other headers.
const REST_OF_HEAD: usize = 4 << 10;
const _: () = assert!(MESSAGE_BYTES_MOST + REST_OF_HEAD <= BUFFER_LEAST);

/// What an ended connection may still take to write what it has: a reader that is slower is gone.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How far the server's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// Answers what is under way, and closes.
    Draining,
    Over,
}

pub type Builder = auto::Builder<TokioExecutor>;

/// A head that is larger than the limit, but not by much, is read and answered with a problem; beyond that hyper
/// answers a bare 431 and closes.
pub fn builder(context: &Context) -> Builder {
    let head = context.limits.head_bytes;
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER_LEAST.max(head.saturating_mul(2)));
    let list = u32::try_from(head.saturating_mul(2)).unwrap_or(u32::MAX);
    builder.http2().max_concurrent_streams(STREAMS_MOST).max_header_list_size(list);
    builder
}

/// Serves until the peer closes, the connection is silent for too long, or the server ends.
pub async fn run(
    stream: TcpStream,
    front: Arc<Front>,
    builder: Arc<Builder>,
    mut phase: watch::Receiver<Phase>,
) {
    let limits = &front.context.limits;
    let timeouts = Arc::new(ConnectionTimeouts::new(limits.header_timeout, limits.idle_timeout));
    let watched = TokioIo::new(Watched { stream, timeouts: timeouts.clone() });
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        let (front, busy) = (front.clone(), timeouts.begin(request.version()));
        request.extensions_mut().insert(timeouts.clone());
        async move {
            let response = front.answer(request.map(axum::body::Body::new)).await;
            drop(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(builder.serve_connection(watched, service));
    let mut check = pin!(sleep(timeouts.first_deadline()));
    let mut draining = false;
    loop {
        tokio::select! {
            // Errors are the client's: it went away, or did not speak HTTP and was told so.
            _ = connection.as_mut() => return,
            () = check.as_mut() => match timeouts.check() {
                Decision::CheckAfter(after) => check.as_mut().reset(Instant::now() + after),
                Decision::Close => break,
            },
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
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = connection.as_mut() => {}
        () = sleep_until(Instant::now() + CLOSE_TIMEOUT) => {}
    }
}

/// A stream that tells when bytes move, and is told how long they may go unheard.
struct Watched {
    stream: TcpStream,
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
        if buf.filled().len() > before {
            self.timeouts.read_some();
        } else if matches!(polled, Poll::Ready(Ok(()))) && buf.remaining() > 0 {
            self.timeouts.peer_closed();
        }
        polled
    }
}

impl Watched {
    fn before_write(&self) {
        if let Some(most_ms) = self.timeouts.user_timeout_ms() {
            // Without it the system's own time-out holds, which is some quarter of an hour.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(&self.stream, most_ms);
        }
    }

    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.timeouts.wrote_some();
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
