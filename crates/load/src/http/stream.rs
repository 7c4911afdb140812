//! A connection, plain or with TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::target::{Secured, Target};
use super::failure::Failure;

#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub async fn connect(target: &Target, patience: Duration) -> Result<Stream, Failure> {
        let connected = timeout(patience, Stream::open(target)).await.map_err(|_| Failure::ConnectTimeout)?;
        connected.map_err(|error| {
            match error.get_ref().is_some_and(|inner| inner.is::<eldest_tls::rustls::Error>()) {
                true => Failure::Handshake,
                false => Failure::Connect(error.kind()),
            }
        })
    }

    async fn open(target: &Target) -> io::Result<Stream> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        let Some(Secured { config, name }) = &target.secured else {
            return Ok(Stream::Plain(stream));
        };
        let stream = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Whether nothing has arrived since the last answer: neither the end of the stream nor unexpected bytes. Needs
    /// no system call as long as nothing has arrived.
    pub fn is_fresh(&self) -> bool {
        let tcp = match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        };
        matches!(tcp.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(task, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(task, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, task: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(task, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(task, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(task),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(task),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(task),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(task),
        }
    }
}
