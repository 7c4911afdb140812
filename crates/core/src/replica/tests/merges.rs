//! A merge of two large sides, and how long it keeps the thread that everything waits for. For the figure in the paper:
//! make `DOCS` a million and `CONFLICTS` a tenth of it, and `cargo test --release -p eldest-core --lib merges -- --nocapture`.

use std::time::{Duration, Instant};

use super::at;
use crate::protocol::{Envelope, Message, Mode, Recovered, Seq, Settings, SnapshotMeta, Vote};
use crate::replica::{Brought, In, Out, Preparation, Replica, Start, StateTransfer};
use crate::store::{Difference, Store};
use crate::types::{
    Boot, ClusterId, Digest, Epoch, Format, Incarnation, NodeId, Position, Span, Stamp, Vector, WallTime,
};

const DOCS: u64 = 10_000;
const CONFLICTS: u64 = 1_000;
const EACH: u64 = DOCS / CONFLICTS;
const COMMON: Position = Position { epoch: Epoch { counter: 1, leader: NodeId(1) }, index: DOCS };

/// The state of one side: all documents, of which every tenth was written on this side.
fn state(epoch: Epoch) -> (Store, SnapshotMeta) {
    let mut vector = Vector::linear(COMMON);
    let mut loader = Difference::loader();
    let fill = "x".repeat(240);
    for index in 1..=DOCS {
        let own = Position::new(epoch, DOCS + index / EACH);
        let written = if index % EACH == 0 { own } else { Position::new(COMMON.epoch, index) };
        let value = format!("{{\"at\":\"{written}\",\"value\":\"{fill}{epoch}\"}}");
        loader.add("doc", &format!("key/{index:07}"), &value).expect("a good entry");
    }
    let bounds =
        format!("{{\"settled\":\"{COMMON}\",\"untold\":\"0.0@0\",\"calls_us\":0,\"calls_at\":\"0.0@0\"}}");
    loader.add("side", "bounds", &bounds).expect("good bounds");
    let last = Position::new(epoch, DOCS + CONFLICTS);
    let stamp = Stamp { wall: WallTime(1), cluster: Span(1) };
    vector.note(last);
    let meta = SnapshotMeta { at: last, stamp, vector: Some(vector), ..SnapshotMeta::default() };
    (loader.finish(last, stamp), meta)
}

/// The elder side's leader, and the longest time that one input has taken.
struct Elder {
    replica: Replica,
    now: u64,
    longest: Duration,
    inputs: u32,
    preparations: Vec<Preparation>,
}

impl Elder {
    fn new() -> Elder {
        let (store, meta) = state(Epoch::new(2, NodeId(1)));
        let mut settings = Settings::lan(NodeId(1), vec![NodeId(1), NodeId(2)]);
        settings.mode = Mode::Available;
        let (boot, incarnation) = (Boot(1), Incarnation(1));
        let snapshot_index = meta.index();
        let recovered =
            Recovered { boot, incarnation, vote: Vote::default(), base: meta, records: Vec::new() };
        let start = Start { settings, snapshot_every: 100, recovered, store, snapshot_index, origin: 0 };
        let now = 1_000_000;
        Elder {
            replica: Replica::new(start, at(now)),
            now,
            longest: Duration::ZERO,
            inputs: 0,
            preparations: Vec::new(),
        }
    }

    /// Passes in the input and everything that follows from it; returns the messages that are sent.
    fn feed(&mut self, input: In) -> Vec<Message> {
        let (mut inputs, mut sent) = (vec![input], Vec::new());
        while let Some(input) = inputs.pop() {
            let began = Instant::now();
            let outs = self.replica.handle(at(self.now), input);
            self.longest = self.longest.max(began.elapsed());
            self.inputs += 1;
            for out in outs {
                match out {
                    Out::Write { seq, .. } => inputs.insert(0, In::Durable(Seq(seq.0))),
                    Out::Send { envelope, .. } => sent.push(envelope.message),
                    Out::Prepare(preparation) => self.preparations.push(*preparation),
                    _ => {}
                }
            }
        }
        sent
    }

    fn hears(&mut self, message: Message, brought: Option<Brought>) -> Vec<Message> {
        let envelope = Envelope {
            from: NodeId(2),
            to: NodeId(1),
            boot: Boot(2),
            incarnation: Incarnation(2),
            admitted: true,
            cluster: ClusterId::NONE,
            format: Format(1),
            message,
        };
        self.feed(In::Message(Box::new(envelope), brought))
    }

    fn pass(&mut self, ms: u64) {
        let until = self.now + ms * 1000;
        while self.replica.deadline().0 <= until {
            self.now = self.replica.deadline().0.max(self.now + 1);
            self.feed(In::Tick);
        }
        self.now = until;
    }
}

#[test]
fn each_difference_of_large_sides_is_a_conflict() {
    let mut elder = Elder::new();
    elder.pass(5_000);
    assert!(elder.replica.core().is_open(), "it leads a side of its own");
    let (store, meta) = state(Epoch::new(2, NodeId(2)));
    let theirs = meta.vector.clone().expect("a vector");
    let epoch = meta.at.epoch;
    let side = Message::Side { epoch, leader: Some(NodeId(2)), vector: theirs };
    let asked = elder.hears(side, None);
    let base = asked.into_iter().find_map(|message| match message {
        Message::Meet { vector, .. } => Some(vector),
        _ => None,
    });
    let base = base.expect("it holds its service, and asks");
    let difference = store.difference(&base).expect("what it lacks");
    println!("{} entries are handed in", difference.len());
    let transfer = StateTransfer {
        meta: meta.clone(),
        origin: 0,
        chain: 0,
        digest: Digest::new(store.digest()),
        difference,
    };
    (elder.longest, elder.inputs) = (Duration::ZERO, 0);
    let began = Instant::now();
    elder.hears(Message::Merge { epoch, base, meta }, Some(Brought::Difference(Box::new(transfer))));
    let prepared = elder.preparations.pop().expect("what the merge comes to is worked out").run();
    elder.feed(In::Prepared(prepared.into()));
    let all = began.elapsed();
    assert_eq!(elder.replica.committed().conflict_count(), CONFLICTS as usize);
    println!("the longest of {} inputs took {:?}, all {all:?}", elder.inputs, elder.longest);
}
