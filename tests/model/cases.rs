//! The starts of the exploration, and its bounds.

use std::collections::BTreeMap;

use eldest::protocol::{Envelope, Limits, Message, Settings, Term, Timing, Vote};
use eldest::types::{
    ClaimId, Entry, Epoch, Founding, Incarnation, Index, NodeId, Position, Record, Span, Stamp,
};

use crate::cluster::{Action, Budget, Cluster};
use crate::disk::Disk;
use crate::history::{History, user};
use crate::host::{Host, Sync};

const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);
const N3: NodeId = NodeId(3);

/// A corner of the protocol, explored to its end or to a depth.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub begin: fn(Case) -> Cluster,
    pub sync: Sync,
    pub budget: Budget,
    /// The budget of a longer run.
    pub large: Budget,
    /// The number of records in one message.
    pub batch: usize,
    /// The messages that the network loses at once. It may also lose any other, by never delivering it.
    pub lost: fn(&Envelope) -> bool,
}

impl Case {
    pub fn start(self) -> Cluster {
        (self.begin)(self)
    }

    /// Logs by their epochs, from index 2 on; index 1 is the founders' everywhere.
    fn nodes(self, logs: [&[Epoch]; 3], promises: [Epoch; 3], committed: &[Epoch]) -> Cluster {
        let host = |node: NodeId| {
            let of = node.0 as usize - 1;
            let lease = settings(node, self.batch).timing.lease;
            let vote = Vote { promise: term(promises[of]), formed: true, admitted: true, lease };
            let disk = Disk::new(incarnation(node), vote, records(logs[of]));
            Host::new(settings(node, self.batch), disk)
        };
        let history = History {
            committed: records(committed),
            decided: records(committed).iter().map(Record::epoch).collect(),
            ..History::default()
        };
        Cluster::new([N1, N2, N3].map(host), history, self.budget)
    }

    /// One action before the start: it costs nothing and loses nothing.
    fn step(self, state: &mut Cluster, action: &Action) {
        let budget = state.budget;
        state.budget = Budget { ticks: 1, refusals: 1, writes: 9, ..budget };
        match (state.after(action, self.sync, |_| false), action) {
            (Some(next), _) => *state = next,
            (None, Action::Deliver { packet, .. }) => state.keep_flying(|other| *other != **packet),
            (None, _) => {}
        }
        state.budget = budget;
    }

    /// Takes the wanted actions, in the order of their names, until none is left.
    fn carry(self, state: &mut Cluster, wanted: impl Fn(&Action) -> bool) {
        loop {
            let mut actions = Vec::new();
            state.actions(&mut actions);
            actions.retain(&wanted);
            match actions.into_iter().min_by_key(ToString::to_string) {
                Some(action) => self.step(state, &action),
                None => return,
            }
        }
    }

    /// These, and the nodes that they woke, have asked around; those that were answered yes have claimed.
    fn claimed(self, mut state: Cluster, candidates: &[NodeId], heard: fn(&Envelope) -> bool) -> Cluster {
        for node in candidates {
            self.step(&mut state, &Action::Tick(*node));
        }
        self.carry(&mut state, |action| match action {
            Action::Deliver { packet, keep } => !keep && is_dry_run(packet) && heard(packet),
            _ => false,
        });
        state
    }

    /// The elder leads, its epoch is open, and the others know that, and who comes next.
    fn followed(self) -> Cluster {
        let mut state = self.nodes([&[], &[], &[]], [FOUNDED; 3], &[]);
        for _ in 0..3 {
            self.step(&mut state, &Action::Tick(N1));
            self.carry(&mut state, |action| {
                matches!(action, Action::Sync(_) | Action::Deliver { keep: false, .. })
            });
        }
        state
    }

    fn without_noise(self, mut state: Cluster) -> Cluster {
        state.keep_flying(|envelope| !is_noise(envelope));
        state
    }
}

fn is_dry_run(envelope: &Envelope) -> bool {
    matches!(envelope.message, Message::Willing { .. } | Message::Opinion { .. })
}

fn is_beat(envelope: &Envelope) -> bool {
    use Message::{Heartbeat, HeartbeatReply};
    matches!(envelope.message, Heartbeat(_) | HeartbeatReply(_))
}

/// Answers that only say no.
fn is_denial(envelope: &Envelope) -> bool {
    use Message::{Refuse, Resigned, Stale};
    matches!(envelope.message, Refuse { .. } | Stale { .. } | Resigned { .. })
}

/// The messages that remain are those that move promises and records.
fn is_noise(envelope: &Envelope) -> bool {
    is_beat(envelope) || is_dry_run(envelope) || is_denial(envelope)
}

const NOTHING: Budget = Budget { ticks: 0, refusals: 0, crashes: 0, writes: 0, copies: 0, hand_overs: 0 };

const FOUNDED: Epoch = Epoch { counter: 1, leader: N1 };

/// Every log is the same, no leader lives, and two candidates compete.
pub const RIVALS: Case = Case {
    name: "rivals",
    begin: |case| {
        let state = case.nodes([&[], &[], &[]], [FOUNDED; 3], &[]);
        case.without_noise(case.claimed(state, &[N1, N2], |_| true))
    },
    sync: Sync::Later,
    budget: Budget { refusals: 1, writes: 1, ..NOTHING },
    large: Budget { refusals: 1, crashes: 1, writes: 1, ..NOTHING },
    batch: 8,
    lost: is_noise,
};

pub const RIVALS_CRASH: Case = Case {
    name: "rivals, one of all crashes",
    budget: Budget { crashes: 1, writes: 1, ..NOTHING },
    large: Budget { crashes: 1, writes: 1, copies: 1, ..NOTHING },
    ..RIVALS
};

