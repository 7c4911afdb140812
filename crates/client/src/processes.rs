//! Processes that are registered at the cluster, as long as they send heartbeats.

use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use super::http::{Call, Client, Page, query, segment};

/// The data that a process registers about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Registration {
    pub identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    pub ttl_ms: u64,
}

/// A process as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Process {
    pub id: String,
    pub identifier: String,
    #[serde(default)]
    pub role: Option<String>,
    #[serde(default)]
    pub capabilities: Option<Value>,
    #[serde(default)]
    pub metadata: Option<Value>,
    /// The channel for messages to this process alone: `worker:slave:{id}`.
    pub channel: String,
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    #[serde(default)]
    pub registered_at: Option<Value>,
    /// Known to the leader only: `None` in local reads.
    #[serde(default)]
    pub last_seen: Option<Value>,
    #[serde(default)]
    pub expires_in_ms: Option<u64>,
}

/// Selects the processes of a list.
#[derive(Clone, Debug, Default)]
pub struct ProcessFilter {
    pub role: Option<String>,
    pub capability: Option<String>,
    pub identifier: Option<String>,
    pub after: Option<String>,
}

#[derive(Deserialize)]
struct Seen {
    expires_in_ms: u64,
}

impl Client {
    /// Registers a process, or replaces its earlier registration.
    pub async fn put_process(&self, id: &str, registration: &Registration) -> Result<Process, Error> {
        let call = Call::write(Method::PUT, path(id, "")?).json(registration)?;
        self.send(&self.shows_secret_of_process(call)).await?.json()
    }

    /// Sends a heartbeat, and returns how long the process stays registered from now on. Fails with
    /// [`Error::NotFound`] if the process is not registered any more.
    pub async fn heartbeat(&self, id: &str) -> Result<Duration, Error> {
        let call = Call::harmless(Method::POST, path(id, "/heartbeat")?);
        let Seen { expires_in_ms } = self.send(&self.shows_secret_of_process(call)).await?.json()?;
        Ok(Duration::from_millis(expires_in_ms))
    }

    /// The process with this id. Returns `None` if it is not registered.
    pub async fn process(&self, id: &str) -> Result<Option<Process>, Error> {
        match self.send(&Call::get(path(id, "")?)).await {
            Err(Error::NotFound(_)) => Ok(None),
            answer => answer?.json().map(Some),
        }
    }

    /// A page of the processes, in the order of their ids.
    pub async fn processes(&self, filter: &ProcessFilter) -> Result<Page<Process>, Error> {
        let ProcessFilter { role, capability, identifier, after } = filter.clone();
        let asked =
            [("role", role), ("capability", capability), ("identifier", identifier), ("after", after)];
        self.send(&Call::get(format!("/v1/processes{}", query(asked)))).await?.json()
    }

    /// All processes that match, from all pages.
    pub async fn all_processes(&self, filter: &ProcessFilter) -> Result<Vec<Process>, Error> {
        let (mut filter, mut all) = (filter.clone(), Vec::new());
        loop {
            let Page { items, next } = self.processes(&filter).await?;
            all.extend(items);
            // A page without any match may be followed by others.
            match next.filter(|next| filter.after.as_ref() < Some(next)) {
                Some(next) => filter.after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Unregisters a process. Returns `false` if it was not registered.
    pub async fn remove_process(&self, id: &str) -> Result<bool, Error> {
        let call = Call::write(Method::DELETE, path(id, "")?);
        let answer = self.ask(&self.shows_secret_of_process(call)).await?;
        let after_doubt = answer.after_doubt;
        match answer.accepted() {
            Err(Error::NotFound(_)) => Ok(after_doubt),
            done => done.map(|_| true),
        }
    }
}

fn path(id: &str, order: &str) -> Result<String, Error> {
    Ok(format!("/v1/processes/{}{order}", segment("process", id)?))
}
