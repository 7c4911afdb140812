//! The feed of real nodes: a reader misses nothing and hears nothing twice, whatever happens to the
//! node that it reads from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Events, Plan, Raw, Told, problem, query, watch_for};
use crate::load::{Load, documents};
use crate::restores::hand_over;

/// One client of the feed: it continues at any node, from where it was.
struct Reader {
    path: &'static str,
    last: Option<String>,
    /// The ids of changes, in the order in which they came.
    ids: Vec<String>,
    keys: Vec<String>,
}

impl Reader {
    fn new(path: &'static str) -> Reader {
        Reader { path, last: None, ids: Vec::new(), keys: Vec::new() }
    }

    async fn open(&self, cluster: &Cluster, node: u32) -> Events {
        let since = self.last.as_ref().map(|last| format!("&since={}", query(last))).unwrap_or_default();
        let path = format!("{}{since}", self.path);
        watch_for("a node goes on with the feed", async || {
            cluster.events(node, &path).await.map_err(|status| format!("n{node}: {status:?}"))
        })
        .await
    }

    fn hear(&mut self, event: &Value) {
        if let Some(id) = event["id"].as_str() {
            self.last = Some(id.to_string());
        }
        if event["kind"] == "change" {
            self.ids.push(event["id"].as_str().expect("an id").to_string());
            self.keys.push(event["key"].as_str().expect("a key").to_string());
        }
    }

    /// Reads until this key comes, or the node is gone.
    async fn until(&mut self, events: &mut Events, key: &str) -> bool {
        loop {
            match events.next().await {
                Told::Event(event) if event["kind"] == "error" => {}
                Told::Event(event) => self.hear(&event),
                Told::End | Told::BrokenOff => return false,
            }
            if self.keys.last().is_some_and(|last| last == key) {
                return true;
            }
        }
    }

    async fn some(&mut self, events: &mut Events, count: usize) {
        let enough = self.keys.len() + count;
        while self.keys.len() < enough {
            self.hear(&events.event().await);
        }
    }
}

#[tokio::test]
async fn a_reader_loses_nothing_when_its_node_is_killed() {
    let cluster = Arc::new(Cluster::of(3).await);
    let mut reader = Reader::new("/v1/feed?format=ndjson&kinds=change&prefix=feed/");
    let mut serving = cluster.leader().await;
    let mut events = reader.open(&cluster, serving).await;
    reader.hear(&events.event().await);
    let load = Load::start(&cluster, "feed");
    // First the leader's readers, then a follower's; each time the dead node comes back first.
    for _ in 0..2 {
        reader.some(&mut events, 50).await;
        cluster.kill9(serving);
        assert!(!reader.until(&mut events, "feed/end").await, "there is no end yet");
        let dead = serving;
        serving = cluster.others(dead)[0];
        events = reader.open(&cluster, serving).await;
        reader.some(&mut events, 50).await;
        cluster.start(dead);
        cluster.is_ready(dead).await;
    }
    let tally = load.end().await;
    cluster.write_doc("feed/end", 1).await;
    assert!(reader.until(&mut events, "feed/end").await, "the end is heard");
    println!("{}; {} changes heard", tally.show(), reader.keys.len());

    let found = documents(&cluster, serving, "feed/").await;
    let heard: BTreeSet<&String> = reader.keys.iter().collect();
    assert_eq!(heard.len(), reader.keys.len(), "a change was heard twice");
    assert_eq!(heard, found.keys().collect(), "each document was written once, and heard of once");
    let indexes: Vec<u64> = reader.ids.iter().map(|id| id.parse().expect("an index")).collect();
    assert!(indexes.is_sorted(), "out of order: {indexes:?}");
}

#[tokio::test]
async fn every_node_tells_the_same() {
    let cluster = Cluster::of(3).await;
    let written = cluster.eventually(Call::put("/v1/docs/k").raw_json("0")).await.expect(201);
    let start = written.json()["rev"].as_str().expect("a revision").to_string();
    let path = format!("/v1/feed?since={start}");
    let batch = json!([
        {"storage_cmd": "PutDoc", "payload": {"key": "a", "value": 1}},
        {"storage_cmd": "CreateUser", "payload": {"name": "ann"}},
    ]);
    cluster.eventually(Call::post("/v1/commands").json(&batch)).await.expect(200);
    let answer = cluster.eventually(Call::delete("/v1/docs/k")).await.expect(200);
    let last = answer.header("eldest-index").expect("an index").to_string();
    let mut told = BTreeMap::new();
    for id in cluster.ids() {
        let mut events = cluster.events(id, &path).await.expect("it is kept everywhere");
        let mut heard = Vec::new();
        while heard.last().is_none_or(|event: &Value| event["id"] != json!(last)) {
            heard.push(events.news().await);
        }
        told.insert(id, heard);
    }
    assert_eq!(told[&1], told[&2]);
    assert_eq!(told[&1], told[&3]);
    assert!(told[&1].iter().all(|event| event["at"].is_string()), "{told:?}");
    let kinds: Vec<_> = told[&1].iter().map(|event| (&event["table"], &event["key"], &event["op"])).collect();
    let expected = [("doc", "a", "put"), ("user", "ann", "put"), ("doc", "k", "delete")];
    let expected = expected.map(|(table, key, op)| (json!(table), json!(key), json!(op)));
    assert!(kinds.into_iter().eq(expected.iter().map(|(table, key, op)| (table, key, op))), "{told:?}");
}

