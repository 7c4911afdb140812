//! Where the exploration starts, and how far it goes.

use std::collections::BTreeMap;

use eldest::protocol::{Envelope, Limits, Message, Settings, Term, Timing, Vote};
use eldest::types::{
    ClaimId, Entry, Epoch, Format, Incarnation, Index, NodeId, Payload, Position, Record, Span,
    Stamp,
};

use crate::cluster::{Action, Budget, Cluster};
use crate::disk::Disk;
use crate::history::History;
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
    /// Records in one message.
    pub batch: usize,
    /// What the network loses at once. Everything else it may lose, too, by never delivering it.
    pub lost: fn(&Envelope) -> bool,
    /// Actions from the start; zero is no bound.
    pub depth: usize,
}

impl Case {
    pub fn start(self) -> Cluster {
        (self.begin)(self)
    }

    /// Logs by their epochs, from index 2 on; index 1 is the founders' everywhere.
    fn nodes(self, logs: [&[Epoch]; 3], promises: [Epoch; 3], committed: &[Epoch]) -> Cluster {
        let host = |node: NodeId| {
            let of = node.0 as usize - 1;
            let vote = Vote {
                promise: term(promises[of]),
                formed: true,
                admitted: true,
            };
            let disk = Disk::new(incarnation(node), vote, records(logs[of]));
            Host::new(settings(node, self.batch), disk)
        };
        let history = History {
            committed: records(committed),
            ..History::default()
        };
        Cluster::new([N1, N2, N3].map(host), history, self.budget)
    }

    /// One action of the way to the start: costs nothing, loses nothing.
    fn step(self, state: &mut Cluster, action: &Action) {
        let budget = state.budget;
        state.budget = Budget {
            ticks: 1,
            refusals: 1,
            writes: 9,
            ..budget
        };
        if let Some(next) = state.after(action, self.sync, |_| false) {
            *state = next;
        }
        state.budget = budget;
    }

    /// Syncs every disk and delivers what `wanted` names until nothing is left to do.
    fn settle(self, state: &mut Cluster, wanted: impl Fn(&Envelope) -> bool) {
        loop {
            let mut actions = Vec::new();
            state.actions(&mut actions);
            actions.retain(|action| match action {
                Action::Sync(_) => true,
                Action::Deliver {
                    packet,
                    keep: false,
                } => wanted(packet),
                _ => false,
            });
            actions.sort_by_cached_key(ToString::to_string);
            match actions.first() {
                Some(action) => self.step(state, action),
                None => return,
            }
        }
    }

    /// These have asked around and were told yes: their claims are on their way.
    fn claimed(self, mut state: Cluster, candidates: &[NodeId]) -> Cluster {
        for node in candidates {
            self.step(&mut state, &Action::Tick(*node));
        }
        loop {
            let mut actions = Vec::new();
            state.actions(&mut actions);
            actions.retain(|action| matches!(action, Action::Deliver { packet, keep: false } if is_dry_run(packet)));
            actions.sort_by_cached_key(ToString::to_string);
            match actions.first() {
                Some(action) => self.step(&mut state, action),
                None => break,
            }
        }
        state
    }

    /// That node leads, its epoch is open, and the others follow it.
    fn led(self, state: Cluster, leader: NodeId) -> Cluster {
        let mut state = self.claimed(state, &[leader]);
        self.settle(&mut state, |_| true);
        state
    }
}

fn is_dry_run(envelope: &Envelope) -> bool {
    matches!(
        envelope.message,
        Message::Willing { .. } | Message::Opinion { .. }
    )
}

fn is_noise(envelope: &Envelope) -> bool {
    is_beat(envelope)
        || is_dry_run(envelope)
        || matches!(
            envelope.message,
            Message::Refuse { .. } | Message::Stale { .. } | Message::Resigned { .. }
        )
}

fn is_beat(envelope: &Envelope) -> bool {
    matches!(
        envelope.message,
        Message::Heartbeat { .. } | Message::HeartbeatReply { .. }
    )
}

