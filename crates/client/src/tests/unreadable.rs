//! Values that a cluster accepted before it refused them, and that serde_json cannot read: the values beside them and
//! after them are read all the same.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Reply};
use crate::{Acquire, Backend, Client, Error, FeedOptions, Heard, Level, RawValue};

const HALF: &str = r#""\ud800""#;
const RESERVED: &str = r#"{"$serde_json::private::RawValue": 1}"#;

/// Unreadable values. One of them has 5,000 digits.
fn unreadable() -> [String; 4] {
    ["1e400", HALF, RESERVED, &"7".repeat(5000)].map(str::to_string)
}

fn said(status: u16, body: &str) -> Reply {
    let length = body.len();
    Reply::Raw(format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\netag: \"7\"\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
}

/// A node that gives the same answer to every call.
async fn node(status: u16, body: String) -> (Fake, Client) {
    let node = Fake::start(Arc::new(move |_| {
        let reply = said(status, &body);
        Box::pin(async move { reply })
    }))
    .await;
    let client = Client::new([node.url.clone()]).expect("a client");
    (node, client)
}

/// A node that serves a stream of these lines, and then an empty stream.
async fn telling(lines: &[String]) -> (Fake, Client) {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let whole = Reply::Raw(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"));
    let node = Fake::script(vec![whole, Reply::Silence]).await;
    let client = Client::new([node.url.clone()]).expect("a client");
    (node, client)
}

#[tokio::test]
async fn a_list_has_the_rows_around_it_and_its_text() {
    for value in unreadable() {
        let page = format!(
            r#"{{"items":[{{"key":"a","rev":"1","value":1.50}},{{"key":"b","rev":"2","value":{value}}},{{"key":"c","rev":"3","value":[3]}}],"next":"c"}}"#
        );
        let (_node, client) = node(200, page).await;
        let page = client.docs("", None).await.expect("a page");
        let texts: Vec<&str> = page.items.iter().map(|row| row.value.get()).collect();
        assert_eq!(texts, ["1.50", &value, "[3]"]);
        assert_eq!(page.next.as_deref(), Some("c"));
        assert_eq!(page.items[2].read::<Vec<u8>>().expect("a list"), [3]);
        let error = page.items[1].read::<Value>().expect_err("unreadable");
        assert!(matches!(&error, Error::NotJson { what, .. } if what == "document \"b\""), "{error}");
    }
}

#[tokio::test]
async fn a_document_can_be_read_as_text() {
    for value in unreadable() {
        let (_node, client) = node(200, value.clone()).await;
        let error = client.get_doc::<Value>("k", Level::Linear).await.expect_err("unreadable");
        assert!(matches!(error, Error::NotJson { .. }) && !error.is_outage(), "{error}");
        let read = client.get_doc::<Box<RawValue>>("k", Level::Linear).await.expect("text").expect("there");
        assert_eq!((read.value.get(), read.rev.as_str()), (value.as_str(), "7"));
    }
}

/// A mirror learns that its value is outdated.
#[tokio::test]
async fn an_event_comes_without_it_and_says_so() {
    for value in unreadable() {
        let change = |id: u64, key: &str, value: &str| {
            format!(
                r#"{{"id":"{id}","kind":"change","table":"doc","key":"{key}","rev":"{id}","op":"put","value":{value}}}"#
            )
        };
        let (_node, client) =
            telling(&[change(4, "a", "1"), change(5, "b", &value), change(6, "c", "3")]).await;
        let mut feed = client.feed(FeedOptions::default()).await.expect("a node tells");
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(feed.next().await.expect("an event"));
        }
        assert_eq!(
            told.iter().map(|event| event.text("key")).collect::<Vec<_>>(),
            [Some("a"), Some("b"), Some("c")]
        );
        assert_eq!(told[1].members.get("value"), None);
        assert_eq!(told[1].unreadable.get("value"), Some(&value));
        assert_eq!(
            (told[1].text("op"), told[1].text("rev"), told[1].id.as_deref()),
            (Some("put"), Some("5"), Some("5"))
        );
        assert_eq!((told[2].members.get("value"), told[2].unreadable.len()), (Some(&json!(3)), 0));
        assert_eq!(feed.position(), Some("6"));
    }
}

#[tokio::test]
async fn a_listener_hears_the_text() {
    for message in unreadable() {
        let (_node, client) = telling(&["1".to_string(), message.clone(), "2".to_string()]).await;
        let mut heard = client.subscribe("c").await.expect("a node passes on");
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(heard.next().await.expect("something"));
        }
        assert_eq!(all, [Heard::Message(json!(1)), Heard::Unreadable(message), Heard::Message(json!(2))]);
    }
}

#[tokio::test]
async fn processes_and_holders_are_known_all_the_same() {
    for value in unreadable() {
        let page = format!(
            r#"{{"items":[{{"id":"a","identifier":"x","channel":"c","metadata":{{"n":{value}}}}},{{"id":"b","identifier":"y","channel":"d"}}],"next":null}}"#
        );
        let (_node, client) = node(200, page).await;
        let all = client.all_processes(&Default::default()).await.expect("a page");
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].metadata, Some(json!({"n": value})));
        let held = format!(
            r#"{{"code":"role_held","role":"r","leader":{{"instance_id":"a","metadata":{value}}},"token":7,"expires_in_ms":9000}}"#
        );
        let (_node, client) = node(409, held).await;
        let (ttl, wait) = (Duration::from_secs(30), Duration::ZERO);
        let (address, metadata) = (None, None);
        let ask =
            Acquire { role: "r".into(), instance_id: "b".into(), ttl, priority: 0, address, metadata, wait };
        let refused = client.acquire(&ask).await.map(drop).expect_err("held");
        let Error::RoleHeld(held) = refused else { panic!("{refused}") };
        assert_eq!((held.leader.instance_id.as_str(), held.leader.metadata), ("a", Some(json!(value))));
    }
}
