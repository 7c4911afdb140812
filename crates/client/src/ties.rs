//! A lease that ends with a connection (P45 of the protocol). In addition to the renewals, a stream to one node stays open.
//! When this process dies, that node frees the role. The lease itself works as it does without a connection.
//!
//! ```text
//!   opened ── the node names the tie in a renewal that it sends itself ──▶ tied
//!   tied ──── the connection breaks ──▶ in doubt: the belief lasts for half of the grace, unless a renewal under the next
//!             number proves that the lease goes on; after that the old connection ends nothing, and the next one is opened
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::backend::{Backend, Hold, Renewal, TieNews};
use super::error::Error;
use super::lease::Term;
use super::pauses::Pauses;
use super::random;

/// The means by which a role is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeldBy {
    /// A lease and a connection: when this process dies, the role is free within about a second.
    #[default]
    Connection,
    /// A lease alone: when this process dies, the role is free when its ttl is over.
    Lease,
}

/// The node waits this long after the connection has closed. A live holder that has lost its connection stops
/// believing after half of this time. The other half covers the difference between the moments at which the node and
/// the holder notice the loss.
const GRACE_MAX: Duration = Duration::from_secs(1);

/// The bound of the channel of news. News are rare, and the holder reads them at once.
const NEWS_MAX: usize = 8;

/// No connection has this number or a greater one. A lease that was renewed under this number is tied to no
/// connection any more, even if a renewal that names a connection arrives later.
pub const NO_CONNECTION: u64 = (1 << 53) - 1;

/// The time that the node waits after the connection has closed, for a lease of this ttl.
pub fn grace(ttl: Duration) -> Duration {
    GRACE_MAX.min(ttl / 2)
}

/// News of the ties for the holder.
#[derive(Debug)]
pub enum Tying {
    /// A connection is open. Opening it was a renewal, and this is its term.
    Proved(Term),
    /// The holder must renew now.
    Renew,
    /// The connection is gone, and the node may free the role.
    Broken,
}

/// The ties of one grant, one after the other. Dropping this closes the last connection.
#[derive(Debug)]
pub struct Ties {
    number: Option<Arc<AtomicU64>>,
    proved: watch::Sender<u64>,
    news: mpsc::Receiver<Tying>,
    task: Option<JoinHandle<()>>,
}

impl Ties {
    /// Begins the ties of this hold, and draws the first number.
    pub fn begin<B: Backend>(backend: &B, hold: Hold, held_by: HeldBy) -> Ties {
        let (tell, news) = mpsc::channel(NEWS_MAX);
        let proved = watch::Sender::new(0);
        if held_by == HeldBy::Lease {
            return Ties { number: None, proved, news, task: None };
        }
        let number = Arc::new(AtomicU64::new(random::rising()));
        let (backend, proved_number) = (backend.clone(), proved.subscribe());
        let tying = TyingTask { backend, hold, number: number.clone(), proved: proved_number, tell };
        let task = Some(tokio::spawn(tying.run()));
        Ties { number: Some(number), proved, news, task }
    }

    /// The number that the next renewal names.
    pub fn number(&self) -> Option<u64> {
        self.number.as_ref().map(|number| number.load(Ordering::SeqCst))
    }

    /// A renewal that named this number has come through: connections with smaller numbers end nothing from now on.
    pub fn proved(&self, number: Option<u64>) {
        self.proved.send_replace(number.unwrap_or_default());
    }

    /// The next news. Never returns if no connection will be opened any more.
    pub async fn next(&mut self) -> Tying {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Ties {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The grant is over, and the holder has dropped the receiver.
struct NobodyListens;

struct TyingTask<B> {
    backend: B,
    hold: Hold,
    number: Arc<AtomicU64>,
    proved: watch::Receiver<u64>,
    tell: mpsc::Sender<Tying>,
}

impl<B: Backend> TyingTask<B> {
    async fn run(mut self) {
        let mut pauses = Pauses::new();
        loop {
            // The open connection, if there is one, is kept until the holder has proved that the lease goes on
            // without it.
            let mut line = None;
            let over = match self.backend.tie(&self.hold(), grace(self.hold.ttl)).await {
                Ok(Some(tied)) => {
                    pauses = Pauses::new();
                    self.listen(tied.renewal, line.insert(tied.news)).await
                }
                // The node may have opened the connection all the same.
                Err(Error::Indeterminate { .. }) => Ok(Some(Tying::Broken)),
                Err(Error::Unavailable { .. }) => Ok(None),
                Err(error) if error.is_lease_lost() => {
                    let _ = self.say(Tying::Renew).await;
                    return;
                }
                // This backend offers no ties, or not to this holder: the lease alone holds the role.
                Ok(None) | Err(_) => return,
            };
            let gone_on = match over {
                Ok(Some(what)) => self.go_on(what).await,
                Ok(None) => Ok(()),
                Err(NobodyListens) => return,
            };
            if gone_on.is_err() {
                return;
            }
            drop(line);
            sleep(pauses.next()).await;
        }
    }

    /// Reads the news of an open connection, and returns what the holder must learn of its end.
    async fn listen(
        &self,
        renewal: Renewal,
        line: &mut mpsc::Receiver<TieNews>,
    ) -> Result<Option<Tying>, NobodyListens> {
        let Hold { token, ttl, .. } = self.hold;
        self.say(Tying::Proved(Term::new(token, renewal.sent, ttl, renewal.expires_in))).await?;
        loop {
            match line.recv().await {
                Some(TieNews::Renew) => self.say(Tying::Renew).await?,
                Some(TieNews::Let) => return Ok(Some(Tying::Renew)),
                Some(TieNews::Broken) | None => return Ok(Some(Tying::Broken)),
            }
        }
    }

    fn hold(&self) -> Hold {
        Hold { tie: Some(self.number.load(Ordering::SeqCst)), ..self.hold.clone() }
    }

    /// Draws the next number, sends the news to the holder, and waits until a renewal under that number has come
    /// through.
    async fn go_on(&mut self, what: Tying) -> Result<(), NobodyListens> {
        let number = self.number.fetch_add(1, Ordering::SeqCst) + 1;
        self.say(what).await?;
        self.proved.wait_for(|proved| *proved >= number).await.map(drop).map_err(|_| NobodyListens)
    }

    async fn say(&self, what: Tying) -> Result<(), NobodyListens> {
        self.tell.send(what).await.map_err(|_| NobodyListens)
    }
}
