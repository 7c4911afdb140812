//! Readers against a writer: order, gaps, duplicates, and what happens to readers that are too slow.

use std::time::Duration;

use super::*;
use crate::feed::{Mark, Ring, RingEvent};
use crate::store::Key;
use crate::types::{Epoch, History, NodeId, Position, Text, WallTime};

/// Longer than any of this takes; only a test that hangs waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn at(index: u64) -> Position {
    Position::new(Epoch::new(7, NodeId(1)), index)
}

fn doc(key: &str) -> Draft {
    Draft::change(Key::Doc(key.into()), Some("1".into()), None)
}

fn open(ring: Ring<Frame>, sides: bool) -> (Feed, FeedWriter) {
    let (feed, writer) = feed();
    *feed.0.ring() = ring;
    writer.open(at(10), sides, History::FIRST).expect("a thread can be started");
    (feed, writer)
}

fn usual() -> (Feed, FeedWriter) {
    open(Ring::default(), false)
}

fn write(writer: &FeedWriter, index: u64, keys: &[&str]) {
    writer.record(at(index), History::FIRST, WallTime::default(), keys.iter().map(|key| doc(key)).collect());
    writer.wake();
}

fn all() -> Filter {
    Filter::new(None, "")
}

fn since(text: &str) -> Option<Since> {
    Some(Since::parse(text, text.contains('@')).expect("well formed"))
}

/// Returns the next item in short form: an id, `= id` for a bookmark, or the end.
async fn next(reader: &mut Subscription) -> String {
    match reader.next(PATIENCE).await {
        Next::Event(event) => match event.id() {
            Some(id) => id.to_string(),
            None => event.kind().name().to_string(),
        },
        Next::Bookmark(id) => format!("= {id}"),
        Next::Over(over) => format!("{over:?}"),
    }
}

async fn several(reader: &mut Subscription, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    for _ in 0..count {
        heard.push(next(reader).await);
    }
    heard
}

