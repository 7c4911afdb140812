//! The events of one role, read from the feed.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::backend::{WATCHED_MAX, Watch, Watched};
use super::error::Error;
use super::feed::{Feed, FeedEvent, FeedOptions};
use super::http::Client;

/// Opens the watch. Returns once a node has accepted it. The watch goes on until it is dropped, or until an
/// error, which is its last item.
pub async fn open(client: &Client, role: &str) -> Result<Watch, Error> {
    let kinds = ["role_acquired", "role_lost", "change"].map(str::to_string).to_vec();
    let feed = client.feed(FeedOptions { kinds, prefix: Some(role.to_string()), since: None }).await?;
    let (tell, watch) = mpsc::channel(WATCHED_MAX);
    tokio::spawn(follow(feed, role.to_string(), tell));
    Ok(watch)
}

async fn follow(mut feed: Feed, role: String, tell: mpsc::Sender<Result<Watched, Error>>) {
    loop {
        let told = tokio::select! {
            told = feed.next() => told,
            () = tell.closed() => return,
        };
        let (word, last) = match told {
            Ok(event) => match watched(&event, &role) {
                Some(watched) => (Ok(watched), false),
                None => continue,
            },
            Err(error) => (Err(error), true),
        };
        if tell.send(word).await.is_err() || last {
            return;
        }
    }
}

/// The event as news of the role. Returns `None` for an event of another role whose name only begins the same.
fn watched(event: &FeedEvent, role: &str) -> Option<Watched> {
    let ours = |name: &str| event.text(name) == Some(role);
    let instance_id = || event.text("instance_id").map(str::to_string);
    let token = || event.number("token");
    match event.kind.as_str() {
        "role_acquired" if ours("role") => {
            Some(Watched::Acquired { instance_id: instance_id()?, token: token()? })
        }
        "role_lost" if ours("role") => Some(Watched::Lost { instance_id: instance_id()?, token: token()? }),
        "change" if is_below(event, role) => Some(Watched::Changed(plain(event))),
        _ => None,
    }
}

/// Whether the event is about a document whose key is the role's name, or is below that name.
fn is_below(event: &FeedEvent, role: &str) -> bool {
    let rest = event.text("key").and_then(|key| key.strip_prefix(role));
    event.text("table") == Some("doc") && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn plain(event: &FeedEvent) -> Value {
    let mut members = event.members.clone();
    members.insert("kind".to_string(), json!(event.kind));
    if let Some(id) = &event.id {
        members.insert("id".to_string(), json!(id));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(event: Value) -> Option<Watched> {
        let event = serde_json::from_value(event).expect("an event");
        watched(&event, "r")
    }

    #[test]
    fn only_this_role_counts() {
        let acquired =
            json!({"id": "7", "kind": "role_acquired", "role": "r", "instance_id": "a", "token": 9});
        assert_eq!(told(acquired), Some(Watched::Acquired { instance_id: "a".into(), token: 9 }));
        let lost = json!({"id": "7", "kind": "role_lost", "role": "r", "instance_id": "a", "token": 9, "reason": "expired"});
        assert_eq!(told(lost), Some(Watched::Lost { instance_id: "a".into(), token: 9 }));
        let other = json!({"id": "7", "kind": "role_acquired", "role": "r2", "instance_id": "a", "token": 9});
        assert_eq!(told(other), None);
        for (key, counts) in [("r", true), ("r/a", true), ("r2", false), ("x", false)] {
            let change = json!({"id": "7", "kind": "change", "table": "doc", "key": key, "op": "put"});
            assert_eq!(told(change.clone()), counts.then_some(Watched::Changed(change)), "{key}");
        }
    }
}
