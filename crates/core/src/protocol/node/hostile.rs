//! Tests with hostile numbers in messages: no node panics, loops, stops, or believes such a number (P50, P51).

use super::Node;
use crate::protocol::Mode;
use crate::protocol::Settings;
use crate::protocol::messages::Condition;
use crate::protocol::messages::*;
use crate::protocol::meta::SnapshotMeta;
use crate::protocol::settings::LEASE_MOST;
use crate::types::{
    Boot, ClaimId, ClusterId, Digest, Entry, Epoch, Format, Founding, Incarnation, NUMBER_MOST, NodeId, Now,
    Owner, Payload, Position, Record, Span, Stamp, Text, Time, Vector, WallTime,
};

const ME: NodeId = NodeId(2);
const PEERS: [NodeId; 2] = [NodeId(1), NodeId(3)];
const NUMBERS: [u64; 8] = [0, 1, 2, NUMBER_MOST, 1 << 53, 1 << 63, u64::MAX - 1, u64::MAX];

/// Yields the numbers of a message one after the other: usual numbers, except at one place, or at all places.
struct Pick {
    spoiled: Option<usize>,
    number: u64,
    given: usize,
}

impl Pick {
    fn one(&mut self, usual: u64) -> u64 {
        let spoils = self.spoiled.is_none_or(|place| place == self.given);
        self.given += 1;
        if spoils { self.number } else { usual }
    }

    fn node(&mut self, usual: u32) -> NodeId {
        NodeId(self.one(u64::from(usual)) as u32)
    }

    fn epoch(&mut self) -> Epoch {
        Epoch::new(self.one(4), self.node(1))
    }

    fn term(&mut self) -> Term {
        Term { epoch: self.epoch(), claim: ClaimId(self.one(11)) }
    }

    fn position(&mut self) -> Position {
        Position::new(self.epoch(), self.one(2))
    }

    fn vector(&mut self) -> Vector {
        let mut vector = Vector::linear(self.position());
        vector.note(self.position());
        vector
    }

    fn meta(&mut self) -> SnapshotMeta {
        SnapshotMeta {
            at: self.position(),
            stamp: self.stamp(),
            vector: Some(self.vector()),
            ..SnapshotMeta::default()
        }
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { wall: WallTime(self.one(7)), cluster: Span(self.one(7)) }
    }

    fn records(&mut self) -> Vec<Record> {
        let ttl = Span(self.one(5));
        let entries = [
            Entry::ServiceDown { owner: crate::types::Owner::Operator, ttl, reason: Text::from("") },
            Entry::Settled { upto: self.position() },
            Entry::Lead { founding: None },
        ];
        let record = |entry| Record { position: self.position(), stamp: self.stamp(), entry };
        entries.into_iter().map(record).collect()
    }

    fn standing(&mut self) -> Standing {
        Standing {
            promise: self.epoch(),
            seen: self.epoch(),
            last: self.position(),
            hears: [self.node(3)].into(),
            seeking: Span(self.one(9)),
            condition: Condition::Fit,
            vector: Some(self.vector()),
        }
    }

    fn certificate(&mut self) -> Certificate {
        Certificate { epoch: self.epoch(), heir: self.node(2), last: self.position() }
    }
}

type Kind = fn(&mut Pick) -> Message;

