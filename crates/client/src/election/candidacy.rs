//! This process as a candidate in the election of a role's leader.

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

/// The bound of the queue of orders for a running election. A person gives one order at a time.
const ORDERS_MAX: usize = 8;

/// The usual bound for [`Election::wait_for_election`].
pub const ELECTION_WAIT: Duration = Duration::from_secs(30);

/// A candidacy for a role. [`Election::stop`] releases the role. Dropping the election stops the renewals, and the
/// role lapses.
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

    /// Starts the candidacy, and returns at once. Does nothing if it has already started. Must be called within a
    /// tokio runtime.
    pub fn start(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            let (orders, received) = mpsc::channel(ORDERS_MAX);
            self.core.begin();
            let task = tokio::spawn(run(self.core.clone(), received, orders.downgrade()));
            *running = Some(Running { orders, task });
        }
    }

    /// Releases the role and ends the candidacy. A leader must have ended its work before this call.
    pub async fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { orders, task }) = running {
            self.core.stopping();
            // The belief ends before the role is released: from here on this process does not lead.
            self.core.belief.end();
            let _ = orders.send(Order::Stop).await;
            let _ = task.await;
        }
    }

    /// Whether this process leads at this moment, by the clock.
    pub fn is_leader(&self) -> bool {
        self.core.belief.is_held()
    }

    /// The fencing token of the lease, if this process leads at this moment.
    pub fn token(&self) -> Option<u64> {
        self.core.belief.token()
    }

    /// The present status of the election.
    pub fn status(&self) -> Status {
        *self.core.status.borrow()
    }

    /// The instance id of this process among the candidates for the role.
    pub fn id(&self) -> &str {
        &self.core.seat.instance_id
    }

    /// The name of this process for people.
    pub fn identifier(&self) -> &str {
        &self.core.identifier
    }

    /// The name of the role.
    pub fn role(&self) -> &str {
        &self.core.seat.role
    }

    /// The instance id of the leader, as far as this process has heard.
    pub fn leader(&self) -> Option<String> {
        self.core.leader()
    }

    /// Waits until the first election since the start is decided, for `most` at most. Returns whether this process
    /// leads.
    pub async fn wait_for_election(&self, most: Duration) -> bool {
        let mut decided = self.core.decided.subscribe();
        // A timeout is no error: the answer is then whether this process leads at this moment.
        let _ = timeout(most, decided.wait_for(|decided| *decided)).await;
        self.is_leader()
    }

    /// Makes the instance with this id the leader, or this process if `id` is `None`. The previous leader loses the
    /// role. The call needs the admin token if the cluster requires one. If this process is to lead and this election
    /// is not running, the call fails with [`Error::NotRunning`].
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

    /// The metadata that others see while this process leads, if any is set.
    pub fn metadata(&self) -> Option<Value> {
        self.core.metadata()
    }

    /// Sets the metadata that others see from the next grant on.
    pub fn set_metadata(&self, metadata: Value) {
        self.core.set_metadata(metadata);
    }

    /// The events from now on.
    pub fn events(&self) -> ElectionEvents {
        ElectionEvents::of(&self.core.events)
    }

    /// Returns once this process does not lead.
    pub async fn lost(&self) {
        self.core.belief.lost().await;
    }

    /// Runs `work` with the token if this process leads. Returns `None` if it does not lead.
    ///
    /// If the lease is lost while the work runs, the work is dropped and the call fails with [`Error::LeaseLost`].
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
