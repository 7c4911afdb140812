//! Tests of one replica alone. The test decides how fast its disk is.

mod documents;
mod ends;
mod merges;
mod restores;
mod rounds;
mod waits;

use std::sync::Arc;

use super::{Acquire, Answer, Call, CallId, Denied, DiskWrite, In, Out, ReadProof, Replica, Start, Unheard};
use crate::protocol::{Recovered, Seq, Settings, SnapshotMeta, Vote};
use crate::store::{Command, DocCondition, Ending, LeaseOperation, Operation, RoleClaim, Store};
use crate::types::{Boot, Incarnation, NodeId, Now, Span, Text, Time, WallTime};

/// A node that is the only one in its cluster.
struct Solo {
    replica: Replica,
    now: u64,
    last_call: u64,
    /// The last write that the replica has given to its disk.
    given: Seq,
    /// All writes, answers and other outputs since the test last took them.
    writes: Vec<DiskWrite>,
    answers: Vec<(CallId, Result<Answer, Denied>)>,
    outs: Vec<Out>,
}

impl Solo {
    /// The node leads.
    fn open() -> Solo {
        Solo::open_with(|_| {})
    }

    fn open_with(change: impl FnOnce(&mut Settings)) -> Solo {
        let mut settings = Settings::lan(NodeId(1), vec![NodeId(1)]);
        change(&mut settings);
        let (boot, incarnation) = (Boot(1), Incarnation(1));
        let (vote, base) = (Vote::default(), SnapshotMeta::default());
        let recovered = Recovered { boot, incarnation, vote, base, records: Vec::new() };
        let store = Store::default();
        let start = Start { settings, snapshot_every: 10, recovered, store, snapshot_index: 0, origin: 0 };
        let replica = Replica::new(start, at(1_000_000));
        let (writes, answers, outs) = (Vec::new(), Vec::new(), Vec::new());
        let mut solo = Solo { replica, now: 1_000_000, last_call: 0, given: Seq(0), writes, answers, outs };
        for _ in 0..100 {
            solo.feed(In::Tick);
            solo.sync();
            solo.now = solo.replica.deadline().0.max(solo.now + 1);
        }
        assert!(solo.replica.core().is_open(), "one node alone leads");
        solo.writes.clear();
        solo.outs.clear();
        solo
    }

    fn feed(&mut self, input: In) {
        for out in self.replica.handle(at(self.now), input) {
            match out {
                Out::Write { seq, write } => {
                    self.given = seq;
                    self.writes.push(write);
                }
                Out::Answer(call, answer) => self.answers.push((call, answer)),
                out => self.outs.push(out),
            }
        }
    }

    /// Makes all writes durable, and handles what follows from that.
    fn sync(&mut self) {
        let mut synced = Seq(0);
        while synced < self.given {
            synced = self.given;
            self.feed(In::Durable(synced));
        }
    }

    /// Passes in these calls as one round, and returns their numbers.
    fn round(&mut self, calls: Vec<Call>) -> Vec<CallId> {
        let calls: Vec<(CallId, Call)> = calls.into_iter().map(|call| (self.next_call(), call)).collect();
        let ids = calls.iter().map(|(id, _)| *id).collect();
        self.feed(In::Calls(calls));
        ids
    }

    fn call(&mut self, call: Call) -> CallId {
        self.round(vec![call])[0]
    }

    fn next_call(&mut self) -> CallId {
        self.last_call += 1;
        CallId(self.last_call)
    }

    /// The answer to a call, if it has one.
    fn answer(&mut self, call: CallId) -> Option<Result<Answer, Denied>> {
        let at = self.answers.iter().position(|(id, _)| *id == call)?;
        Some(self.answers.remove(at).1)
    }

    /// Lets time pass, with a tick whenever one is due.
    fn pass(&mut self, span: Span) {
        let until = self.now + span.0;
        while self.replica.deadline().0 <= until {
            self.now = self.replica.deadline().0.max(self.now);
            self.feed(In::Tick);
            self.sync();
        }
        self.now = until;
    }

    fn has(&self, role: &str) -> Option<Text> {
        self.replica.committed().role(role).map(|role| role.claim.instance.clone())
    }
}

fn at(us: u64) -> Now {
    Now { mono: Time(us), wall: WallTime(1_700_000_000_000_000 + us) }
}

fn put(key: &str, value: &str, condition: DocCondition) -> Call {
    put_until(key, value, condition, Ending::default())
}

fn put_until(key: &str, value: &str, condition: DocCondition, ending: Ending) -> Call {
    let operation =
        Operation::PutDoc { key: key.into(), value: value.into(), condition, holder: None, ending };
    Call::Write { command: Command::Single(operation).into(), key: None }
}

/// `by` asks for the role, and waits for it until this time.
fn acquire(by: &str, ttl: Span, until: Time) -> Call {
    let claim = Arc::new(RoleClaim { instance: by.into(), ttl, address: None, metadata: None, secret: None });
    Call::Acquire(
        Acquire { role: "r".into(), claim, elect: false, priority: 0, until, by: None, key: None }.into(),
    )
}

fn release(by: &str, token: u64) -> Call {
    let operation = LeaseOperation::Release { role: "r".into(), instance: by.into(), token, secret: None };
    Call::Write { command: Command::Single(Operation::Lease(operation.into())).into(), key: None }
}
