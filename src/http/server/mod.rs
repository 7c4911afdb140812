//! The listener accepts connections, bounds their number, and gives each a task of its own.

mod connection;
mod front;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use connection::{Builder, Phase};
pub use front::Front;

use crate::http::request::Context;

/// Connections beyond the limit that each peer's address may open: its messages, its watch and what it forwards must get
/// through when clients have taken all the others.
const RESERVE_EACH: usize = 64;

/// Connections that are being told that there are too many. Beyond it they are closed without a word.
const REFUSALS_MOST: usize = 64;

/// What a refused client may take to read why.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(500);

/// Without file descriptors accepting fails at once, again and again; some are given back meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What is under way when the server ends may take this long. Clients time out later; supervisors kill later.
const DRAIN_MOST: Duration = Duration::from_secs(5);

/// The rest is read as problems are everywhere: it must not need the machinery that there is no room for.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-length: 218\r\n\r\n\
    {\"type\":\"urn:eldest:problem:too_many_requests\",\"title\":\"Too much at once\",\"status\":503,\
    \"detail\":\"too many connections; close some, or call another node\",\"code\":\"too_many_requests\",\
    \"retryable\":true,\"request_id\":\"none\"}\n";

struct Server {
    front: Arc<Front>,
    builder: Arc<Builder>,
    open: Arc<AtomicUsize>,
    refusing: Arc<AtomicUsize>,
    phase: watch::Sender<Phase>,
}

/// Serves until `stop` completes, then answers what is under way and returns. The listener closes at once, so that the
/// others learn that this node is gone.
pub async fn serve(listener: TcpListener, context: Arc<Context>, stop: impl Future) -> io::Result<()> {
    let server = Server::new(context);
    {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                accepted = listener.accept() => server.accept(accepted).await,
                _ = stop.as_mut() => break,
            }
        }
    }
    drop(listener);
    server.drain().await;
    Ok(())
}

/// Counts itself for as long as it lives.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn below(counter: &Arc<AtomicUsize>, most: usize) -> Option<Slot> {
        let before = counter.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(counter.clone());
        (before < most).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    fn new(context: Arc<Context>) -> Server {
        let builder = Arc::new(connection::builder(&context));
        let front = Arc::new(Front::new(context));
        let (open, refusing) = (Arc::default(), Arc::default());
        Server { front, builder, open, refusing, phase: watch::Sender::new(Phase::Serving) }
    }

    async fn accept(&self, accepted: io::Result<(TcpStream, SocketAddr)>) {
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            // The client's, gone before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
                ) =>
            {
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                return sleep(ACCEPT_PAUSE).await;
            }
        };
        // Without it small answers wait for acknowledgements of others; a failure costs no more than that.
        let _ = stream.set_nodelay(true);
        match Slot::below(&self.open, self.connection_limit(from.ip())) {
            Some(open) => self.spawn(stream, open),
            None => self.refuse(stream),
        }
    }

    fn connection_limit(&self, from: IpAddr) -> usize {
        let from = from.to_canonical();
        let others = self.front.context.setup.others();
        let is_peer = others.iter().any(|member| member.host.parse::<IpAddr>().is_ok_and(|ip| ip == from));
        let reserve = if is_peer { RESERVE_EACH * others.len() } else { 0 };
        self.front.context.limits.connections.saturating_add(reserve)
    }

    fn spawn(&self, stream: TcpStream, open: Slot) {
        let (front, builder, phase) = (self.front.clone(), self.builder.clone(), self.phase.subscribe());
        tokio::spawn(async move {
            connection::run(stream, front, builder, phase).await;
            drop(open);
        });
    }

    fn refuse(&self, stream: TcpStream) {
        if let Some(refusing) = Slot::below(&self.refusing, REFUSALS_MOST) {
            tokio::spawn(async move {
                let _ = timeout(REFUSAL_PATIENCE, write_refusal(stream)).await;
                drop(refusing);
            });
        }
    }

    async fn drain(self) {
        self.phase.send_replace(Phase::Draining);
        if timeout(DRAIN_MOST, self.phase.closed()).await.is_err() {
            tracing::warn!("some calls were still under way and have been cut off");
            self.phase.send_replace(Phase::Over);
        }
    }
}

/// Closing with unread bytes would reset the connection and take the answer with it: what comes is read and dropped.
async fn write_refusal(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(FULL).await?;
    stream.shutdown().await?;
    let mut sink = [0; 1024];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n").expect("it has a body");
        assert!(head.contains(&format!("content-length: {}", body.len())), "it has {} bytes", body.len());
        let body: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
        assert_eq!(body["status"], 503);
    }
}
