//! Encodes and decodes every message.

use std::collections::BTreeSet;

use super::*;
use crate::protocol::{
    Beat, BeatReply, Certificate, Checkpoint, Claim, Condition, Message, SnapshotMeta, Standing, Term,
};
use crate::types::{
    Boot, ClaimId, ClusterId, Digest, Entry, Epoch, Format, Incarnation, NodeId, Position, Record, Span,
    Stamp, Vector,
};

const TERM: Term = Term { epoch: Epoch { counter: 7, leader: NodeId(1) }, claim: ClaimId(0x5e02) };

fn at(counter: u64, index: u64) -> Position {
    Position::new(Epoch::new(counter, NodeId(2)), index)
}

fn records() -> crate::protocol::Records {
    let record = |index| Record {
        position: Position::new(TERM.epoch, index),
        stamp: Stamp::default(),
        entry: Entry::Lead { founding: None },
    };
    [record(12), record(13)].into()
}

fn standing() -> Standing {
    Standing {
        promise: TERM.epoch,
        seen: Epoch::new(9, NodeId(3)),
        last: at(6, 11),
        hears: BTreeSet::from([NodeId(2), NodeId(3)]),
        seeking: Span(20_000),
        condition: Condition::Recovering,
        vector: None,
    }
}

fn in_condition(condition: Condition) -> Message {
    Message::Willing { ask: 4, standing: Standing { condition, ..standing() } }
}

fn messages() -> Vec<(Message, &'static str)> {
    [beats(), logs(), elections(), sides()].concat()
}

fn beats() -> Vec<(Message, &'static str)> {
    let heartbeat = |heir| {
        Message::Heartbeat(Beat {
            term: TERM,
            round: 12,
            lease: Span(300_000),
            commit: 120,
            heir,
            boundary: 110,
            vector: None,
        })
    };
    let reply = |digest| {
        Message::HeartbeatReply(BeatReply {
            epoch: TERM.epoch,
            round: 12,
            matched: 120,
            last: at(7, 121),
            full: true,
            digest,
            vector: None,
        })
    };
    vec![
        (
            heartbeat(Some(NodeId(2))),
            "heartbeat term=7.1/5e02 round=12 lease=300000 commit=120 heir=2 boundary=110",
        ),
        (heartbeat(None), "heartbeat term=7.1/5e02 round=12 lease=300000 commit=120 heir=0 boundary=110"),
        (
            reply(Some(Checkpoint { index: 110, digest: Digest { version: 1, value: 0xfeed } })),
            "heard epoch=7.1 round=12 matched=120 last=7.2@121 full=yes at=110 digest=feed",
        ),
        (
            reply(Some(Checkpoint { index: 110, digest: Digest { version: 2, value: 0xfeed } })),
            "heard epoch=7.1 round=12 matched=120 last=7.2@121 full=yes other_at=110 digest=feed version=2",
        ),
        (reply(None), "heard epoch=7.1 round=12 matched=120 last=7.2@121 full=yes"),
    ]
}

fn logs() -> Vec<(Message, &'static str)> {
    vec![
        (
            Message::Append { term: TERM, prev: at(6, 11), records: records(), commit: 10 },
            "append term=7.1/5e02 prev=6.2@11 chain=9a3f01bc count=2 commit=10",
        ),
        (Message::Appended { epoch: TERM.epoch, matched: 13 }, "appended epoch=7.1 matched=13"),
        (
            Message::Gap { epoch: TERM.epoch, prev: at(6, 11), hint: at(5, 9) },
            "gap epoch=7.1 prev=6.2@11 hint=5.2@9",
        ),
        (Message::Snapshot { term: TERM, meta: SnapshotMeta::default() }, "snapshot term=7.1/5e02"),
    ]
}

