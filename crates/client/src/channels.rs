//! Messages to the present subscribers of a channel, delivered at most once.

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::error::Error;
use super::http::{Call, Client, Lines, segment};
use super::pauses::Pauses;

/// The items that a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Message(Value),
    /// A message that serde_json cannot read, as JSON text.
    Unreadable(String),
    /// This subscriber was disconnected for a while: it has missed what was sent meanwhile.
    Gap,
}

/// A subscription to a channel. If a node fails, it goes on at another one.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    path: String,
    open: Option<Lines>,
}

#[derive(Deserialize)]
struct Published {
    delivered: u64,
}

impl Client {
    /// Sends a message, and returns how many subscribers it was delivered to. The call is never sent twice: an
    /// attempt of unknown outcome fails with [`Error::Indeterminate`].
    pub async fn publish(&self, channel: &str, message: &impl Serialize) -> Result<u64, Error> {
        let path = format!("/v1/channels/{}", segment("channel", channel)?);
        let Published { delivered } =
            self.send(&Call::once(Method::POST, path).json(message)?).await?.json()?;
        Ok(delivered)
    }

    /// Subscribes to a channel. Returns once a node passes its messages on.
    pub async fn subscribe(&self, channel: &str) -> Result<Subscription, Error> {
        let path = format!("/v1/channels/{}?format=ndjson", segment("channel", channel)?);
        let mut subscription = Subscription { client: self.clone(), path, open: None };
        subscription.connect().await?;
        Ok(subscription)
    }
}

impl Subscription {
    /// The next message. After an error, the next call goes on trying. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Result<Heard, Error> {
        let Some(lines) = &mut self.open else {
            self.connect().await?;
            return Ok(Heard::Gap);
        };
        match lines.next().await.ok().and_then(heard) {
            Some(heard) => Ok(heard),
            None => {
                self.client.passed_over(lines.url());
                self.open = None;
                self.connect().await?;
                Ok(Heard::Gap)
            }
        }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + self.client.http().deadline;
        let mut pauses = Pauses::new();
        loop {
            let error = match self.client.open(&self.path).await {
                Ok(lines) => {
                    self.open = Some(lines);
                    return Ok(());
                }
                Err(error) => error,
            };
            let pause = pauses.next();
            if !error.is_outage() || Instant::now() + pause >= deadline {
                return Err(error);
            }
            sleep(pause).await;
        }
    }
}

/// Returns `None` for the last line of a node, and for a line that is not JSON.
fn heard(line: String) -> Option<Heard> {
    match serde_json::from_str(&line) {
        Ok(message) => (!is_end(&message)).then_some(Heard::Message(message)),
        Err(_) => serde_json::from_str::<&RawValue>(&line).is_ok().then_some(Heard::Unreadable(line)),
    }
}

/// Whether this is the last line of a node. A message of a publisher may look the same: then this subscriber
/// reconnects and reports a gap.
fn is_end(message: &Value) -> bool {
    message["kind"] == "error" && message["code"].is_string() && message["retryable"].is_boolean()
}