const KINDS: [Kind; 24] = [
    |p| {
        Message::Heartbeat(Beat {
            term: p.term(),
            round: p.one(1),
            lease: Span(p.one(9)),
            commit: p.one(2),
            heir: Some(p.node(3)),
            boundary: p.one(2),
            vector: Some(p.vector()),
        })
    },
    |p| {
        Message::HeartbeatReply(BeatReply {
            epoch: p.epoch(),
            round: p.one(1),
            matched: p.one(2),
            last: p.position(),
            full: false,
            digest: Some(Checkpoint { index: p.one(2), digest: Digest::new(p.one(3)) }),
            vector: Some(p.vector()),
        })
    },
    |p| Message::Append { term: p.term(), prev: p.position(), records: p.records().into(), commit: p.one(2) },
    |p| Message::Append { term: p.term(), prev: p.position(), records: [].into(), commit: p.one(2) },
    |p| Message::Appended { epoch: p.epoch(), matched: p.one(2) },
    |p| Message::Gap { epoch: p.epoch(), prev: p.position(), hint: p.position() },
    |p| Message::Snapshot { term: p.term(), meta: p.meta() },
    |p| Message::Stale { promise: p.term() },
    |p| Message::NotMember { ask: p.one(1), as_of: p.one(1), last: p.position() },
    |p| Message::Resigned { epoch: p.epoch() },
    |p| Message::Willing { ask: p.one(1), standing: p.standing() },
    |p| Message::Opinion { ask: p.one(1), yes: true, held: false, standing: p.standing() },
    |p| {
        Message::Claim(Claim {
            term: p.term(),
            last: p.position(),
            condition: Condition::Fit,
            certificate: Some(p.certificate()),
            vector: Some(p.vector()),
        })
    },
    |p| Message::Approve { term: p.term(), last: p.position(), lease_left: Span(p.one(9)) },
    |p| Message::Refuse { term: p.term(), promise: p.epoch() },
    |p| Message::Pull { term: p.term(), after: p.position() },
    |p| Message::Pulled { term: p.term(), prev: p.position(), records: p.records().into() },
    |p| Message::HandOver(p.certificate()),
    |p| Message::Poll { term: p.term(), vector: p.vector() },
    |p| Message::Side { epoch: p.epoch(), leader: Some(p.node(1)), vector: p.vector() },
    |p| Message::Meet { term: p.term(), vector: p.vector() },
    |p| Message::Merge { epoch: p.epoch(), base: p.vector(), meta: p.meta() },
    |p| Message::Override { term: p.term(), base: p.vector(), meta: p.meta() },
    |p| Message::Odd {
        epoch: p.epoch(),
        incarnation: Incarnation(p.one(2)),
        forgot: p.one(1) == 1,
        ask: Some(p.one(1)),
    },
];

/// A node with an instant disk, in a cluster from which it hears only what the test sends.
#[derive(Clone)]
struct Subject {
    node: Node,
    now: u64,
}

impl Subject {
    fn new(mode: Mode) -> Subject {
        let settings = Settings {
            mode,
            peers_prove: false,
            asks_from: 77_000,
            ..Settings::lan(ME, vec![PEERS[0], ME, PEERS[1]])
        };
        let founders = [PEERS[0], ME, PEERS[1]].map(|node| (node, Incarnation(u64::from(node.0)))).into();
        let members = settings.members.clone();
        let founding = Founding { founders, members: Some(members), ..Founding::default() };
        let records = (1..=3).map(|index| Record {
            position: Position::new(Epoch::new(3, NodeId(1)), index),
            stamp: Stamp { wall: WallTime(1_800_000_000_000_000), cluster: Span(index) },
            entry: Entry::Lead { founding: (index == 1).then(|| Box::new(founding.clone())) },
        });
        let promise = Term { epoch: Epoch::new(3, NodeId(1)), claim: ClaimId(11) };
        let recovered = Recovered {
            boot: Boot(22),
            incarnation: Incarnation(2),
            vote: Vote { promise, formed: true, admitted: true, lease: Span::ZERO },
            base: SnapshotMeta::default(),
            records: records.collect(),
        };
        let now = 1_000_000;
        let mut subject = Subject { node: Node::new(settings, recovered, at(now)), now };
        subject.feed(Input::Tick);
        subject
    }

    /// The node follows n1 in epoch 4.
    fn following(mode: Mode) -> Subject {
        let mut subject = Subject::new(mode);
        let term = Term { epoch: Epoch::new(4, NodeId(1)), claim: ClaimId(11) };
        let vector = subject.node.log().vector().cloned();
        let (round, lease, commit, boundary) = (1, Span::millis(300), 0, 0);
        let beat = Message::Heartbeat(Beat { term, round, lease, commit, heir: Some(ME), boundary, vector });
        subject.hear(NodeId(1), beat);
        assert_eq!(subject.node.role_name(), super::RoleName::Follower);
        subject
    }

    /// The node claims an epoch, and no answer has come.
    fn claiming(mode: Mode) -> Subject {
        let mut subject = Subject::following(mode);
        subject.feed(Input::PeerRefused(NodeId(1)));
        assert!(subject.node.vote().promise.epoch.leader == ME, "the heir claims at once");
        subject
    }

    /// The node leads; n3 follows.
    fn leading(mode: Mode) -> Subject {
        let mut subject = Subject::claiming(mode);
        let (term, last) = (subject.node.vote().promise, subject.node.last());
        subject.hear(NodeId(3), Message::Approve { term, last, lease_left: Span::ZERO });
        let matched = subject.node.last().index;
        subject.hear(NodeId(3), Message::Appended { epoch: term.epoch, matched });
        subject.pass(2);
        assert_eq!(subject.node.role_name(), super::RoleName::Leader);
        subject
    }