fn elections() -> Vec<(Message, &'static str)> {
    let certificate = Certificate { epoch: Epoch::new(6, NodeId(2)), heir: NodeId(1), last: at(6, 11) };
    let claim = |certificate| {
        Message::Claim(Claim {
            term: TERM,
            last: at(6, 11),
            condition: Condition::Held,
            certificate,
            vector: None,
        })
    };
    vec![
        (Message::Stale { promise: TERM }, "stale term=7.1/5e02"),
        (Message::Resigned { epoch: TERM.epoch }, "resigned epoch=7.1"),
        (Message::NotMember { ask: 5, as_of: 12, last: at(7, 121) }, "notmember ask=5 as_of=12 last=7.2@121"),
        (
            Message::Willing { ask: 4, standing: standing() },
            "willing ask=4 promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 condition=recovering",
        ),
        (
            Message::Opinion { ask: 4, yes: true, held: false, standing: standing() },
            "opinion ask=4 yes=yes held=no promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 \
             condition=recovering",
        ),
        (
            in_condition(Condition::Blank),
            "willing ask=4 promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 condition=blank",
        ),
        (
            in_condition(Condition::Ordered),
            "willing ask=4 promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 condition=ordered",
        ),
        (
            in_condition(Condition::Fit),
            "willing ask=4 promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 condition=fit",
        ),
        (claim(None), "claim term=7.1/5e02 last=6.2@11 condition=held"),
        (
            claim(Some(certificate)),
            "claim term=7.1/5e02 last=6.2@11 condition=held ended=6.2 heir=1 ended_at=6.2@11",
        ),
        (
            Message::Approve { term: TERM, last: at(6, 11), lease_left: Span(5) },
            "approve term=7.1/5e02 last=6.2@11 lease_left=5",
        ),
        (Message::Refuse { term: TERM, promise: TERM.epoch }, "refuse term=7.1/5e02 promise=7.1"),
        (Message::Pull { term: TERM, after: at(6, 11) }, "pull term=7.1/5e02 after=6.2@11"),
        (
            Message::Pulled { term: TERM, prev: at(6, 11), records: records() },
            "pulled term=7.1/5e02 prev=6.2@11 chain=9a3f01bc count=2",
        ),
        (Message::HandOver(certificate), "handover ended=6.2 heir=1 ended_at=6.2@11"),
        (
            Message::Odd { epoch: TERM.epoch, incarnation: Incarnation(0xbeef), forgot: false, ask: None },
            "odd epoch=7.1 incarnation=beef",
        ),
        (
            Message::Odd {
                epoch: TERM.epoch,
                incarnation: Incarnation(0xbeef),
                forgot: true,
                ask: Some(77_000),
            },
            "odd epoch=7.1 incarnation=beef forgot=yes ask=77000",
        ),
    ]
}

fn vector() -> Vector {
    "7.1@120,8.2@50;1-6.3@90".parse().expect("it is spelt as vectors are")
}

fn sides() -> Vec<(Message, &'static str)> {
    let (vector, none) = (vector(), Vector::default());
    let side = |leader| Message::Side { epoch: TERM.epoch, leader, vector: Vector::default() };
    let meta = SnapshotMeta::default();
    vec![
        (
            Message::Poll { term: TERM, vector: vector.clone() },
            "poll term=7.1/5e02 has=7.1@120,8.2@50;1-6.3@90",
        ),
        (side(Some(NodeId(1))), "side epoch=7.1 leader=1 has=-"),
        (side(None), "side epoch=7.1 leader=0 has=-"),
        (
            Message::Meet { term: TERM, vector: vector.clone() },
            "meet term=7.1/5e02 has=7.1@120,8.2@50;1-6.3@90",
        ),
        (
            Message::Merge { epoch: TERM.epoch, base: vector.clone(), meta: meta.clone() },
            "merge epoch=7.1 base=7.1@120,8.2@50;1-6.3@90",
        ),
        (Message::Override { term: TERM, base: none, meta }, "override term=7.1/5e02 base=-"),
        (
            Message::Heartbeat(Beat {
                term: TERM,
                round: 12,
                lease: Span(300_000),
                commit: 120,
                heir: None,
                boundary: 110,
                vector: Some(vector.clone()),
            }),
            "heartbeat term=7.1/5e02 round=12 lease=300000 commit=120 heir=0 boundary=110 \
             vector=7.1@120,8.2@50;1-6.3@90",
        ),
        (
            Message::Willing { ask: 4, standing: Standing { vector: Some(vector), ..standing() } },
            "willing ask=4 promise=7.1 seen=9.3 last=6.2@11 hears=2,3 seeking=20000 condition=recovering \
             vector=7.1@120,8.2@50;1-6.3@90",
        ),
    ]
}

