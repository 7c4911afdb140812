//! The events of the cluster, as long as the screen is shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

#[derive(Debug)]
pub struct Events {
    kept: Arc<Mutex<VecDeque<String>>>,
    task: JoinHandle<()>,
}

impl Events {
    pub fn follow(client: Client) -> Events {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let task = tokio::spawn(read(client, kept.clone()));
        Events { kept, task }
    }

    /// The events, the newest first.
    pub fn newest(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(client: Client, kept: Arc<Mutex<VecDeque<String>>>) {
    let keep = |line: String| {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A feed that cannot be read fails each second for the same reason.
        if kept.back() == Some(&line) {
            return;
        }
        if kept.len() == KEPT_MOST {
            kept.pop_front();
        }
        kept.push_back(line);
    };
    let kinds: Vec<String> = KINDS.iter().map(ToString::to_string).collect();
    loop {
        let options = FeedOptions { kinds: kinds.clone(), ..FeedOptions::default() };
        let ended = match client.feed(options).await {
            Ok(mut feed) => loop {
                match feed.next().await {
                    Ok(event) => keep(line(&event)),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        keep(format!("cannot read the feed: {ended}"));
        sleep(TRY_AGAIN).await;
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
    use serde_json::json;

    use super::*;

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