    fn hear(&mut self, from: NodeId, message: Message) -> bool {
        let incarnation = Incarnation(u64::from(from.0));
        let (boot, cluster, format) = (Boot(33), ClusterId::NONE, Format(1));
        let envelope = Envelope { from, to: ME, boot, incarnation, admitted: true, cluster, format, message };
        self.feed(Input::Message(envelope))
    }

    /// Returns whether the node goes on.
    fn feed(&mut self, input: Input) -> bool {
        let mut inputs = vec![input];
        let mut lives = true;
        while let Some(input) = inputs.pop() {
            for output in self.node.handle(at(self.now), input) {
                match output {
                    Output::Write { seq, .. } => inputs.push(Input::Durable(seq)),
                    Output::Stop(_) => lives = false,
                    _ => {}
                }
            }
        }
        lives
    }

    fn pass(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.now = self.node.deadline().0.clamp(self.now + 1, self.now + 1_000_000);
            assert!(self.feed(Input::Tick), "time alone has stopped it");
        }
    }
}

/// The number at which the subject's questions to that node begin.
fn numbers_from(node: NodeId) -> u64 {
    Subject::new(Mode::Safe).node.core.settings.numbers_from(node)
}

fn at(us: u64) -> Now {
    Now { mono: Time(us), wall: WallTime(1_800_000_000_000_000 + us) }
}

/// Sends every message, with every number in every place and in all places, to a node in every role.
#[test]
fn no_number_in_a_message_ends_a_node() {
    for mode in [Mode::Safe, Mode::Available] {
        let subjects =
            [Subject::new(mode), Subject::following(mode), Subject::claiming(mode), Subject::leading(mode)];
        for subject in &subjects {
            let known = subject.node.vote().promise.epoch.counter;
            for (kind, spoiled, number) in cases() {
                let mut subject = subject.clone();
                let mut pick = Pick { spoiled, number, given: 0 };
                let message = kind(&mut pick);
                for from in PEERS.into_iter().chain([ME, NodeId::NONE, NodeId(u32::MAX)]) {
                    let lives = subject.hear(from, message.clone());
                    assert!(lives, "stopped by {message:?} from {from}");
                    // The same message again, as an answer to the node's own messages.
                    subject.hear(from, message.clone());
                }
                subject.pass(8);
                let reached = subject.node.vote().promise.epoch.counter;
                let far = if mode == Mode::Safe { 1 << 24 } else { 1 << 49 };
                assert!(reached < known + far, "believed {message:?}: {reached}");
            }
        }
    }
}

fn cases() -> impl Iterator<Item = (Kind, Option<usize>, u64)> {
    KINDS.into_iter().flat_map(|kind| {
        let mut counting = Pick { spoiled: Some(usize::MAX), number: 0, given: 0 };
        kind(&mut counting);
        let places = (0..counting.given).map(Some).chain([None]);
        places.flat_map(move |place| NUMBERS.map(move |number| (kind, place, number)))
    })
}

/// An invented epoch at the end of the number range moves the next election only by a bounded step. A cluster that has really come
/// so far repeats its epoch, and is believed in the end.
#[test]
fn a_far_epoch_is_approached_in_steps() {
    let mut subject = Subject::new(Mode::Safe);
    let stale = |counter| Message::Stale {
        promise: Term { epoch: Epoch::new(counter, NodeId(1)), claim: ClaimId(1) },
    };
    subject.hear(NodeId(1), stale(NUMBER_MOST));
    assert_eq!(subject.node.standing().seen, Epoch::new(3 + (1 << 20), NodeId(1)));
    let far = Term { epoch: Epoch::new(1 << 22, NodeId(1)), claim: ClaimId(11) };
    let (round, lease, commit, boundary) = (1, Span::millis(300), 0, 0);
    let beat =
        Message::Heartbeat(Beat { term: far, round, lease, commit, heir: None, boundary, vector: None });
    let mut beats = 0;
    while subject.node.leader() != Some(NodeId(1)) {
        subject.hear(NodeId(1), beat.clone());
        beats += 1;
        assert!(beats < 5, "a legitimate leader is never heard");
    }
}

/// The answer "you were removed" counts only from a node that was asked: no other node knows the number of the question.
#[test]
fn an_unasked_node_removes_no_member() {
    let turned_away = |ask| {
        let mut subject = Subject::new(Mode::Safe);
        subject.pass(1);
        let last = Position::new(Epoch::new(3, NodeId(1)), 4);
        subject.hear(NodeId(1), Message::NotMember { ask, as_of: 4, last });
        subject.now += 500_000;
        !subject.feed(Input::Tick)
    };
    assert!((0..1_000).all(|guessed| !turned_away(guessed)));
    assert!(turned_away(numbers_from(NodeId(1)) + 1), "the number of its first question");
}

