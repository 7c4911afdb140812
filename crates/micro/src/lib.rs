//! The subjects of the micro-benchmarks: a state with documents, and a node that is its own cluster.

use eldest_core::protocol::{Recovered, Seq, Settings, SnapshotMeta, Vote};
use eldest_core::replica::{Call, CallId, In, Out, Replica, Start};
use eldest_core::store::{Command, DocCondition, Ending, Operation, Store};
use eldest_core::types::{
    Boot, Entry, Epoch, Incarnation, NodeId, Now, Position, Record, Span, Stamp, Time, WallTime,
};

/// The number of documents, of 256 bytes each. The benchmarks beside other systems use the same number.
pub const DOCS: u64 = 100_000;

pub fn put(number: u64) -> Command {
    let value = format!("\"{number:0>254}\"");
    let operation = Operation::PutDoc {
        key: key(number).into(),
        value: value.into(),
        condition: DocCondition::None,
        holder: None,
        ending: Ending::default(),
    };
    Command::Single(operation)
}

/// Spreads numbers as if they were random: the step visits every document once before it repeats one.
pub fn scattered(number: u64) -> u64 {
    number.wrapping_mul(61_803) % DOCS
}

pub fn key(number: u64) -> String {
    format!("bench/{number}")
}

pub fn record(index: u64, command: &Command) -> Record {
    let stamp = Stamp { wall: WallTime(1_796_000_000_000_000 + index), cluster: Span(index) };
    let position = Position::new(Epoch::new(1, NodeId(1)), index);
    Record { position, stamp, entry: Entry::Client(command.to_payload(None)) }
}

/// A state with all documents.
pub fn full() -> Store {
    let mut store = Store::default();
    for number in 0..DOCS {
        store.apply(&record(number + 1, &put(number))).expect("readable");
    }
    store
}

/// A node that is the only one of its cluster, with a disk that takes no time.
#[derive(Debug)]
pub struct Solo {
    replica: Replica,
    now: u64,
    calls: u64,
}

impl Solo {
    /// Opens a node that leads and has this state.
    pub fn open(store: Store) -> Solo {
        let settings = Settings::lan(NodeId(1), vec![NodeId(1)]);
        let base = SnapshotMeta { at: store.applied(), ..SnapshotMeta::default() };
        let index = store.applied().index;
        let recovered = Recovered {
            boot: Boot(1),
            incarnation: Incarnation(1),
            vote: Vote::default(),
            base,
            records: Vec::new(),
        };
        let start =
            Start { settings, snapshot_every: 10, recovered, store, snapshot_index: index, origin: 0 };
        let mut solo = Solo { replica: Replica::new(start, at(1_000_000)), now: 1_000_000, calls: 0 };
        while !solo.replica.core().is_open() {
            solo.feed(In::Tick);
            solo.now = solo.replica.deadline().0.max(solo.now + 1);
        }
        solo
    }

    /// Writes these commands as one round, and returns the number of answers.
    pub fn round(&mut self, commands: Vec<Command>) -> usize {
        self.now += 1;
        let calls = commands.into_iter().map(|command| {
            self.calls += 1;
            (CallId(self.calls), Call::Write { command: command.into(), key: None })
        });
        let calls = calls.collect();
        self.feed(In::Calls(calls))
    }

    fn feed(&mut self, input: In) -> usize {
        let (mut answers, mut inputs) = (0, vec![input]);
        while let Some(input) = inputs.pop() {
            let mut written: Option<Seq> = None;
            for out in self.replica.handle(at(self.now), input) {
                match out {
                    Out::Write { seq, .. } => written = Some(seq),
                    Out::Answer(..) => answers += 1,
                    Out::Snapshot(order) => inputs.push(In::SnapshotEnded(Some(order.meta.index()))),
                    _ => {}
                }
            }
            inputs.extend(written.map(In::Durable));
        }
        answers
    }
}

fn at(us: u64) -> Now {
    Now { mono: Time(us), wall: WallTime(1_796_000_000_000_000 + us) }
}
