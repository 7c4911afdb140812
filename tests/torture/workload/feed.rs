//! Readers of the feed that keep a mirror of some documents, through every break, at any node that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Barrier;

use super::{PAUSE, Round, index, items, outcome_of};
use crate::check::feed::{Heard, complete, mirrors, place};
use crate::check::{Outcome, Verdict};
use crate::harness::{Call, Events, Rng, Told};

const WRITERS: u64 = 2;
const READERS: u64 = 2;
/// The number of a writer's keys at a time.
const KEYS: u64 = 5;
const TTL_MS: u64 = 1_000;
/// Longer than any silence of a live feed: a bookmark breaks the silence every five seconds.
const QUIET: Duration = Duration::from_secs(8);
/// A reader goes to another node after this many events, at most.
const STAYS: u64 = 500;
/// The last document: a reader that has heard of it has heard of all.
const LAST: &str = "last";
const FROM_NOW_ON: &str = "0";

#[derive(Debug)]
pub struct History {
    acknowledged: BTreeSet<String>,
    heard: Vec<Heard>,
    rng: Rng,
}

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    const PANICS: &str = "a client does not panic";
    // No document is written before every reader has begun, so that readers with one beginning hear of all.
    let begun = Arc::new(Barrier::new((READERS + WRITERS) as usize));
    let readers: Vec<_> = (0..READERS)
        .map(|_| tokio::spawn(read(round.clone(), Rng::new(rng.next()), begun.clone())))
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|id| tokio::spawn(write(round.clone(), id, Rng::new(rng.next()), begun.clone())))
        .collect();
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect(PANICS));
    }
    finish(&round, &mut rng).await;
    let mut heard = Vec::new();
    for reader in readers {
        heard.push(reader.await.expect(PANICS));
    }
    History { acknowledged, heard, rng }
}

fn prefix(round: &Round) -> String {
    round.prefix("feed")
}

/// The path of all its documents; there are always fewer than the limit.
fn list(round: &Round) -> String {
    format!("/v1/docs?limit=1000&prefix={}", prefix(round))
}

/// Returns the revisions of the documents that it has written.
async fn write(round: Arc<Round>, id: u64, mut rng: Rng, begun: Arc<Barrier>) -> Vec<String> {
    begun.wait().await;
    let (mut acknowledged, mut life) = (Vec::new(), 0);
    while round.goes_on() {
        let path = format!("/v1/docs/{}w{id}.{life}.{}", prefix(&round), rng.below(KEYS));
        let value = round.value().to_string();
        let (puts, call) = match rng.below(10) {
            0..=1 => (false, Call::delete(path)),
            2 => (true, Call::put(format!("{path}?ttl_ms={TTL_MS}")).raw_json(&value)),
            _ => (true, Call::put(path).raw_json(&value)),
        };
        let answer = round.ask(&mut rng, call).await;
        // A deletion of a missing document does nothing.
        let gone = answer.as_ref().is_ok_and(|answer| answer.status == 404);
        let outcome = if gone { Outcome::Done } else { outcome_of(&answer) };
        round.count("feed", outcome);
        match (outcome, answer) {
            (Outcome::Done, Ok(answer)) if puts => {
                acknowledged.push(answer.json()["rev"].as_str().expect("a revision").to_string());
            }
            (Outcome::Done, _) => {}
            // It may share a record with a later write of the same key, and the feed would report only that
            // one: so the next life has other keys.
            (Outcome::Unknown, _) => life += 1,
            (Outcome::Refused, _) => tokio::time::sleep(PAUSE).await,
        }
    }
    acknowledged
}

/// Once no document is about to end by itself, writes the last one.
async fn finish(round: &Round, rng: &mut Rng) {
    let list = list(round);
    let is_passing = |item: &Value| item["ttl_ms"].is_u64();
    while round.read(rng, &list).await.json()["items"].as_array().expect("items").iter().any(is_passing) {
        tokio::time::sleep(PAUSE).await;
    }
    let last = Call::put(format!("/v1/docs/{}{LAST}", prefix(round))).raw_json("0");
    while round.write("feed", rng, last.clone()).await != Outcome::Done {}
}

