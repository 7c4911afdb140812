//! This process's part in the election of a role's leader.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::core::{Core, Order};
use super::event::{ElectionEvents, Status};
use super::run::run;
use crate::backend::Backend;
use crate::error::Error;
use crate::http::Client;

/// Orders for a running election that wait: a person gives one at a time.
const ORDERS_MAX: usize = 8;

/// The longest that [`Election::wait_for_election`] waits unless told.
pub const ELECTION_WAIT: Duration = Duration::from_secs(30);

/// Stands for a role. Dropping it stops the renewals, and the role lapses; [`Election::stop`] gives it back.
#[derive(Debug)]
pub struct Election<B: Backend = Client> {
    pub(super) core: Arc<Core<B>>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

impl<B: Backend> Election<B> {
    pub(super) fn of(core: Core<B>) -> Election<B> {
        Election { core: core.into(), running: Mutex::default() }
    }

    /// Begins to stand for the role, and returns at once; nothing if it has begun. Within a runtime.
    pub fn start(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let (orders, received) = mpsc::channel(ORDERS_MAX);
            self.core.begin();
            let task = tokio::spawn(run(self.core.clone(), received, orders.downgrade()));
            *running = Some(Running { orders, task });
        }
    }

    /// Gives the role back, and stands for it no more. Whoever leads must have ended its work before.
    pub async fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { orders, task }) = running {
            self.core.stopping();
            // Not before the cluster is asked, but before it is told: from here on this process does not lead.
            self.core.belief.end();
            let _ = orders.send(Order::Stop).await;
            let _ = task.await;
        }
    }

    /// Whether this process leads at this very moment.
    pub fn is_leader(&self) -> bool {
        self.core.belief.is_held()
    }

    /// Of the lease that is held at this moment.
    pub fn token(&self) -> Option<u64> {
        self.core.belief.token()
    }

    pub fn status(&self) -> Status {
        *self.core.status.borrow()
    }

    /// This process's name among those who stand for the role.
    pub fn id(&self) -> &str {
        &self.core.seat.instance_id
    }

    /// For people.
    pub fn identifier(&self) -> &str {
        &self.core.identifier
    }

    pub fn role(&self) -> &str {
        &self.core.seat.role
    }

    /// Who leads, as far as this process has heard.
    pub fn leader(&self) -> Option<String> {
        self.core.leader()
    }

    /// Waits until the first election since the start is decided, and says whether this process leads.
    pub async fn wait_for_election(&self, most: Duration) -> bool {
        let mut decided = self.core.decided.subscribe();
        // Over time is an answer, too: whoever leads, this process is not known to.
        let _ = timeout(most, decided.wait_for(|decided| *decided)).await;
        self.is_leader()
    }

    /// Names the leader: this process, or the one of this id; whoever led before has lost. Needs the admin token
    /// where the cluster asks for one.
    pub async fn elect(&self, id: Option<&str>) -> Result<(), Error> {
        let orders = self.orders();
        let seat = &self.core.seat;
        match id.filter(|id| *id != seat.instance_id) {
            Some(id) => {
                let mut ask = seat.ask(Duration::ZERO, None);
                (ask.instance_id, ask.address) = (id.to_string(), None);
                let token = seat.backend.elect(&ask).await?.term.token;
                if let Some(orders) = orders {
                    let _ = orders.send(Order::Deposed { by: id.to_string(), token }).await;
                }
            }
            None => {
                let orders = orders.ok_or(Error::NotRunning)?;
                let grant = seat.backend.elect(&seat.ask(Duration::ZERO, self.core.metadata())).await?;
                let _ = orders.send(Order::Elected(grant.term)).await;
            }
        }
        Ok(())
    }

    fn orders(&self) -> Option<mpsc::Sender<Order>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(|running| running.orders.clone())
    }

    pub fn metadata(&self) -> Option<Value> {
        self.core.metadata()
    }

    /// Shown to others from the next grant on.
    pub fn set_metadata(&self, metadata: Value) {
        self.core.set_metadata(metadata);
    }

    /// What happens from now on.
    pub fn events(&self) -> ElectionEvents {
        ElectionEvents::of(&self.core.events)
    }

    /// Returns once this process does not lead.
    pub async fn lost(&self) {
        self.core.belief.lost().await;
    }

    /// Runs `work` if this process leads, with the token; None if it does not.
    ///
    /// Work that is under way when the lease is lost is dropped, and that is [`Error::LeaseLost`].
    pub async fn leader_only<T>(&self, work: impl AsyncFnOnce(u64) -> T) -> Result<Option<T>, Error> {
        let Some(token) = self.token() else {
            return Ok(None);
        };
        tokio::select! {
            biased;
            () = self.lost() => {
                Err(Error::LeaseLost { role: self.role().to_string(), leader: None, token: None })
            }
            done = work(token) => Ok(Some(done)),
        }
    }
}

impl<B: Backend> Drop for Election<B> {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Running { task, .. }) = running.take() {
            task.abort();
        }
        self.core.belief.end();
    }
}