#[tokio::test]
async fn a_bookmark_is_a_place_to_go_on_from() {
    let cluster = Cluster::of(3).await;
    let path = "/v1/feed?kinds=change&prefix=mine/";
    let mut events = cluster.events(2, path).await.expect("a feed");
    assert_eq!(events.event().await["kind"], "bookmark", "the first says where it begins");
    for number in 0..10 {
        cluster.write_doc("other", number).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    let applied = cluster.status_of(2, "applied_index").await.to_string();
    let bookmark = watch_for("a bookmark beyond what does not concern it", async || {
        let event = events.event().await;
        assert_eq!(event["kind"], "bookmark", "{event}");
        if event["id"] == json!(applied) { Ok(applied.clone()) } else { Err(event.to_string()) }
    })
    .await;
    drop(events);
    cluster.write_doc("mine/1", 1).await;
    let mut events = cluster.events(3, &format!("{path}&since={bookmark}")).await.expect("a feed");
    assert_eq!(events.news().await["key"], "mine/1");
}

#[tokio::test]
async fn five_hundred_hear_only_what_is_theirs() {
    const READERS: u64 = 500;
    let cluster = Cluster::of(3).await;
    let mut readers = Vec::new();
    for reader in 0..READERS {
        let path = format!("/v1/feed?format=ndjson&kinds=change&prefix=p{reader}/");
        let mut events = cluster.events(reader as u32 % 3 + 1, &path).await.expect("a feed");
        assert_eq!(events.event().await["kind"], "bookmark");
        readers.push(events);
    }
    let write = async |writer: u64| {
        for reader in (0..READERS).filter(|reader| reader % 8 == writer) {
            for key in ["a", "b", "end"] {
                cluster.write_doc(&format!("p{reader}/{key}"), reader).await;
            }
        }
    };
    join_all((0..8).map(write)).await;
    for (reader, events) in readers.iter_mut().enumerate() {
        for key in ["a", "b", "end"] {
            let event = events.news().await;
            assert_eq!(event["key"], json!(format!("p{reader}/{key}")));
            assert_eq!(event["value"], json!(reader));
        }
    }
}

/// The backlog is bounded; a reader that has not read dropped changes gets an error, and
/// the others do not notice.
#[tokio::test]
async fn a_slow_reader_is_cut_off_with_a_reason() {
    const WRITES: usize = 800;
    // The node does not give up a connection before the reader lags too far, even if a busy machine
    // takes long to get there.
    let patient = "limits.answer_timeout_ms = 600000\nlimits.idle_timeout_ms = 600000";
    let cluster = Plan::new(1).config(patient).start().await;
    let mut slow = Raw::connect(cluster.node(1)).await;
    let head = "GET /v1/feed?kinds=change HTTP/1.1\r\nhost: node-1\r\nconnection: close\r\n\r\n";
    slow.send(head.as_bytes()).await;
    let mut head = String::new();
    for _ in 0..100 {
        head += &slow.read_line().await;
        if head.contains("bookmark") {
            break;
        }
    }
    assert!(head.contains("bookmark"), "it listens: {head}");
    let mut quick = cluster.events(1, "/v1/feed?kinds=change").await.expect("a feed");
    assert_eq!(quick.event().await["kind"], "bookmark");
    let reading = tokio::spawn(async move {
        for number in 0..WRITES {
            assert_eq!(quick.news().await["key"], json!(format!("k{number}")), "the quick one hears all");
        }
    });
    let value = format!("\"{}\"", "x".repeat(60 << 10));
    for number in 0..WRITES {
        let call = Call::put(format!("/v1/docs/k{number}")).raw_json(&value);
        cluster.eventually(call).await.expect(201);
    }
    reading.await.expect("the quick one does not panic");
    let heard = String::from_utf8(slow.read_to_end().await).expect("text");
    let end = &heard[heard.len().saturating_sub(1000)..];
    assert!(heard.contains("\"key\":\"k0\""), "it was told what fitted on the way");
    assert!(end.contains("event: error") && end.contains("\"code\":\"too_slow\""), "{end}");
    assert!(end.ends_with("0\r\n\r\n"), "the answer ends cleanly: {end}");
}

#[tokio::test]
async fn what_is_not_kept_is_refused() {
    let cluster = Plan::new(1).config("snapshot_every = 10").start().await;
    for number in 0..40 {
        cluster.write_doc("k", number).await;
    }
    let mut events = cluster.events(1, "/v1/feed?since=1").await.expect("all is kept at first");
    while events.news().await["value"] != json!(39) {}
    watch_for("a snapshot", async || {
        let snapshot = cluster.status_of(1, "snapshot_id").await;
        if snapshot.as_u64() >= Some(3) { Ok(()) } else { Err(snapshot.to_string()) }
    })
    .await;
    cluster.term(1).await;
    cluster.start(1);
    cluster.ready().await;
    let gone = refused(&cluster, "/v1/feed?since=1").await;
    let gone = problem(&gone, 410, "feed_compacted");
    let oldest = gone["oldest"].as_str().expect("an id");
    let mut events = cluster.events(1, &format!("/v1/feed?since={oldest}")).await.expect("it is kept");
    events.event().await;
    for wrong in ["?kinds=changes", "?since=-1", "?format=csv", "?after=1"] {
        problem(&refused(&cluster, &format!("/v1/feed{wrong}")).await, 400, "bad_field");
    }
}

async fn refused(cluster: &Cluster, path: &str) -> Answer {
    cluster.answer(1, Call::get(path)).await
}

#[tokio::test]
async fn a_node_that_ends_says_so() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let mut events = cluster.events(leader, "/v1/feed").await.expect("a feed");
    let mut messages = cluster.events(leader, "/v1/channels/c").await.expect("a channel");
    events.event().await;
    cluster.term(leader).await;
    loop {
        let event = events.event().await;
        if event["kind"] == "error" {
            assert_eq!((&event["code"], &event["retryable"]), (&json!("stopping"), &json!(true)));
            break;
        }
    }
    assert_eq!(events.next().await, Told::End);
    assert_eq!(messages.event().await["code"], "stopping");
    assert_eq!(messages.next().await, Told::End);
}