#[test]
fn every_message_travels_as_it_is_written_here() {
    for (message, text) in messages() {
        assert_eq!(encode(&message, 0x9a3f_01bc), text);
        let attached = match attachment(text).expect("the attachment is named") {
            Attachment::Nothing => Attached::Nothing,
            Attachment::Lines { chain, count } => {
                assert_eq!((chain, count), (0x9a3f_01bc, 2));
                Attached::Lines(records())
            }
            Attachment::Snapshot => Attached::Snapshot(SnapshotMeta::default()),
            Attachment::Difference => Attached::Difference(SnapshotMeta::default()),
        };
        let of_sides = sides().iter().any(|(side, _)| *side == message) && !text.contains(" vector=");
        assert_eq!(needs_available_mode(text), of_sides, "{text}");
        assert_eq!(decode(text, attached), Ok(message));
    }
}

#[test]
fn the_sender_and_the_cluster_travel_too() {
    let sender = Sender {
        from: NodeId(1),
        to: NodeId(2),
        boot: Boot(0x9f),
        incarnation: Incarnation(u64::MAX),
        admitted: true,
        cluster: ClusterId(0xC1),
        format: Format(1),
    };
    let text = "1 to=2 boot=9f incarnation=ffffffffffffffff admitted=yes cluster=000000000000000000000000000000c1 format=1";
    assert_eq!(sender.encode(), text);
    assert_eq!(Sender::decode(text), Ok(sender));
    let cluster = ClusterHead {
        name: "eldest".into(),
        mode: "safe".into(),
        settings: 0x53e1,
        ids: Some(0x1d),
        at: "n1:9000".into(),
    };
    assert_eq!(
        cluster.encode(),
        "eldest mode=safe settings=00000000000053e1 ids=000000000000001d at=n1:9000"
    );
    assert_eq!(ClusterHead::decode(&cluster.encode()), Ok(cluster));
}

#[test]
fn what_is_not_a_message_is_an_error_that_names_what_is_wrong() {
    let decoded = |text: &str| decode(text, Attached::Nothing);
    assert_eq!(decoded("hello"), Err(WireError::UnknownMessage("hello".into())));
    assert_eq!(decoded("resigned"), Err(WireError::NoField("epoch")));
    let bad = WireError::BadField { field: "epoch", value: "7".into() };
    assert_eq!(decoded("resigned epoch=7"), Err(bad));
    assert!(matches!(decoded("append term=7.1/0 prev=6.2@11"), Err(WireError::WrongBody { .. })));
    assert_eq!(decoded("poll term=7.1/0"), Err(WireError::NoField("has")));
    let bad = WireError::BadField { field: "has", value: "7.1".into() };
    assert_eq!(decoded("meet term=7.1/0 has=7.1"), Err(bad));
    assert!(matches!(decoded("merge epoch=7.1 base=-"), Err(WireError::WrongBody { .. })));
    let whole = Attached::Snapshot(SnapshotMeta::default());
    assert!(matches!(decode("override term=7.1/0 base=-", whole), Err(WireError::WrongBody { .. })));
    let gap = Attached::Lines(records());
    let text = "append term=7.1/0 prev=6.2@10 chain=0 count=2 commit=0";
    assert!(matches!(decode(text, gap), Err(WireError::WrongBody { .. })), "a gap after prev");
}

/// A few hundred epochs fit into the smallest head that a server reads.
#[test]
fn a_long_history_fits_into_a_head() {
    let mut vector = Vector::default();
    for number in 0..1000 {
        vector.note(Position::new(Epoch::new((1 << 20) + number, NodeId(12)), 1_000_000_000 + number));
    }
    let message = Message::Poll { term: TERM, vector };
    let text = encode(&message, 0);
    assert!(text.len() < MESSAGE_BYTES_MOST, "{} bytes", text.len());
    assert_eq!(decode(&text, Attached::Nothing), Ok(message));
}

