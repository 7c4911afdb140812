//! The events of the cluster, as long as the screen is shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::client::{Client, FeedEvent, FeedOptions};

/// The bound of kept events: more than a screen has lines for.
const KEPT_MOST: usize = 50;

/// The pause after an outage that the feed did not survive.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// All kinds but the writes of programs: these are shown as a rate, and are too many to read.
const KINDS: [&str; 14] = [
    "new_leader",
    "new_state",
    "election_started",
    "election_completed",
    "role_acquired",
    "role_lost",
    "process_registered",
    "process_removed",
    "conflict",
    "service_down",
    "service_up",
    "members_changed",
    "merge_called_off",
    "token_revoked",
];

/// An event, or why there are none.
#[derive(Clone, Debug)]
pub struct ShownEvent {
    pub line: String,
    /// For scripts.
    pub document: Value,
}

#[derive(Debug)]
pub struct Events {
    kept: Arc<Mutex<VecDeque<ShownEvent>>>,
    task: JoinHandle<()>,
}

impl Events {
    pub fn follow(client: Client) -> Events {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let task = tokio::spawn(read(client, kept.clone()));
        Events { kept, task }
    }

    /// The events, the newest first.
    pub fn newest(&self) -> Vec<ShownEvent> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(client: Client, kept: Arc<Mutex<VecDeque<ShownEvent>>>) {
    let keep = |event: ShownEvent| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A feed that cannot be read fails each second for the same reason.
        if kept.back().is_some_and(|last| last.line == event.line) {
            return;
        }
        if kept.len() == KEPT_MOST {
            kept.pop_front();
        }
        kept.push_back(event);
    };
    let kinds: Vec<String> = KINDS.iter().map(ToString::to_string).collect();
    loop {
        let options = FeedOptions { kinds: kinds.clone(), ..FeedOptions::default() };
        let ended = match client.feed(options).await {
            Ok(mut feed) => loop {
                match feed.next().await {
                    Ok(event) => keep(ShownEvent::of(event)),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        keep(ShownEvent::missing(&ended.to_string()));
        sleep(TRY_AGAIN).await;
    }
}

impl ShownEvent {
    fn of(event: FeedEvent) -> ShownEvent {
        let line = line(&event);
        let mut members = event.members;
        members.insert("id".to_string(), event.id.into());
        members.insert("kind".to_string(), event.kind.into());
        ShownEvent { line, document: members.into() }
    }

    /// The feed cannot be read.
    fn missing(why: &str) -> ShownEvent {
        ShownEvent { line: format!("cannot read the feed: {why}"), document: json!({ "error": why }) }
    }
}

/// An event as a line: the time of day (in UTC, as everywhere), its kind, and what it is about.
fn line(event: &FeedEvent) -> String {
    let about = ["role", "id", "instance_id", "epoch", "reason", "cause", "key", "name", "election"];
    let at = event.members.get("at").and_then(|at| at.as_str()?.get(11..19)).unwrap_or_default();
    let words = about.iter().filter_map(|name| {
        let value = event.members.get(*name)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_string))
    });
    let words: Vec<String> = words.collect();
    format!("{at:<8}  {:<20} {}", event.kind, words.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_get_the_whole_event() {
        let event =
            json!({"id": "7", "kind": "new_leader", "at": "2026-11-28T14:03:07.123456Z", "epoch": "7.1"});
        let shown = ShownEvent::of(serde_json::from_value(event.clone()).expect("an event"));
        assert_eq!(shown.document, event);
        assert_eq!(shown.line, "14:03:07  new_leader           7.1");
        assert_eq!(ShownEvent::missing("no leader").document, json!({"error": "no leader"}));
    }

    #[test]
    fn an_event_has_its_time_if_it_has_one() {
        let told = |event| line(&serde_json::from_value(event).expect("an event"));
        let event =
            json!({"kind": "election_started", "at": "2026-11-28T14:03:07.123456Z", "cause": "refused"});
        assert_eq!(told(event), "14:03:07  election_started     refused");
        assert_eq!(
            told(json!({"kind": "new_state", "reason": "merged"})),
            "          new_state            merged"
        );
    }
}
