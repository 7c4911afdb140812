//! The event feed, read continuously: if a node fails, the client goes on at another one, from the same position.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::error::Error;
use super::http::{Client, Lines, query};
use super::json;
use super::pauses::Pauses;
use super::problem::Tried;

/// The events to receive, and where to begin.
#[derive(Clone, Debug, Default)]
pub struct FeedOptions {
    /// The kinds of events. Empty means all kinds.
    pub kinds: Vec<String>,
    /// Receive only events whose keys and names begin with this prefix.
    pub prefix: Option<String>,
    /// Begin after the event with this id. `None` means with the first event from now on.
    pub since: Option<String>,
}

/// An event of the feed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FeedEvent {
    /// `None` for an event that is in no record of the log. Such an event is not sent again after a break.
    #[serde(default)]
    pub id: Option<String>,
    pub kind: String,
    /// The further members of this kind of event.
    #[serde(flatten)]
    pub members: Map<String, Value>,
    /// The members that serde_json cannot read (such as `1e400`), as JSON text by name. If `value` is among them,
    /// treat the event like one whose value was too large to be sent: the document has changed, and the known value
    /// is outdated.
    #[serde(skip)]
    pub unreadable: BTreeMap<String, String>,
}

impl FeedEvent {
    fn read(line: &str) -> Option<FeedEvent> {
        if let Ok(event) = serde_json::from_str(line) {
            return Some(event);
        }
        let (mut readable, mut unreadable) = (Map::new(), BTreeMap::new());
        for (name, raw) in json::members(line)? {
            match serde_json::from_str(raw.get()) {
                Ok(value) => drop(readable.insert(name, value)),
                Err(_) => drop(unreadable.insert(name, raw.get().to_string())),
            }
        }
        let event = serde_json::from_value(Value::Object(readable)).ok()?;
        Some(FeedEvent { unreadable, ..event })
    }

    /// The member with this name, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// The member with this name, if it is a number that fits into `u64`.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.members.get(name).and_then(Value::as_u64)
    }
}

/// A feed that misses and repeats no event that has an id, even if the node that serves it fails.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    options: FeedOptions,
    open: Option<Lines>,
}

impl Client {
    /// Opens the feed. Returns once a node serves it.
    pub async fn feed(&self, options: FeedOptions) -> Result<Feed, Error> {
        let mut feed = Feed { client: self.clone(), options, open: None };
        feed.connect().await?;
        Ok(feed)
    }
}

impl Feed {
    /// The last id that was received, including the id of a bookmark. Another feed can go on from there.
    pub fn position(&self) -> Option<&str> {
        self.options.since.as_deref()
    }

    /// Skips all events up to now, for example because the next ones are no longer kept.
    pub fn from_now_on(&mut self) {
        (self.options.since, self.open) = (None, None);
    }

    /// The next event. It fails with [`Error::Unavailable`] if no node could be reached within the client's deadline;
    /// the next call then tries again. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Result<FeedEvent, Error> {
        loop {
            let Some(lines) = &mut self.open else {
                self.connect().await?;
                continue;
            };
            match lines.next().await {
                Ok(line) => match self.heard(&line)? {
                    Some(event) => return Ok(event),
                    None => continue,
                },
                Err(_) => {
                    // The cause does not matter: another node sends the events that were not received.
                    self.leave();
                }
            }
        }
    }

    fn heard(&mut self, line: &str) -> Result<Option<FeedEvent>, Error> {
        let Some(event) = FeedEvent::read(line) else {
            let url = self.leave();
            return Err(Error::Strange { url, why: "a line of the feed is not an event".to_string() });
        };
        if let Some(id) = &event.id {
            self.options.since = Some(id.clone());
        }
        match event.kind.as_str() {
            "bookmark" => Ok(None),
            "error" => {
                self.leave();
                Ok(None)
            }
            _ => Ok(Some(event)),
        }
    }

    /// Closes the stream, so that the next one is opened at another node. Returns the URL of the node that served it.
    fn leave(&mut self) -> String {
        let url = self.open.take().map(|lines| lines.url().to_string()).unwrap_or_default();
        self.client.passed_over(&url);
        url
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let path = self.path();
        let deadline = Instant::now() + self.client.http().deadline;
        let mut pauses = Pauses::new();
        let mut all: Vec<Tried> = Vec::new();
        loop {
            match self.client.open(&path).await {
                Ok(lines) => {
                    self.open = Some(lines);
                    return Ok(());
                }
                Err(Error::Unavailable { tried }) => {
                    all.extend(tried);
                    // Keep the last attempts only: one for each node.
                    let excess = all.len().saturating_sub(self.client.http().nodes.count());
                    all.drain(..excess);
                }
                Err(error) => return Err(error),
            }
            let pause = pauses.next();
            if Instant::now() + pause >= deadline {
                return Err(Error::Unavailable { tried: all });
            }
            sleep(pause).await;
        }
    }

    fn path(&self) -> String {
        let FeedOptions { kinds, prefix, since } = &self.options;
        let kinds = (!kinds.is_empty()).then(|| kinds.join(","));
        let asked = [
            ("format", Some("ndjson".to_string())),
            ("kinds", kinds),
            ("prefix", prefix.clone()),
            ("since", since.clone()),
        ];
        format!("/v1/feed{}", query(asked))
    }
}