/// A failover as its readers see it.
#[tokio::test]
async fn elections_and_leaders_are_told() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let reader = cluster.others(leader)[1];
    let kinds = "election_started,election_completed,new_leader";
    let mut events = cluster.events(reader, &format!("/v1/feed?kinds={kinds}")).await.expect("a feed");
    events.event().await;
    cluster.kill9(leader);
    let next = cluster.leader().await;
    let mut seen = BTreeMap::new();
    while seen.len() < 3 {
        let event = events.news().await;
        seen.insert(event["kind"].as_str().unwrap_or_default().to_string(), event);
    }
    assert_eq!(seen["new_leader"]["leader"]["id"], json!(next));
    assert!(seen["new_leader"]["id"].is_string(), "it is a record");
    assert_eq!(seen["new_leader"]["previous_leader"], json!(leader));
    assert!(seen.values().all(|event| event["at"].is_string()), "{seen:?}");
    for kind in ["election_started", "election_completed"] {
        let event = &seen[kind];
        assert!(event.get("id").is_none(), "it is in no record");
        let why = (&event["lost_leader"], &event["cause"]);
        assert_eq!(why, (&json!(leader), &json!("refused")), "{event}");
    }
    assert!(seen["election_completed"]["leaderless_ms"].is_u64(), "{seen:?}");
}

/// A hand-over as the leader before and the next one tell it.
#[tokio::test]
async fn a_hand_over_is_told_by_both() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let heir = cluster.others(leader)[0];
    let feed = "/v1/feed?kinds=election_started,election_completed";
    let mut before = cluster.events(leader, feed).await.expect("a feed");
    let mut next = cluster.events(heir, feed).await.expect("a feed");
    before.event().await;
    next.event().await;
    hand_over(&cluster, heir).await;
    // The heir is not told the reason.
    for (events, reason) in [(&mut before, json!("ordered")), (&mut next, json!(null))] {
        for kind in ["election_started", "election_completed"] {
            let event = events.news().await;
            let told = (&event["kind"], &event["lost_leader"], &event["cause"]);
            assert_eq!(told, (&json!(kind), &json!(leader), &json!("handed_over")), "{event}");
            assert_eq!(event["reason"], reason, "{event}");
            let is_timed = event["leaderless_ms"].is_u64();
            assert_eq!(is_timed, kind == "election_completed", "{event}");
        }
    }
}