/// No approval makes a lease longer than the bound on leases: otherwise the next leader would never say that it leads.
#[test]
fn no_approval_names_a_lease_without_end() {
    let mut subject = Subject::claiming(Mode::Safe);
    let (term, last) = (subject.node.vote().promise, subject.node.last());
    subject.hear(NodeId(3), Message::Approve { term, last, lease_left: Span(NUMBER_MOST) });
    let leading = subject.node.leading().expect("a majority has approved");
    assert!(leading.older_leases_are_over(Time(subject.now) + LEASE_MOST));
}

/// Without proof no such message ends a node, be it "odd", a contradiction, or a record of another version.
#[test]
fn what_ends_a_node_needs_proof() {
    let mut subject = Subject::following(Mode::Safe);
    let epoch = Epoch::new(4, NodeId(1));
    assert!(
        subject
            .hear(NodeId(1), Message::Odd { epoch, incarnation: Incarnation(2), forgot: false, ask: None })
    );
    let mut contradicted = subject.clone();
    let append = |prev: Position, entry| {
        let term = Term { epoch, claim: ClaimId(11) };
        let position = Position::new(epoch, prev.index + 1);
        let record = Record { position, stamp: Stamp::default(), entry };
        Message::Append { term, prev, records: [record].into(), commit: prev.index + 1 }
    };
    let lead = || Entry::Lead { founding: None };
    let last = subject.node.last();
    assert!(contradicted.hear(NodeId(1), append(last, lead())));
    assert_eq!(contradicted.node.commit_index(), 4);
    assert!(contradicted.hear(NodeId(1), append(Position::new(Epoch::new(3, NodeId(1)), 2), lead())));
    assert_eq!(contradicted.node.last().index, 4, "what is committed stays");
    let payload = Payload { kind: 7, format: Format(9), call: None, text: Text::from("{}") };
    assert!(subject.hear(NodeId(1), append(last, Entry::Client(payload))));
    assert_eq!(subject.node.last(), last, "what cannot be read is not taken");
    subject.node.core.settings.peers_prove = true;
    assert!(
        !subject
            .hear(NodeId(1), Message::Odd { epoch, incarnation: Incarnation(2), forgot: false, ask: None })
    );
}

/// A report about a leader's state counts only as an answer to the leader's own beats: only their receivers know the numbers.
#[test]
fn an_unasked_node_reports_no_leader_as_diverged() {
    // Tries the next hundred numbers from each start, for each of the other nodes.
    let ends = |first: [u64; 2]| {
        let mut subject = Subject::leading(Mode::Safe);
        let (epoch, last) = (subject.node.vote().promise.epoch, subject.node.last());
        let checkpoint = |digest| Checkpoint { index: 3, digest: Digest::new(digest) };
        subject.feed(Input::Digest(checkpoint(1)));
        (0..100).any(|next| {
            PEERS.into_iter().zip(first).any(|(from, first)| {
                let round = first + next;
                let digest = Some(checkpoint(2));
                let (matched, full, vector) = (3, false, None);
                let reply =
                    Message::HeartbeatReply(BeatReply { epoch, round, matched, last, full, digest, vector });
                !subject.hear(from, reply)
            })
        })
    };
    assert!((0..10_000).step_by(100).all(|first| !ends([first; 2])));
    let numbers = PEERS.map(numbers_from);
    assert!(ends(numbers), "the numbers of its own beats");
    assert!(numbers.into_iter().all(|one| !ends([one; 2])), "what one hears does for the other");
}

/// A message that calls a node odd ends that node only if it answers that node's own question.
#[test]
fn an_unasked_node_reports_no_follower_as_diverged() {
    let mut subject = Subject::following(Mode::Safe);
    let epoch = Epoch::new(4, NodeId(1));
    let odd = |ask| Message::Odd { epoch, incarnation: Incarnation(2), forgot: false, ask };
    assert!(subject.hear(NodeId(1), odd(None)));
    assert!((0..10_000).all(|guessed| subject.hear(NodeId(1), odd(Some(guessed)))));
    assert!(
        subject.hear(NodeId(1), odd(Some(numbers_from(NodeId(3))))),
        "the number of a question to another one"
    );
    assert!(!subject.hear(NodeId(1), odd(Some(numbers_from(NodeId(1))))), "the number of its own question");
}

