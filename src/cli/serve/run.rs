//! The life of a node's process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle as Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::audit;
use super::error::{Ending, ServeError};
use super::files;
use super::listen::Bound;
use super::notify::Notify;
use super::orders::asked_to_stop;
use super::renewal::Renewal;
use super::setup::{Drawn, setup};
use super::space;
use crate::cli::signals::Signals;
use crate::config::{BackupSettings, Config};
use crate::driver::{self, DiskWords, End, Handle, Schedule, Setup, StartError, Started, Wall};
use crate::http::{self, Context, Exporter, Guard, Runtimes, Spans, Web};

/// A hand-over takes one window at most. After that the others elect without this node's help.
const HAND_OVER_MAX: Duration = Duration::from_secs(10);

/// Runs a node. `peers` is the runtime that answers the calls of peers.
pub async fn run(
    mut config: Config,
    peers: Runtime,
    words: DiskWords,
    exit_with_stdin: bool,
) -> Result<(), ServeError> {
    let signals = Signals::listen().map_err(ServeError::Signals)?;
    let renew = signal(SignalKind::hangup()).map_err(ServeError::Signals)?;
    let wall = Arc::new(Wall::default());
    let orders = exit_with_stdin.then(|| wall.clone());
    let mut asked = tokio::spawn(asked_to_stop(signals, orders));
    files::fit(&mut config.http, files::raise(), config.members.len().saturating_sub(1))?;
    let bound = Bound::take(&config.listen).await?;
    let for_metrics = match &config.metrics_listen {
        Some(address) => Some(Bound::take(address).await?),
        None => None,
    };
    let drawn = Drawn::draw().map_err(|error| ServeError::Start(StartError::Random(error)))?;
    let setup = Arc::new(setup(&config, drawn, wall)?);
    let started = {
        let (setup, data) = (setup.clone(), config.data.clone());
        let start = tokio::task::spawn_blocking(move || driver::start(setup, &data, words));
        tokio::select! {
            started = start => started.map_err(|_| ServeError::Ended(Ending::LoopLost))?.map_err(ServeError::Start)?,
            // A node that still reads a long log ends at once.
            _ = &mut asked => return Ok(()),
        }
    };
    let address = bound.address;
    let web = Web { hosts: config.allowed_hosts.clone(), origins: config.allowed_origins.clone() };
    let guard = guard(&config, address);
    let audit = audit::begin(config.audit.as_deref()).map_err(ServeError::Audit)?;
    let context = Context::new(started.handle.clone(), setup.clone(), config.http.clone(), guard, web)
        .map_err(ServeError::Client)?
        .with_audit(audit);
    let context = Arc::new(match &config.otlp_url {
        Some(url) => {
            let (spans, from) = Spans::new();
            let (cluster, me) = (&setup.cluster.name, context.me().0.to_string());
            tokio::spawn(Exporter::new(context.client.clone(), url, cluster, &me, spans.clone()).run(from));
            context.with_spans(spans)
        }
        None => context,
    });
    if let Some(bound) = for_metrics {
        tracing::info!(listen = %bound.address, "also serving metrics");
        tokio::spawn(http::serve_metrics(bound.listen()?, context.clone()));
    }
    let (handle, manager_handle) = (started.handle.clone(), started.handle.clone());
    let node = Node::begin(bound.listen()?, context, peers, started);
    announce(&setup, &config, address);
    if let Some(BackupSettings { dir, every, keep }) = config.backup.clone() {
        let schedule = Schedule { folder: dir, every, keep };
        schedule
            .start(handle, setup.clone(), Runtime::current())
            .map_err(StartError::Io)
            .map_err(ServeError::Start)?;
    }
    tokio::spawn(space::watch(setup.clone(), config.data.clone()));
    tokio::spawn(Renewal::new(setup, &config).run(renew));
    node.live(told(asked, &manager_handle)).await
}

/// Tells the service manager, if there is one, that the node takes calls, and what happens afterwards.
fn told(asked: JoinHandle<()>, handle: &Handle) -> JoinHandle<()> {
    let Some(notify) = Notify::from_environment().map(Arc::new) else {
        return asked;
    };
    notify.ready();
    let (follower, handle) = (notify.clone(), handle.clone());
    tokio::spawn(async move { follower.follow(&handle).await });
    tokio::spawn(async move {
        // A lost task also asks the node to stop.
        let _ = asked.await;
        notify.stopping();
    })
}

struct Node {
    handle: Handle,
    ended: oneshot::Receiver<End>,
    http: JoinHandle<io::Result<()>>,
    close: oneshot::Sender<()>,
}

impl Node {
    fn begin(listener: TcpListener, context: Arc<Context>, peers: Runtime, started: Started) -> Node {
        let (close, closed) = oneshot::channel();
        let runtimes = Runtimes { peers, of_loop: started.runtime };
        let http = tokio::spawn(http::serve(listener, context, runtimes, closed));
        Node { handle: started.handle, ended: started.ended, http, close }
    }

    /// Runs until the node is asked to stop, or a part of it ends by itself.
    async fn live(mut self, asked: JoinHandle<()>) -> Result<(), ServeError> {
        tokio::select! {
            biased;
            end = &mut self.ended => Err(ServeError::Ended(end.map_or(Ending::LoopLost, Ending::Loop))),
            http = &mut self.http => Err(ServeError::Ended(match http {
                Ok(Err(error)) => Ending::Http(error),
                _ => Ending::HttpLost,
            })),
            _ = asked => self.stop().await,
        }
    }

    /// The lease is given up before the listener closes: a closed port means that no leader is here (C5).
    async fn stop(self) -> Result<(), ServeError> {
        if timeout(HAND_OVER_MAX, self.handle.stop()).await.is_err() {
            tracing::warn!("leadership was not handed over in time; the other nodes will elect a leader");
        }
        let _ = self.close.send(());
        match self.http.await {
            Ok(served) => served.map_err(|error| ServeError::Ended(Ending::Http(error))),
            Err(_) => Err(ServeError::Ended(Ending::HttpLost)),
        }
    }
}

/// Without an admin token, callers on this machine may give orders, unless a setting decides the rights of calls
/// without a credential.
fn guard(config: &Config, address: std::net::SocketAddr) -> Guard {
    let token = config.admin_token.as_ref().map(|token| token.expose());
    let alone = address.ip().to_canonical().is_loopback();
    let may_order = token.is_none() && alone && config.anonymous.is_default;
    Guard::new(token, &config.anonymous.grants, may_order)
}

/// Logs the one line that says that calls are taken from now on. Scripts wait for it.
fn announce(setup: &Setup, config: &Config, address: std::net::SocketAddr) {
    let me = setup.settings.me;
    let name = setup.member(me).map_or("?".to_string(), |member| member.name);
    tracing::info!(
        node = me.0, name, listen = %address, cluster = %setup.cluster.name, mode = %setup.cluster.mode,
        nodes = setup.known().members.len(), anonymous = config.anonymous.said(), data = %config.data.display(), version = env!("CARGO_PKG_VERSION"),
        "ready"
    );
}
