//! A connection may begin with a TLS handshake, in which the caller may prove its identity.
//!
//! A caller without TLS is answered if that is allowed, and otherwise told that it is not. The first byte distinguishes the two: a
//! handshake begins with a byte that no HTTP request begins with.

use std::io;
use std::pin::Pin;
use std::task::{Context as Task, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eldest_tls::Caller;
use eldest_tls::rustls::pki_types::UnixTime;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{front::Front, refusal};
use crate::driver::Tls;

/// The type of record that a handshake begins with.
pub const HANDSHAKE: u8 = 0x16;

#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Returns the stream for HTTP and, for a connection with TLS, the caller's identity, which is empty without
/// a node's certificate. Returns None if there is nothing left to serve. A plain connection has no identity
/// at all, and is judged by the cluster's secret instead (`peer`, `request::origin`).
pub async fn open(stream: TcpStream, front: &Front, patience: Duration) -> Option<(Stream, Option<Caller>)> {
    let Some(tls) = &front.context.setup.tls else {
        return Some((Stream::Plain(stream), None));
    };
    let from = stream.peer_addr().ok()?;
    // A silent socket has the same time limit as a silent request.
    match timeout(patience, begin(stream, tls)).await {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => {
            front
                .context
                .handshakes
                .note(from, &eldest_tls::explain(&error).unwrap_or_else(|| error.to_string()));
            None
        }
        // A socket that stays silent is closed without a line in the log.
        Err(_) => None,
    }
}

async fn begin(stream: TcpStream, tls: &Tls) -> io::Result<Option<(Stream, Option<Caller>)>> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        // The client only tested whether the port listens.
        0 => Ok(None),
        _ if first == [HANDSHAKE] => shake_hands(stream, tls).await.map(Some),
        _ if tls.takes_plain => Ok(Some((Stream::Plain(stream), None))),
        _ => refusal::write(stream, refusal::PLAIN).await.map(|()| None),
    }
}

/// The certificates are read for each handshake, so a renewed file counts from the next connection on. Open
/// connections stay as they were judged.
async fn shake_hands(stream: TcpStream, tls: &Tls) -> io::Result<(Stream, Option<Caller>)> {
    let stream = TlsAcceptor::from(tls.certificates.server()).accept(stream).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let caller = tls.certificates.caller(chain, UnixTime::since_unix_epoch(now));
    Ok((Stream::Tls(Box::new(stream)), Some(caller)))
}

impl Stream {
    pub fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, task: &mut Task<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(task, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(task, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, task: &mut Task<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(task, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(task, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        task: &mut Task<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(task, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(task, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(task),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(task),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(task),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(task),
        }
    }
}