#[test]
fn messages_between_sides_take_the_seeds_routes() {
    let envelope = |message| crate::protocol::Envelope {
        from: NodeId(2),
        to: NodeId(1),
        boot: Boot(1),
        incarnation: Incarnation(2),
        admitted: true,
        cluster: ClusterId::NONE,
        format: Format(1),
        message,
    };
    let expected = [
        ("poll", "/is_leader", ""),
        ("side", "/heartbeat", "false"),
        ("meet", "/service_down", "{\"reason\": \"two leaders have met\"}"),
        ("merge", "/merge_conflict", ""),
        ("override", "/override_all_data", ""),
    ];
    for (name, path, body) in expected {
        let (message, _) = sides().into_iter().find(|(_, text)| text.starts_with(name)).expect("it is there");
        let packet = Packet::new(&envelope(message), bytes::Bytes::new(), 0);
        assert_eq!((packet.route.path(), &packet.body[..]), (path, body.as_bytes()), "{name}");
    }
    let leads = Message::Side { epoch: TERM.epoch, leader: Some(NodeId(2)), vector: Vector::default() };
    assert_eq!(Route::answered_by(&leads), Some(Route::IsLeader));
    assert_eq!(&Packet::new(&envelope(leads), bytes::Bytes::new(), 0).body[..], b"true");
}

/// A small generator changes, cuts and doubles bytes of a message: decoding gives an error or a message, and never panics.
#[test]
fn mutilated_messages_do_no_harm() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let texts: Vec<&str> = messages().into_iter().map(|(_, text)| text).collect();
    for _ in 0..20_000 {
        let mut bytes = texts[next(texts.len())].as_bytes().to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = b" =.@/,;-0z9\xc3"[next(12)],
                1 => bytes.truncate(at + 1),
                _ => bytes.extend_from_within(at..),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let _ = (attachment(&text), decode(&text, Attached::Nothing));
        let _ = decode(&text, Attached::Difference(SnapshotMeta::default()));
        let _ =
            (decode(&text, Attached::Lines(records())), Sender::decode(&text), ClusterHead::decode(&text));
    }
}

/// Returns the places of decimal numbers: numbers that are only compared are written in hexadecimal.
fn decimals(text: &str) -> Vec<std::ops::Range<usize>> {
    const HEXADECIMAL: [&str; 3] = ["chain", "digest", "incarnation"];
    let mut found = Vec::new();
    for (field, value) in text.split(' ').filter_map(|word| word.split_once('=')) {
        if HEXADECIMAL.contains(&field) {
            continue;
        }
        let begins = value.as_ptr() as usize - text.as_ptr() as usize;
        let counted = value.split('/').next().unwrap_or_default();
        let mut places =
            counted.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| begins + at).peekable();
        while let Some(first) = places.next() {
            let mut end = first + 1;
            while places.next_if_eq(&end).is_some() {
                end += 1;
            }
            found.push(first..end);
        }
    }
    found
}

/// P50: a number beyond the bound of all numbers is refused, and the error names its field.
#[test]
fn a_number_beyond_all_numbers_is_refused_wherever_it_stands() {
    let mut tried = 0;
    for (text, place) in
        messages().iter().flat_map(|(_, text)| decimals(text).into_iter().map(move |at| (text, at)))
    {
        let field = text[..place.start].rsplit(' ').next().and_then(|word| word.split('=').next());
        for number in
            ["9007199254740992", "9223372036854775808", "18446744073709551615", "18446744073709551616"]
        {
            let spoiled = format!("{}{number}{}", &text[..place.start], &text[place.end..]);
            let attached = |attachment| match attachment {
                Attachment::Nothing => Attached::Nothing,
                Attachment::Lines { .. } => Attached::Lines(records()),
                Attachment::Snapshot => Attached::Snapshot(SnapshotMeta::default()),
                Attachment::Difference => Attached::Difference(SnapshotMeta::default()),
            };
            let read = attachment(&spoiled).and_then(|found| decode(&spoiled, attached(found)));
            let Err(WireError::BadField { field: named, .. }) = read else {
                panic!("{spoiled}: {read:?}");
            };
            assert_eq!(Some(named), field, "{spoiled}");
            tried += 1;
        }
    }
    assert!(tried > 400, "{tried}");
}
