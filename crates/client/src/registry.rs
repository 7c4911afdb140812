//! The registry of processes: registers this process, keeps it registered by heartbeats, and reports when others come
//! and go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::error::Error;
use super::feed::{Feed, FeedEvent, FeedOptions};
use super::http::Client;
use super::lease::millis;
use super::pauses::Pauses;
use super::processes::{Process, ProcessFilter, Registration};
use super::random;
use super::seat::{LEAVE_MOST, not_in_time};

/// A process that sends no heartbeat is forgotten after this time.
const TTL: Duration = Duration::from_secs(45);

/// With this interval, three heartbeats in a row may be missed.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Events that wait for a slow listener. Beyond this bound the oldest ones are dropped, and the listener learns how
/// many.
const EVENTS_MAX: usize = 256;

/// The registry role of processes that follow a master.
pub const SLAVE: &str = "slave";
/// The registry role of the process that others follow.
pub const MASTER: &str = "master";

/// An event of the registry.
#[derive(Clone, Debug)]
pub enum RegistryEvent {
    /// The process was registered, or had another role before.
    SlaveRegistered(Box<Process>),
    /// The metadata, the capabilities or the identifier of the process have changed.
    SlaveChanged(Box<Process>),
    /// The process is not registered any more, or has another role now.
    SlaveRemoved { id: String },
    /// A heartbeat or the feed failed. Both are retried.
    Error(Arc<Error>),
    /// This listener was too slow: it has missed this number of events.
    Missed(u64),
}

/// One listener of a registry.
#[derive(Debug)]
pub struct RegistryEvents(broadcast::Receiver<RegistryEvent>);

impl RegistryEvents {
    /// The next event. Returns `None` once the registry is dropped.
    pub async fn next(&mut self) -> Option<RegistryEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(RegistryEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// The options of a registration.
#[derive(Clone, Debug)]
pub struct RegistryBuilder {
    client: Client,
    id: String,
    id_is_drawn: bool,
    about: Registration,
    heartbeat: Duration,
}

impl RegistryBuilder {
    /// The id of this process. Default: a random id. If it is the id of an [`super::Election`], the leader of that
    /// election can be found as a process.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self.id_is_drawn = false;
        self
    }

    /// The registry role of this process. Default: `slave`.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.about.role = Some(role.into());
        self
    }

    /// The capabilities of this process, by which others can select it. Default: none.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.about.capabilities = Some(capabilities);
        self
    }

    /// The metadata of this process, which others see. Default: none.
    pub fn metadata(mut self, metadata: Value) -> Self {
        self.about.metadata = Some(metadata);
        self
    }

    /// The time after which the process is forgotten without a heartbeat. Default: 45 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.about.ttl_ms = millis(ttl);
        self
    }

    /// The interval of heartbeats. Default: 10 s.
    pub fn heartbeat_every(mut self, span: Duration) -> Self {
        self.heartbeat = span;
        self
    }

    /// Registers this process, and keeps it registered.
    pub async fn register(self) -> Result<Registry, Error> {
        let RegistryBuilder { client, id, id_is_drawn, about, heartbeat } = self;
        let client = if id_is_drawn { client.showing_secret() } else { client };
        client.put_process(&id, &about).await?;
        let kinds = ["process_registered", "process_changed", "process_removed"].map(str::to_string).to_vec();
        let feed = client.feed(FeedOptions { kinds, ..FeedOptions::default() }).await?;
        let core = Arc::new(Core {
            client,
            id,
            about: Mutex::new(about),
            events: broadcast::Sender::new(EVENTS_MAX),
        });
        let beating = tokio::spawn(beat(core.clone(), heartbeat));
        let hearing = tokio::spawn(hear(core.clone(), feed));
        Ok(Registry { core, tasks: [beating, hearing] })
    }
}

/// A registered process. Dropping this stops the heartbeats, and the cluster forgets the process after its ttl.
#[derive(Debug)]
pub struct Registry {
    core: Arc<Core>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Core {
    client: Client,
    id: String,
    about: Mutex<Registration>,
    events: broadcast::Sender<RegistryEvent>,
}

impl Registry {
    /// Begins the options of a registration. `identifier` is a name for people.
    pub fn builder(client: Client, identifier: impl Into<String>) -> RegistryBuilder {
        let (identifier, role) = (identifier.into(), Some(SLAVE.to_string()));
        let about = Registration { identifier, role, ttl_ms: millis(TTL), ..Registration::default() };
        RegistryBuilder { client, id: random::id(), id_is_drawn: true, about, heartbeat: HEARTBEAT }
    }

    /// The id of this process.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// The channel for messages to this process alone.
    pub fn channel(&self) -> String {
        format!("worker:slave:{}", self.core.id)
    }

    /// All processes that are registered now.
    pub async fn all(&self) -> Result<Vec<Process>, Error> {
        self.core.client.all_processes(&ProcessFilter::default()).await
    }

    /// All processes that are registered in this role.
    pub async fn by_role(&self, role: &str) -> Result<Vec<Process>, Error> {
        let filter = ProcessFilter { role: Some(role.to_string()), ..ProcessFilter::default() };
        self.core.client.all_processes(&filter).await
    }

