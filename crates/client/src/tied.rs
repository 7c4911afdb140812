//! The stream that a lease is tied to, as a node serves it.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::backend::{Hold, Renewal, TieNews, Tied};
use super::error::Error;
use super::http::{Call, Client, Lines, query, segment};
use super::lease::millis;

/// The bound of the channel of news. News are rare, and the holder reads them at once.
const NEWS_MAX: usize = 8;

/// One event of the stream. Unknown fields and kinds are ignored.
#[derive(Deserialize)]
struct Event {
    kind: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    expires_in_ms: Option<u64>,
}

/// Opens the stream. It uses another node than the calls do, if there is one.
pub async fn open(client: &Client, hold: &Hold, grace: Duration) -> Result<Tied, Error> {
    let asked = [
        ("instance_id", Some(hold.instance_id.clone())),
        ("token", Some(hold.token.to_string())),
        ("tie", hold.tie.map(|tie| tie.to_string())),
        ("ttl_ms", Some(millis(hold.ttl).to_string())),
        ("grace_ms", Some(millis(grace).to_string())),
        ("format", Some("ndjson".to_string())),
    ];
    let path = format!("/v1/roles/{}/tie{}", segment("role", &hold.role)?, query(asked));
    let url = client.http().nodes.beside();
    let sent = client.http().clock.now();
    let call = client.shows_secret(Call::once(Method::POST, path));
    let mut lines = client.open_at(&url, &call).await?;
    let expires_in = match first(&mut lines).await {
        Some(Event { kind, expires_in_ms: Some(left), .. }) if kind == "tied" => Duration::from_millis(left),
        _ => {
            return Err(Error::Indeterminate { tried: Vec::new() });
        }
    };
    let (tell, news) = mpsc::channel(NEWS_MAX);
    tokio::spawn(listen(lines, tell));
    Ok(Tied { renewal: Renewal { sent, expires_in }, news })
}

async fn first(lines: &mut Lines) -> Option<Event> {
    serde_json::from_str(&lines.next().await.ok()?).ok()
}

/// Reads the stream until it ends or the receiver is dropped. The connection stays open that long.
async fn listen(mut lines: Lines, tell: mpsc::Sender<TieNews>) {
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = tell.closed() => return,
        };
        let event = line.map(|line| serde_json::from_str::<Event>(&line));
        let news = match event {
            Ok(Ok(event)) => match (event.kind.as_str(), event.code.as_deref()) {
                ("renew", _) => TieNews::Renew,
                ("error", Some("stopping")) => TieNews::Let,
                ("error", _) => TieNews::Broken,
                _ => continue,
            },
            Ok(Err(_)) | Err(_) => TieNews::Broken,
        };
        let over = news != TieNews::Renew;
        if tell.send(news).await.is_err() {
            return;
        }
        if over {
            // Keep the connection open until the holder has renewed without it: closing it earlier could free the
            // role.
            tell.closed().await;
            return;
        }
    }
}