pub const RIVALS_LATE: Case = Case {
    name: "rivals, one deadline",
    budget: Budget { ticks: 1, ..NOTHING },
    large: Budget { ticks: 1, writes: 1, ..NOTHING },
    ..RIVALS
};

/// A claim is under way, and its claimant may die and ask again.
pub const RESTARTED: Case = Case {
    name: "restarted claimant",
    begin: |case| {
        let state = case.nodes([&[], &[], &[]], [FOUNDED; 3], &[]);
        let mut state = case.claimed(state, &[N1], |asks| asks.from != N3 && asks.to != N3);
        state.keep_flying(|envelope| envelope.from == N1 && !is_noise(envelope));
        state
    },
    sync: Sync::AtOnce,
    budget: Budget { crashes: 1, ..NOTHING },
    large: Budget { refusals: 1, crashes: 1, ..NOTHING },
    lost: |envelope| {
        let question = matches!(envelope.message, Message::Willing { .. });
        is_beat(envelope) || is_denial(envelope) || (question && envelope.from != N1)
    },
    ..RIVALS
};

/// The elder has been away: records committed without it must reach its log before it leads.
pub const ABSENT_ELDER: Case = Case {
    name: "absent elder",
    begin: |case| {
        let second = Epoch::new(2, N2);
        let newer: &[Epoch] = &[second, second];
        let state = case.nodes([&[], newer, newer], [FOUNDED, second, second], newer);
        case.without_noise(case.claimed(state, &[N1], |_| true))
    },
    budget: Budget { crashes: 1, ..NOTHING },
    large: Budget { crashes: 1, writes: 1, ..NOTHING },
    batch: 1,
    ..RIVALS
};

/// A leader lives, but the others have given it up while its write is under way.
pub const DEPOSED: Case = Case {
    name: "deposed leader",
    begin: |case| {
        let mut state = case.followed();
        case.step(&mut state, &Action::Propose(N1));
        for at in [N2, N3] {
            case.step(&mut state, &Action::Refuse { at, peer: N1 });
        }
        case.without_noise(state)
    },
    sync: Sync::AtOnce,
    budget: Budget { refusals: 1, crashes: 1, writes: 1, ..NOTHING },
    large: Budget { ticks: 1, refusals: 1, crashes: 1, writes: 1, ..NOTHING },
    ..RIVALS
};

/// Two suffixes that were never committed: the older one may reach a majority by counting, but the other may
/// still replace it. The elder has claimed; the younger node's question is still under way.
pub const TWO_SUFFIXES: Case = Case {
    name: "two suffixes",
    begin: |case| {
        let (second, third) = (Epoch::new(2, N1), Epoch::new(3, N3));
        let state = case.nodes([&[second], &[], &[third]], [second, third, third], &[]);
        let mut state = case.claimed(state, &[N1], |asks| asks.from != N3 && asks.to != N3);
        case.step(&mut state, &Action::Tick(N3));
        state.keep_flying(|envelope| envelope.from == N3 || !is_noise(envelope));
        state
    },
    sync: Sync::AtOnce,
    budget: Budget { refusals: 1, ..NOTHING },
    large: Budget { refusals: 1, crashes: 1, ..NOTHING },
    batch: 1,
    lost: |envelope| {
        let question = matches!(envelope.message, Message::Willing { .. });
        is_beat(envelope) || is_denial(envelope) || question
    },
};

/// A leader is asked to hand over, while it may crash, or be given up as well.
pub const HAND_OVER: Case = Case {
    name: "hand-over",
    begin: Case::followed,
    sync: Sync::AtOnce,
    budget: Budget { refusals: 1, crashes: 1, writes: 1, hand_overs: 1, ..NOTHING },
    large: Budget { ticks: 1, refusals: 1, crashes: 1, writes: 1, hand_overs: 1, ..NOTHING },
    ..RIVALS
};

fn settings(node: NodeId, batch: usize) -> Settings {
    let limits = Limits { batch, ..Limits::default() };
    Settings { timing: coarse(), limits, ..Settings::lan(node, vec![N1, N2, N3]) }
}

/// Every span is a multiple of one unit, so that few instants differ. Ranks give no head start, so that any
/// candidate may be the first.
fn coarse() -> Timing {
    Timing {
        heartbeat: Span::millis(100),
        declare: Span::millis(100),
        dead_after: Span::millis(200),
        lease: Span::millis(200),
        window: Span::millis(200),
        stagger: Span::ZERO,
        ..Timing::lan()
    }
}

fn incarnation(node: NodeId) -> Incarnation {
    Incarnation(u64::from(node.0))
}

fn term(epoch: Epoch) -> Term {
    Term { epoch, claim: ClaimId(u64::from(epoch.leader.0)) }
}

/// The first record of each epoch is the leader's own, those after it are clients'.
fn records(epochs: &[Epoch]) -> Vec<Record> {
    let founded = Epoch::new(1, N1);
    let founders = BTreeMap::from([N1, N2, N3].map(|node| (node, incarnation(node))));
    let mut records = vec![record(
        founded,
        1,
        Entry::Lead { founding: Some(Box::new(Founding { founders, ..Founding::default() })) },
    )];
    for (epoch, index) in epochs.iter().zip(2..) {
        let opens = records.last().is_none_or(|last| last.epoch() != *epoch);
        let entry = match opens {
            true => Entry::Lead { founding: None },
            false => Entry::Client(user(&format!("before {index}"))),
        };
        records.push(record(*epoch, index, entry));
    }
    records
}

fn record(epoch: Epoch, index: Index, entry: Entry) -> Record {
    Record { position: Position::new(epoch, index), stamp: Stamp::default(), entry }
}