    /// The process that holds this role of an election, if it is registered under the same id.
    pub async fn leader_of(&self, role: &str) -> Result<Option<Process>, Error> {
        match self.core.client.role(role).await?.leader {
            Some(leader) => self.core.client.process(&leader.instance_id).await,
            None => Ok(None),
        }
    }

    /// The process that is registered as master. This is what the process says of itself; [`Registry::leader_of`]
    /// asks the cluster who leads.
    pub async fn master(&self) -> Result<Option<Process>, Error> {
        Ok(self.by_role(MASTER).await?.into_iter().next())
    }

    /// All processes that are registered as slaves.
    pub async fn slaves(&self) -> Result<Vec<Process>, Error> {
        self.by_role(SLAVE).await
    }

    /// The slave with this id. Returns `None` if no process has this id, or if it is not a slave.
    pub async fn slave(&self, id: &str) -> Result<Option<Process>, Error> {
        let process = self.core.client.process(id).await?;
        Ok(process.filter(is_slave))
    }

    /// The number of processes that are registered as slaves.
    pub async fn slave_count(&self) -> Result<usize, Error> {
        Ok(self.slaves().await?.len())
    }

    /// Registers this process under another role from now on.
    pub async fn set_role(&self, role: impl Into<String>) -> Result<(), Error> {
        self.core.about().role = Some(role.into());
        self.core.register().await
    }

    /// Registers this process with other metadata from now on.
    pub async fn set_metadata(&self, metadata: Value) -> Result<(), Error> {
        self.core.about().metadata = Some(metadata);
        self.core.register().await
    }

    /// Sends a heartbeat now, in addition to those in the background.
    pub async fn heartbeat(&self) -> Result<(), Error> {
        self.core.beat().await
    }

    /// The events from now on.
    pub fn events(&self) -> RegistryEvents {
        RegistryEvents(self.core.events.subscribe())
    }

    /// Unregisters this process at once. Fails if that did not succeed within a second; then the process is forgotten
    /// after its ttl.
    pub async fn unregister(self) -> Result<(), Error> {
        self.tasks.iter().for_each(JoinHandle::abort);
        let removing = self.core.client.remove_process(&self.core.id);
        let late = |_| Err(not_in_time("cannot remove the process from the registry"));
        timeout(LEAVE_MOST, removing).await.unwrap_or_else(late).map(drop)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Core {
    fn about(&self) -> MutexGuard<'_, Registration> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn register(&self) -> Result<(), Error> {
        let about = self.about().clone();
        self.client.put_process(&self.id, &about).await.map(drop)
    }

    /// Sends a heartbeat. A process that was forgotten registers again.
    async fn beat(&self) -> Result<(), Error> {
        match self.client.heartbeat(&self.id).await {
            Err(Error::NotFound(_)) => self.register().await,
            done => done.map(drop),
        }
    }

    /// Sends an event. It is no failure if there is no listener.
    fn tell(&self, event: RegistryEvent) {
        let _ = self.events.send(event);
    }
}

async fn beat(core: Arc<Core>, every: Duration) {
    loop {
        sleep(every).await;
        if let Err(error) = core.beat().await {
            core.tell(RegistryEvent::Error(Arc::new(error)));
        }
    }
}

async fn hear(core: Arc<Core>, mut feed: Feed) {
    let mut pauses = Pauses::new();
    loop {
        match feed.next().await {
            Ok(event) => {
                pauses = Pauses::new();
                heard(&core, &event).await;
            }
            Err(error) => {
                core.tell(RegistryEvent::Error(Arc::new(error.clone())));
                sleep(pauses.next()).await;
                if matches!(error, Error::FeedCompacted { .. }) {
                    feed.from_now_on();
                }
            }
        }
    }
}

async fn heard(core: &Core, event: &FeedEvent) {
    let Some(id) = event.text("process") else { return };
    let says = |member: &str| event.text(member) == Some(SLAVE);
    let told = match (event.kind.as_str(), says("role")) {
        ("process_registered", true) => slave(core, id, RegistryEvent::SlaveRegistered).await,
        ("process_changed", true) if says("previous_role") => {
            slave(core, id, RegistryEvent::SlaveChanged).await
        }
        ("process_changed", true) => slave(core, id, RegistryEvent::SlaveRegistered).await,
        ("process_changed", false) if says("previous_role") => {
            Some(RegistryEvent::SlaveRemoved { id: id.into() })
        }
        ("process_removed", true) => Some(RegistryEvent::SlaveRemoved { id: id.into() }),
        _ => None,
    };
    told.into_iter().for_each(|event| core.tell(event));
}

fn is_slave(process: &Process) -> bool {
    process.role.as_deref() == Some(SLAVE)
}

/// Reads the whole entry. If the process has gone since, or is not a slave any more, another event says so soon.
async fn slave(core: &Core, id: &str, told: fn(Box<Process>) -> RegistryEvent) -> Option<RegistryEvent> {
    match core.client.process(id).await {
        Ok(process) => process.filter(is_slave).map(|process| told(Box::new(process))),
        Err(error) => Some(RegistryEvent::Error(Arc::new(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults() {
        let client = Client::new(["http://127.0.0.1:9000"]).expect("a client");
        let builder = Registry::builder(client, "cms-backend");
        assert_eq!((builder.about.ttl_ms, builder.heartbeat.as_secs()), (45_000, 10));
        assert_eq!(builder.about.role.as_deref(), Some(SLAVE));
    }
}