/// Every log is the same, no leader lives, and two candidates compete.
pub const RIVALS: Case = Case {
    name: "rivals",
    begin: |case| {
        let first = Epoch::new(1, N1);
        let state = case.nodes([&[], &[], &[]], [first; 3], &[]);
        case.claimed(state, &[N1, N2])
    },
    sync: Sync::Later,
    budget: Budget {
        ticks: 0,
        refusals: 1,
        crashes: 1,
        writes: 1,
        copies: 0,
        hand_overs: 0,
    },
    batch: 8,
    lost: is_noise,
    depth: 14,
};

/// The elder has been away: what was committed without it must reach its log before it leads.
pub const ABSENT_ELDER: Case = Case {
    name: "absent elder",
    begin: |case| {
        let (first, second) = (Epoch::new(1, N1), Epoch::new(2, N2));
        let newer: &[Epoch] = &[second, second];
        let state = case.nodes([&[], newer, newer], [first, second, second], newer);
        case.claimed(state, &[N1])
    },
    batch: 1,
    ..RIVALS
};

/// A leader lives, but the others have given it up while its write is on its way.
pub const DEPOSED: Case = Case {
    name: "deposed leader",
    begin: |case| {
        let state = case.nodes([&[], &[], &[]], [Epoch::new(1, N1); 3], &[]);
        let mut state = case.led(state, N1);
        case.step(&mut state, &Action::Tick(N1));
        case.settle(&mut state, |_| true);
        case.step(&mut state, &Action::Tick(N1));
        case.settle(&mut state, |_| true);
        case.step(&mut state, &Action::Propose(N1));
        for at in [N2, N3] {
            case.step(&mut state, &Action::Refuse { at, peer: N1 });
        }
        state
    },
    ..RIVALS
};

/// Two suffixes that were never committed: the older one may be counted, but must not be committed.
pub const TWO_SUFFIXES: Case = Case {
    name: "two suffixes",
    begin: |case| {
        let epochs = [Epoch::new(2, N1), Epoch::new(3, N3), Epoch::new(3, N3)];
        let state = case.nodes([&epochs[..1], &[], &epochs[2..]], epochs, &[]);
        case.claimed(state, &[N1])
    },
    sync: Sync::AtOnce,
    batch: 1,
    ..RIVALS
};

/// A leader is asked to hand over, while it may be given up as well.
pub const HAND_OVER: Case = Case {
    name: "hand-over",
    begin: |case| {
        let state = case.nodes([&[], &[], &[]], [Epoch::new(1, N1); 3], &[]);
        case.led(state, N2)
    },
    ..RIVALS
};

pub const ALL: [Case; 5] = [RIVALS, ABSENT_ELDER, DEPOSED, TWO_SUFFIXES, HAND_OVER];

fn settings(node: NodeId, batch: usize) -> Settings {
    let limits = Limits {
        batch,
        ..Limits::default()
    };
    Settings {
        timing: coarse(),
        limits,
        ..Settings::lan(node, vec![N1, N2, N3])
    }
}

/// Every span a multiple of one, so that few instants differ; no head start by rank, so that any
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
    Term {
        epoch,
        claim: ClaimId(u64::from(epoch.leader.0)),
    }
}

/// The first record of each epoch is the leader's own, those after it are clients'.
fn records(epochs: &[Epoch]) -> Vec<Record> {
    let founded = Epoch::new(1, N1);
    let founders = BTreeMap::from([N1, N2, N3].map(|node| (node, incarnation(node))));
    let mut records = vec![record(
        founded,
        1,
        Entry::Lead {
            founders: Some(founders),
        },
    )];
    for (epoch, index) in epochs.iter().zip(2..) {
        let opens = records.last().is_none_or(|last| last.epoch() != *epoch);
        let entry = match opens {
            true => Entry::Lead { founders: None },
            false => Entry::Client(Payload {
                kind: 100,
                format: Format(1),
                text: format!("before {index}").into(),
            }),
        };
        records.push(record(*epoch, index, entry));
    }
    records
}

fn record(epoch: Epoch, index: Index, entry: Entry) -> Record {
    Record {
        position: Position::new(epoch, index),
        stamp: Stamp::default(),
        entry,
    }
}
