//! Clients that use TLS: the library, and the command line.

use std::time::Duration;

use eldest::client::{Client, FeedOptions, If, Lock};
use serde_json::json;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::{PATIENCE, REQUIRE, connect};
use crate::harness::{Cluster, Plan, eldest};
use crate::roles::{LONG, acquire, grant, patient};

fn client(cluster: &Cluster) -> Client {
    Client::builder(cluster.urls()).tls(cluster.certs().files(None)).build().expect("a client")
}

/// A role is held and the feed is resumed while the leader, which serves both, dies.
#[tokio::test]
async fn a_role_and_the_feed_survive_the_leader() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let client = client(&cluster);
    let guard = Lock::new(client.clone(), "r").ttl(Duration::from_secs(120)).acquire().await.expect("free");
    let mut feed = client
        .feed(FeedOptions { kinds: vec!["change".into()], prefix: Some("app/".into()), since: None })
        .await
        .expect("a node tells");
    client.put_doc("app/a", &json!(1), If::Always).await.expect("written");
    let told = timeout(PATIENCE, feed.next()).await.expect("in time").expect("told");
    assert_eq!(told.text("key"), Some("app/a"));
    cluster.kill9(cluster.leader().await);
    client.put_doc("app/b", &json!(2), If::Always).await.expect("written, by whoever leads now");
    let told = timeout(PATIENCE, feed.next()).await.expect("in time").expect("told");
    assert_eq!(told.text("key"), Some("app/b"));
    assert!(client.check("r", guard.token()).await.expect("asked").valid, "the role is held");
    guard.release().await.expect("given back");
}

/// Without the CA no node is believed, and the message says which option is missing.
#[tokio::test]
async fn the_command_line_speaks_tls() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let ca = cluster.certs().path("ca.crt").display().to_string();
    let urls = cluster.urls().join(",");
    let at = ["--url", urls.as_str(), "--ca", ca.as_str()];
    let run = |words: &[&str]| {
        let words: Vec<String> = [words, &at].concat().iter().map(ToString::to_string).collect();
        tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = eldest(&words);
            let said = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8_lossy(&said).into_owned())
        })
    };
    let (code, said) = run(&["status"]).await.expect("no panic");
    assert_eq!((code, said.matches(" follower ").count()), (Some(0), 2), "every node has answered: {said}");
    let (code, said) = run(&["doc", "put", "k", "1"]).await.expect("no panic");
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["bench", "--connections", "4", "--duration", "500ms"]).await.expect("no panic");
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["bench", "--stream", "2", "--duration", "500ms"]).await.expect("no panic");
    assert_eq!(code, Some(0), "{said}");
    let own = cluster.node(2).url();
    assert_eq!(eldest(&["healthcheck", "--url", &own, "--ca", &ca]).status.code(), Some(0));
    let output = eldest(&["healthcheck", "--url", &own]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("--ca"), "{said}");
}

/// The kernel closes the connection of a process that is killed, so there is no TLS close notification.
#[tokio::test]
async fn a_role_is_free_when_its_connection_ends_without_a_word() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let token = grant(cluster.answer(1, acquire("r", "killed", json!({}))).await);
    let query = format!("instance_id=killed&token={token}&tie=1&ttl_ms={LONG}&grace_ms=0");
    let mut stream = connect(&cluster, 2).await;
    let request =
        format!("POST /v1/roles/r/tie?{query} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let (mut said, mut buffer) = (String::new(), [0; 4096]);
    while !said.contains("event: tied") {
        let reading = timeout(PATIENCE, stream.read(&mut buffer));
        let count = reading.await.expect("it answers in time").expect("it answers");
        assert!(count > 0, "{said}");
        said += &String::from_utf8_lossy(&buffer[..count]);
    }
    // Its TCP connection ends without a TLS close notification.
    drop(stream);
    assert!(grant(cluster.answer(1, patient("r", "next", json!({}))).await) > token);
}