#[tokio::test]
async fn a_reader_hears_what_follows() {
    let (feed, writer) = usual();
    write(&writer, 11, &["before"]);
    let mut reader = feed.subscribe(all(), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 11");
    write(&writer, 12, &["a"]);
    write(&writer, 13, &[]);
    write(&writer, 14, &["a", "b", "c"]);
    assert_eq!(several(&mut reader, 4).await, ["12", "14.1", "14.2", "14.3"]);
    drop(writer);
    assert_eq!(next(&mut reader).await, "Stopping");
    assert_eq!(feed.subscribe(all(), None).err(), Some(Refused::Closed));
}

#[tokio::test]
async fn a_reader_that_leaves_gives_its_place_back() {
    let (feed, _writer) = usual();
    let mut reader = feed.subscribe(all(), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 10");
    assert!(!feed.0.seats().is_empty());
    drop(reader);
    assert!(feed.0.seats().is_empty());
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was() {
    let (feed, writer) = usual();
    write(&writer, 11, &["a"]);
    write(&writer, 12, &["a", "b"]);
    write(&writer, 13, &["c"]);
    for (from, rest) in [
        ("10", vec!["11", "12.1", "12.2", "13", "= 13"]),
        ("11", vec!["12.1", "12.2", "13", "= 13"]),
        ("12.1", vec!["12.2", "13", "= 13"]),
        ("12", vec!["13", "= 13"]),
        ("12.2", vec!["13", "= 13"]),
        ("13", vec!["= 13"]),
    ] {
        let mut reader = feed.subscribe(all(), since(from)).expect(from);
        assert_eq!(several(&mut reader, rest.len()).await, rest, "since {from}");
    }
    assert!(matches!(feed.subscribe(all(), since("14")), Err(Refused::Ahead { .. })));
    let refused = feed.subscribe(all(), since("9")).err();
    assert!(
        matches!(refused, Some(Refused::Compacted { oldest }) if oldest.to_string() == "10"),
        "{refused:?}"
    );
}

/// The cluster takes over the data of another one, whose readers hold places of the same names.
#[tokio::test]
async fn a_place_in_another_history_names_nothing() {
    let (feed, writer) = usual();
    write(&writer, 11, &["a"]);
    let mut along = feed.subscribe(all(), since("11")).expect("it is kept");
    assert_eq!(next(&mut along).await, "= 11");
    writer.record(at(12), History::begun_by(7), WallTime::default(), vec![doc("b")]);
    writer.wake();
    assert_eq!(next(&mut along).await, "12-00000007");
    for lost in ["10", "11", "12", "5000"] {
        let refused = feed.subscribe(all(), since(lost)).err();
        let compacted =
            matches!(refused, Some(Refused::Compacted { oldest }) if oldest.to_string() == "11-00000007");
        assert!(compacted, "{lost}: {refused:?}");
    }
    // The place may still come into being here: the reader comes from a node that is ahead.
    for unknown in ["12-00000008", "5000-00000008"] {
        let refused = feed.subscribe(all(), since(unknown)).err();
        let other =
            matches!(refused, Some(Refused::OtherHistory { oldest }) if oldest.to_string() == "11-00000007");
        assert!(other, "{unknown}: {refused:?}");
    }
    let mut oldest = feed.subscribe(all(), since("11-00000007")).expect("from there on nothing is missing");
    assert_eq!(several(&mut oldest, 2).await, ["12-00000007", "= 12-00000007"]);
    let mut behind = feed.subscribe(all(), since("12-00000007")).expect("it is of this history");
    assert_eq!(next(&mut behind).await, "= 12-00000007");
}

#[tokio::test]
async fn what_is_no_longer_kept_cannot_be_told() {
    let (feed, writer) = open(Ring::bounded(3, usize::MAX), false);
    write(&writer, 11, &["a", "b"]);
    write(&writer, 12, &["a", "b"]);
    let refused = feed.subscribe(all(), since("10")).err();
    assert!(
        matches!(refused, Some(Refused::Compacted { oldest }) if oldest.to_string() == "11.1"),
        "{refused:?}"
    );
    let mut reader = feed.subscribe(all(), since("11.1")).expect("it is the oldest");
    assert_eq!(several(&mut reader, 3).await, ["11.2", "12.1", "12.2"]);
    // The same with a bound in bytes.
    let (feed, writer) = open(Ring::bounded(100, 2000), false);
    (11..30).for_each(|index| write(&writer, index, &["a"]));
    assert!(feed.subscribe(all(), since("10")).is_err() && feed.subscribe(all(), since("25")).is_ok());
}

#[tokio::test]
async fn each_hears_what_it_asked_for() {
    let (feed, writer) = usual();
    let kinds = |kinds: &[Kind]| Some(Kinds::of(kinds.iter().copied()));
    let filters = [
        Filter::new(None, "a/"),
        Filter::new(None, "a/é"),
        Filter::new(kinds(&[Kind::NewLeader]), ""),
        Filter::new(kinds(&[Kind::NewLeader, Kind::Change]), "b"),
        Filter::new(kinds(&[Kind::RoleLost]), "a/"),
    ];
    let readers = filters.map(|filter| feed.subscribe(filter, None).expect("there is room"));
    let [mut a, mut e, mut leaders, mut b, mut lost] = readers;
    for reader in [&mut a, &mut e, &mut leaders, &mut b, &mut lost] {
        assert_eq!(next(reader).await, "= 10");
    }
    for (index, key) in (11..).zip(["a/1", "b", "a/é", "a", "a/è", "é", "bé"]) {
        write(&writer, index, &[key]);
    }
    writer.record(
        at(18),
        History::FIRST,
        WallTime::default(),
        vec![Draft::rare(Kind::NewLeader, None, String::new())],
    );
    writer.record(
        at(19),
        History::FIRST,
        WallTime::default(),
        vec![Draft::rare(Kind::RoleLost, Some("a/x".into()), String::new())],
    );
    writer.record(
        at(20),
        History::FIRST,
        WallTime::default(),
        vec![Draft { for_all: true, ..Draft::rare(Kind::NewState, None, String::new()) }],
    );
    writer.wake();
    assert_eq!(several(&mut a, 5).await, ["11", "13", "15", "19", "20"]);
    assert_eq!(several(&mut e, 2).await, ["13", "20"]);
    assert_eq!(several(&mut leaders, 2).await, ["18", "20"]);
    assert_eq!(several(&mut b, 4).await, ["12", "17", "18", "20"]);
    assert_eq!(several(&mut lost, 2).await, ["19", "20"]);
    // A replay selects the same events.
    let mut again = feed.subscribe(Filter::new(None, "a/"), since("10")).expect("it is kept");
    assert_eq!(several(&mut again, 6).await, ["11", "13", "15", "19", "20", "= 20"]);
}

#[tokio::test]
async fn a_full_queue_costs_nothing_that_is_kept() {
    let (feed, writer) = usual();
    let mut reader = feed.subscribe(all(), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 10");
    (11..2011).for_each(|index| write(&writer, index, &["a"]));
    for index in 11..2011 {
        assert_eq!(next(&mut reader).await, index.to_string());
    }
    write(&writer, 2011, &["a"]);
    assert_eq!(next(&mut reader).await, "2011", "it has a seat again");
}

#[tokio::test]
async fn who_lags_too_far_is_told_so() {
    let (feed, writer) = open(Ring::bounded(500, usize::MAX), false);
    let mut reader = feed.subscribe(all(), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 10");
    (11..1011).for_each(|index| write(&writer, index, &["a"]));
    let mut heard = 11;
    loop {
        match next(&mut reader).await.as_str() {
            "TooSlow" => break,
            id => assert_eq!(id, heard.to_string(), "a gap"),
        }
        heard += 1;
    }
    assert!(heard < 511, "{heard}");
    assert_eq!(next(&mut reader).await, "Stopping", "nothing follows the end");
}

#[tokio::test]
async fn silence_is_broken_by_bookmarks() {
    let (feed, writer) = usual();
    let mut reader = feed.subscribe(Filter::new(None, "mine/"), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 10");
    write(&writer, 11, &["other"]);
    write(&writer, 12, &["other", "mine/1"]);
    write(&writer, 13, &[]);
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "= 13") {
        heard.push(match reader.next(Duration::from_millis(1)).await {
            Next::Event(event) => event.id().map(|id| id.to_string()).unwrap_or_default(),
            Next::Bookmark(id) => format!("= {id}"),
            Next::Over(over) => panic!("{over:?}"),
        });
    }
    let events: Vec<_> = heard.iter().filter(|what| !what.starts_with('=')).collect();
    assert_eq!(events, ["12.2"], "{heard:?}");
    let early = heard.iter().position(|what| what == "12.2").expect("it was heard");
    let before = &heard[..early];
    assert!(before.iter().all(|what| ["= 10", "= 11", "= 12.1"].contains(&what.as_str())), "{heard:?}");
}

#[tokio::test]
async fn what_is_in_no_record_is_told_once_and_without_an_id() {
    let (feed, writer) = usual();
    let mut reader = feed.subscribe(all(), None).expect("there is room");
    assert_eq!(next(&mut reader).await, "= 10");
    writer.passing(WallTime::default(), Draft::rare(Kind::ElectionStarted, None, String::new()));
    write(&writer, 11, &["a"]);
    assert_eq!(several(&mut reader, 2).await, ["election_started", "11"]);
    let mut later = feed.subscribe(all(), since("10")).expect("it is kept");
    assert_eq!(several(&mut later, 2).await, ["11", "= 11"]);
}

#[tokio::test]
async fn another_history_has_other_ids() {
    let (feed, writer) = open(Ring::default(), true);
    write(&writer, 11, &["a"]);
    let mut reader = feed.subscribe(all(), since("7.1@10")).expect("it is kept");
    assert_eq!(several(&mut reader, 2).await, ["7.1@11", "= 7.1@11"]);
    for lost in ["7.2@11", "6.1@11", "6.1@12"] {
        let refused = feed.subscribe(all(), since(lost)).err();
        assert!(matches!(refused, Some(Refused::Compacted { .. })), "{lost}: {refused:?}");
    }
    for ahead in ["7.1@12", "8.2@12"] {
        assert!(matches!(feed.subscribe(all(), since(ahead)), Err(Refused::Ahead { .. })), "{ahead}");
    }
    let merged = Position::new(Epoch::new(9, NodeId(1)), 40);
    writer.replaced(
        merged,
        History::FIRST,
        vec![doc("a"), doc("b")],
        Draft::rare(Kind::NewState, None, String::new()),
    );
    assert_eq!(several(&mut reader, 3).await, ["9.1@40.0", "9.1@40.0", "9.1@40"]);
    for gone in ["7.1@11", "9.1@40.0", "9.1@40.1", "9.1@41.0"] {
        let refused = feed.subscribe(all(), since(gone)).err();
        assert!(
            matches!(refused, Some(Refused::Compacted { oldest }) if oldest.to_string() == "9.1@40"),
            "{gone}"
        );
    }
    writer.record(Position::new(merged.epoch, 41), History::FIRST, WallTime::default(), vec![doc("c")]);
    let mut later = feed.subscribe(all(), since("9.1@40")).expect("it is where the history begins");
    assert_eq!(several(&mut later, 2).await, ["9.1@41", "= 9.1@41"]);
}

/// Events before a replacement, and the changes that it makes, reach the current readers without loss.
#[tokio::test]
async fn a_replacement_cuts_nobody_off() {
    const ROUNDS: u64 = 20;
    let (feed, writer) = open(Ring::default(), true);
    let mut all = feed.subscribe(all(), None).expect("there is room");
    let rare = Filter::new(Some(Kinds::of([Kind::NewState])), "");
    let mut rare = feed.subscribe(rare, None).expect("there is room");
    assert_eq!(
        (next(&mut all).await, next(&mut rare).await),
        ("= 7.1@10".to_string(), "= 7.1@10".to_string())
    );
    let mut behind = feed.subscribe(Filter::new(None, ""), since("7.1@10")).expect("it is kept");
    let new_state = || Draft::rare(Kind::NewState, None, String::new());
    for round in 1..=ROUNDS {
        writer.record(at(10 + round), History::FIRST, WallTime::default(), vec![doc("before")]);
        writer.replaced(at(10 + round), History::FIRST, vec![doc("by it")], new_state());
    }
    let each = |round: u64| ["", ".0", ""].map(|part| format!("7.1@{}{part}", 10 + round));
    let expected: Vec<String> = (1..=ROUNDS).flat_map(each).collect();
    assert_eq!(several(&mut all, expected.len()).await, expected);
    assert_eq!(several(&mut behind, expected.len()).await, expected);
    for round in 1..=ROUNDS {
        assert_eq!(next(&mut rare).await, format!("7.1@{}", 10 + round));
    }
}

/// If a replacement changes more than is kept, only the last changes are taken in, and readers that lack the rest learn so.
#[tokio::test]
async fn a_replacement_of_more_than_is_kept() {
    let (feed, writer) = open(Ring::bounded(3, usize::MAX), true);
    write(&writer, 11, &["a"]);
    let changes = ["a", "b", "c", "d", "e", "f"].map(doc).to_vec();
    writer.replaced(at(40), History::FIRST, changes, Draft::rare(Kind::NewState, None, String::new()));
    let first = feed.0.ring().first();
    assert_eq!((first, feed.0.ring().next()), (5, 8), "one, six, and that the state is new");
    assert!(matches!(feed.subscribe(all(), since("7.1@11")), Err(Refused::Compacted { .. })));
    write(&writer, 41, &["g"]);
    let mut later = feed.subscribe(all(), since("7.1@40")).expect("it is where the history begins");
    assert_eq!(several(&mut later, 2).await, ["7.1@41", "= 7.1@41"]);
}

/// Readers that start at any moment, and resume after each few events, miss no event and get none twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resuming_under_load_is_exact() {
    const LAST: u64 = 5010;
    let (feed, writer) = usual();
    let writing = tokio::task::spawn_blocking(move || {
        (11..=LAST).for_each(|index| write(&writer, index, &["a", "b"][..1 + index as usize % 2]));
        writer
    });
    let read = |step: usize| {
        let feed = feed.clone();
        async move {
            let (mut heard, mut last) = (Vec::new(), "10".to_string());
            while heard.len() < 7500 {
                let mut reader = feed.subscribe(all(), since(&last)).expect("it is kept");
                for _ in 0..step {
                    if let Next::Event(event) = reader.next(PATIENCE).await {
                        last = event.id().expect("in a record").to_string();
                        heard.push(event.mark());
                    }
                    if heard.len() == 7500 {
                        break;
                    }
                }
            }
            heard
        }
    };
    let readings = tokio::join!(read(3), read(100), read(1000));
    let expected: Vec<Mark> =
        (11..=LAST).flat_map(|index| (1..=1 + index as u32 % 2).map(move |n| Mark { index, n })).collect();
    for heard in [readings.0, readings.1, readings.2] {
        assert!(heard == expected, "a gap or a duplicate among {}", heard.len());
    }
    drop(writing.await.expect("nobody panics"));
}

#[test]
fn an_event_as_text() {
    let id = Id { at: at(12), n: None, sides: false, history: History::FIRST };
    let wall = WallTime(1_795_000_000_000_000);
    let event = |draft| Frame::from(RingEvent::new(Mark { index: 12, n: 1 }, Some(id), id, wall, draft));
    let text = |event: &Frame| String::from_utf8(event.frame().to_vec()).expect("text");
    let put = event(Draft::change(Key::Doc("a\"b".into()), Some("{\"x\":1}".into()), None));
    let json = "{\"id\":\"12\",\"kind\":\"change\",\"at\":\"2026-11-18T11:06:40Z\",\"table\":\"doc\",\"key\":\"a\\\"b\",\
        \"rev\":\"12\",\"op\":\"put\",\"value\":{\"x\":1}}";
    assert_eq!(text(&put), format!("id: 12\nevent: change\ndata: {json}\n\n"));
    assert_eq!(put.line(), format!("{json}\n"));
    let deleted = event(Draft::change(Key::User("ann".into()), None, Some("7.1@3".into())));
    assert!(
        text(&deleted).contains(",\"key\":\"ann\",\"rev\":\"7.1@3\",\"op\":\"delete\"}"),
        "{}",
        text(&deleted)
    );
    let vote = event(Draft::change(Key::Vote("[\"lunch\",\"ann\"]".into()), Some("\"pizza\"".into()), None));
    assert!(
        text(&vote).contains(",\"table\":\"vote\",\"key\":\"lunch\",\"voter\":\"ann\","),
        "{}",
        text(&vote)
    );
    assert_eq!(vote.name().as_deref(), Some("lunch"));
    let large =
        event(Draft::change(Key::Doc("a".into()), Some(Text::from("1".repeat(VALUE_MOST + 1))), None));
    assert!(text(&large).ends_with("\"op\":\"put\"}\n\n"), "{}", text(&large));
    let passing = Draft::rare(Kind::ServiceUp, None, ",\"x\":1".to_string());
    let passing = RingEvent::new(Mark::behind(12), None, id, WallTime::default(), passing).into();
    assert_eq!(text(&passing), "event: service_up\ndata: {\"kind\":\"service_up\",\"x\":1}\n\n");
    assert!(matches!(doc("a").fact, Fact::Change { .. }));
}
