//! The feed, read on and on: at another node when one goes away, from where it was.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::error::Error;
use super::http::{Client, Lines, query};
use super::json;
use super::pauses::Pauses;
use super::problem::Tried;

/// What to hear of.
#[derive(Clone, Debug, Default)]
pub struct FeedOptions {
    /// All of them if none is named.
    pub kinds: Vec<String>,
    /// Of keys and names.
    pub prefix: Option<String>,
    /// Behind this event, or from now on.
    pub since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FeedEvent {
    /// None of what is in no record and not told again.
    #[serde(default)]
    pub id: Option<String>,
    pub kind: String,
    /// What this kind says besides.
    #[serde(flatten)]
    pub members: Map<String, Value>,
    /// What serde_json does not read of them, as JSON text by name: `1e400`. A `value` that is here is as one that was too large to be
    /// told: the document has changed, and what was known of it is old.
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

    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.members.get(name).and_then(Value::as_u64)
    }
}

/// No event is missed and none comes twice, whatever becomes of the node that tells it.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    options: FeedOptions,
    open: Option<Lines>,
}

impl Client {
    /// Returns once a node tells.
    pub async fn feed(&self, options: FeedOptions) -> Result<Feed, Error> {
        let mut feed = Feed { client: self.clone(), options, open: None };
        feed.connect().await?;
        Ok(feed)
    }
}

impl Feed {
    /// The last id that was heard of, a bookmark's included: where another feed may go on.
    pub fn position(&self) -> Option<&str> {
        self.options.since.as_deref()
    }

    /// Leaves out whatever is not kept any more.
    pub fn from_now_on(&mut self) {
        (self.options.since, self.open) = (None, None);
    }

    /// The next event. After [`Error::Unavailable`], which says that no node could be reached within the client's
    /// deadline, the next call goes on trying. Dropping this future loses nothing.
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
                    // The cause does not matter: what was not heard is told again elsewhere.
                    self.leave();
                }
            }
        }
    }

    fn heard(&mut self, line: &str) -> Result<Option<FeedEvent>, Error> {
        let Some(event) = FeedEvent::read(line) else {
            let url = self.leave();
            return Err(Error::Strange { url, why: "a line of the feed that is no event".to_string() });
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

    /// Goes on elsewhere; where it has been.
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
                    // One round of the nodes tells enough.
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