async fn read(round: Arc<Round>, mut rng: Rng, begun: Arc<Barrier>) -> Heard {
    let mut reader = Reader { heard: Heard::default(), last: FROM_NOW_ON.to_string(), began_at: 0 };
    reader.begin(&round, &mut rng).await;
    begun.wait().await;
    while !reader.heard.mirror.contains_key(&format!("{}{LAST}", prefix(&round))) {
        match reader.open(&round, &mut rng).await {
            Ok(mut events) => {
                let stays = 1 + rng.below(STAYS);
                if reader.follow(&round, &mut events, stays).await == Goes::Anew {
                    reader.begin(&round, &mut rng).await;
                }
            }
            Err(Some(410)) => reader.begin(&round, &mut rng).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    reader.heard
}

#[derive(Debug)]
struct Reader {
    heard: Heard,
    /// The newest id, which may be that of a bookmark; 0 means from now on.
    last: String,
    /// The mirror began with the state of this index.
    began_at: u64,
}

#[derive(Debug, PartialEq)]
enum Goes {
    On,
    Anew,
}

impl Reader {
    /// Takes a place in the feed from which everything is reported, and then reads the present documents.
    async fn begin(&mut self, round: &Round, rng: &mut Rng) {
        self.last = FROM_NOW_ON.to_string();
        while self.last == FROM_NOW_ON {
            if let Ok(mut events) = self.open(round, rng).await
                && let Ok(Told::Event(event)) = tokio::time::timeout(QUIET, events.next()).await
                && event["kind"] == "bookmark"
            {
                self.last = event["id"].as_str().expect("an id").to_string();
            }
            tokio::time::sleep(PAUSE).await;
        }
        let there = round.read(rng, &list(round)).await;
        let number = |value: &Value| value.as_u64().expect("a number");
        let mirror = items(&there).into_iter().map(|(key, value, _)| (key, number(&value))).collect();
        self.began_at = index(&there);
        let beginnings = self.heard.beginnings + 1;
        self.heard = Heard { mirror, beginnings, ..Heard::default() };
    }

    async fn open(&self, round: &Round, rng: &mut Rng) -> Result<Events, Option<u16>> {
        let node = round.node(rng);
        let path = format!("/v1/feed?kinds=change&prefix={}&since={}", prefix(round), self.last);
        let opening = round.arena.cluster.events(node, &path);
        tokio::time::timeout(QUIET, opening).await.unwrap_or(Err(None))
    }

    async fn follow(&mut self, round: &Round, events: &mut Events, stays: u64) -> Goes {
        let last = format!("{}{LAST}", prefix(round));
        for _ in 0..stays {
            let Ok(Told::Event(event)) = tokio::time::timeout(QUIET, events.next()).await else {
                return Goes::On;
            };
            match event["kind"].as_str() {
                Some("change") => self.change(&event),
                Some("bookmark") => {}
                Some("new_state") if event["changes_told"] == false => return Goes::Anew,
                _ => return Goes::On,
            }
            if let Some(id) = event["id"].as_str() {
                self.last = id.to_string();
            }
            if self.heard.mirror.contains_key(&last) {
                break;
            }
        }
        Goes::On
    }

    fn change(&mut self, event: &Value) {
        let text =
            |name: &str| event[name].as_str().unwrap_or_else(|| panic!("no {name} in {event}")).to_string();
        let (key, id) = (text("key"), text("id"));
        let is_new = place(&id).is_none_or(|(index, _)| index > self.began_at);
        self.heard.ids.push(id);
        match event["op"].as_str() {
            Some("put") => {
                self.heard.revisions.insert(text("rev"));
                if is_new {
                    self.heard.mirror.insert(key, event["value"].as_u64().expect("a number"));
                }
            }
            _ if is_new => drop(self.heard.mirror.remove(&key)),
            _ => {}
        }
    }
}

impl History {
    pub async fn judge(mut self, round: &Round) -> Verdict {
        let answer = round.read(&mut self.rng, &list(round)).await;
        let number = |value: &Value| value.as_u64().expect("a number");
        let store: BTreeMap<String, u64> =
            items(&answer).into_iter().map(|(key, value, _)| (key, number(&value))).collect();
        for heard in &self.heard {
            mirrors(heard, &store)?;
            complete(heard, &self.acknowledged)?;
        }
        Ok(())
    }
}