/// A stranger names its own address, and any process may hear what is sent there: no number of a question or of a beat is sent to it.
#[test]
fn a_stranger_learns_no_number() {
    let subjects = [Subject::new(Mode::Safe), Subject::following(Mode::Safe), Subject::leading(Mode::Safe)];
    assert!(!subjects.into_iter().any(tells_a_stranger));
}

/// The stranger claims that its log goes further, so that it is not turned away.
fn tells_a_stranger(mut subject: Subject) -> bool {
    let from = NodeId(9);
    let mut standing = subject.node.standing();
    standing.last.index += 1_000;
    let message = Message::Willing { ask: 5, standing };
    let (boot, incarnation, cluster, format) = (Boot(33), Incarnation(9), ClusterId::NONE, Format(1));
    let envelope = Envelope { from, to: ME, boot, incarnation, admitted: true, cluster, format, message };
    subject.now += 200_000;
    subject.node.handle(at(subject.now), Input::Message(envelope)).into_iter().any(|output| match output {
        Output::Send { envelope, .. } => {
            let message = envelope.message;
            envelope.to == from && matches!(message, Message::Heartbeat(_) | Message::Willing { .. })
        }
        _ => false,
    })
}

/// A leader that learns of a greater promise goes on in a greater epoch, and keeps the hold of its merge: a record that it writes before
/// the others have the merged state would be on its disk alone (P34).
#[test]
fn a_greater_promise_lifts_no_hold_of_a_merge() {
    let mut subject = Subject::leading(Mode::Available);
    let own = subject.node.core.own_vector();
    let other = Epoch::new(9, NodeId(3));
    let mut theirs = own.clone();
    theirs.note(Position::new(other, 7));
    subject.hear(NodeId(3), Message::Side { epoch: other, leader: Some(NodeId(3)), vector: theirs.clone() });
    assert!(subject.node.is_at_rest(), "it holds its service");
    let base = subject.node.core.own_vector();
    theirs.join(&own);
    let meta = SnapshotMeta { at: Position::new(other, 7), vector: Some(theirs), ..SnapshotMeta::default() };
    subject.hear(NodeId(3), Message::Merge { epoch: other, base, meta });
    let merged = subject.node.vote().promise.epoch;
    assert!(merged > other && subject.node.leading().is_some());
    let held = |subject: &Subject| subject.node.log().holds_of_service().held_by(Owner::Merge);
    assert!(held(&subject), "n3 is heard and has nothing of it");
    let promise = Term { epoch: Epoch::new(merged.counter + 1, NodeId(3)), claim: ClaimId(33) };
    subject.hear(NodeId(3), Message::Stale { promise });
    assert!(subject.node.vote().promise.epoch > promise.epoch && subject.node.leading().is_some());
    assert!(held(&subject), "n3 has nothing of it yet");
}

/// With each rule left out, the tests above find what they forbid.
#[cfg(feature = "mutants")]
#[test]
fn the_bugs_put_back_are_seen() {
    use crate::protocol::mutant::{self, Mutant};
    mutant::set(Some(Mutant::AnyEpochReaches));
    let mut subject = Subject::new(Mode::Safe);
    let promise = Term { epoch: Epoch::new(NUMBER_MOST, NodeId(1)), claim: ClaimId(1) };
    subject.hear(NodeId(1), Message::Stale { promise });
    assert!(!subject.node.core.epochs.has_more());
    mutant::set(Some(Mutant::BeatsAreGuessed));
    let mut subject = Subject::leading(Mode::Safe);
    let (epoch, last) = (subject.node.vote().promise.epoch, subject.node.last());
    subject.feed(Input::Digest(Checkpoint { index: 3, digest: Digest::new(1) }));
    let digest = Some(Checkpoint { index: 3, digest: Digest::new(2) });
    let (matched, full) = (3, false);
    let reply = |round| {
        Message::HeartbeatReply(BeatReply { epoch, round, matched, last, full, digest, vector: None })
    };
    assert!((0..10).any(|round| PEERS.into_iter().any(|from| !subject.hear(from, reply(round)))));
    mutant::set(Some(Mutant::StrangersAreAsked));
    assert!(tells_a_stranger(Subject::new(Mode::Safe)) && tells_a_stranger(Subject::leading(Mode::Safe)));
    mutant::set(Some(Mutant::TurnedAwayUnasked));
    let mut subject = Subject::new(Mode::Safe);
    let last = Position::new(Epoch::new(3, NodeId(1)), 4);
    subject.hear(NodeId(1), Message::NotMember { ask: 1, as_of: 4, last });
    subject.now += 500_000;
    assert!(!subject.feed(Input::Tick));
    mutant::set(None);
}
