//! The faults of a cluster: one after the other, sometimes two at once, each for a random time.

mod changes;
mod clocks;
mod disks;
mod network;
mod processes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::arena::{Arena, Mode};
use crate::harness::Rng;

use changes::Changes;
use disks::Disks;
use processes::Processes;

/// The time for which a fault is held: from, and less than, in milliseconds.
const HOLDS: [(u64, u64); 4] = [(10, 200), (200, 2_000), (2_000, 6_000), (6_000, 15_000)];

/// The longest pause between two faults, in milliseconds: some come at once, and some meet clients that have
/// been served again for long.
const PAUSE_MS: [u64; 3] = [1, 500, 4_000];

/// Attempts to choose a fault that is possible at the moment.
const CHOICES: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Process(processes::Kind),
    Network(network::Kind),
    Clock(clocks::Kind),
    Disk(disks::Kind),
    Change(changes::Kind),
}

impl Kind {
    pub fn all() -> Vec<Kind> {
        let processes = processes::ALL.into_iter().map(Kind::Process);
        let network = network::ALL.into_iter().map(Kind::Network);
        let clocks = clocks::ALL.into_iter().map(Kind::Clock);
        let disks = disks::ALL.into_iter().map(Kind::Disk);
        let changes = changes::ALL.into_iter().map(Kind::Change);
        processes.chain(network).chain(clocks).chain(disks).chain(changes).collect()
    }

    pub fn name(self) -> String {
        match self {
            Kind::Process(kind) => format!("{kind:?}"),
            Kind::Network(kind) => format!("{kind:?}"),
            Kind::Clock(kind) => format!("{kind:?}"),
            Kind::Disk(kind) => format!("{kind:?}"),
            Kind::Change(kind) => format!("{kind:?}"),
        }
    }

    fn ends_all(self) -> bool {
        matches!(self, Kind::Process(kind) if kind.is_of_many())
    }

    fn is_like(self, other: Kind) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// A run in available mode has only faults under which that mode promises anything.
    fn is_in(self, mode: Mode) -> bool {
        mode == Mode::Safe || !matches!(self, Kind::Change(kind) if kind.is_safe_alone())
    }
}

/// The faults of one strike, for the trace.
#[derive(Debug)]
pub struct Struck {
    faults: Vec<String>,
    held: Duration,
    lifted: bool,
}

impl fmt::Display for Struck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lifted = if self.lifted { "" } else { ", and it stays" };
        let faults =
            if self.faults.is_empty() { "nothing: none was possible" } else { &self.faults.join("; ") };
        write!(f, "{faults}, for {} ms{lifted}", self.held.as_millis())
    }
}

#[derive(Debug)]
pub struct Nemesis {
    arena: Arc<Arena>,
    rng: Rng,
    kinds: Vec<Kind>,
    counts: BTreeMap<String, u64>,
    processes: Processes,
    disks: Disks,
    changes: Changes,
}

impl Nemesis {
    /// A nemesis with these faults only.
    pub fn of(kinds: Vec<Kind>, arena: Arc<Arena>, rng: Rng, timings: usize) -> Nemesis {
        let mut kinds = kinds;
        kinds.retain(|kind| kind.is_in(arena.mode));
        Nemesis {
            arena,
            rng,
            kinds,
            counts: BTreeMap::new(),
            processes: Processes::default(),
            disks: Disks::default(),
            changes: Changes::beginning_with(timings),
        }
    }

    /// Chooses one fault or two, holds them for a while, and usually lifts them.
    pub async fn strike(&mut self) -> Struck {
        let most = *self.rng.pick(&PAUSE_MS);
        tokio::time::sleep(Duration::from_millis(self.rng.below(most))).await;
        let first = *self.rng.pick(&self.kinds);
        let mut kinds = vec![first];
        if self.rng.below(4) == 0 {
            kinds.extend(Some(*self.rng.pick(&self.kinds)).filter(|second| !second.is_like(first)));
        }
        // A change takes its time, and the other fault is in place meanwhile.
        kinds.sort_by_key(|kind| matches!(kind, Kind::Change(_)));
        let mut faults = Vec::new();
        for kind in kinds.clone() {
            faults.extend(self.begin_any(kind).await);
        }
        // While most nodes are down, clients are not served, so that time is short.
        let holds = if kinds.iter().any(|kind| kind.ends_all()) { &HOLDS[..2] } else { &HOLDS[..] };
        let (from, below) = *self.rng.pick(holds);
        let held = Duration::from_millis(from + self.rng.below(below - from));
        tokio::time::sleep(held).await;
        let lifted = self.rng.below(7) > 0;
        if lifted {
            for kind in kinds {
                self.lift(kind).await;
            }
        }
        self.processes.look(&self.arena);
        Struck { faults, held, lifted }
    }

    /// Begins this fault or, if it is not possible now, another one of its kind.
    async fn begin_any(&mut self, first: Kind) -> Option<String> {
        let mut kind = first;
        for _ in 0..CHOICES {
            if let Some(told) = self.begin(kind).await {
                *self.counts.entry(kind.name()).or_default() += 1;
                return Some(format!("{}: {told}", kind.name()));
            }
            let alike: Vec<Kind> = self.kinds.iter().copied().filter(|other| other.is_like(first)).collect();
            kind = *self.rng.pick(&alike);
        }
        None
    }

    async fn begin(&mut self, kind: Kind) -> Option<String> {
        let (arena, rng) = (self.arena.clone(), &mut self.rng);
        match kind {
            Kind::Process(kind) => self.processes.begin(kind, &arena, rng).await,
            Kind::Network(kind) => network::begin(kind, &arena, rng).await,
            Kind::Clock(kind) => clocks::begin(kind, &arena, rng).await,
            Kind::Disk(kind) => self.disks.begin(kind, &arena, rng, &mut self.processes),
            Kind::Change(kind) => self.changes.begin(kind, &arena, rng, &mut self.processes).await,
        }
    }

    async fn lift(&mut self, kind: Kind) {
        match kind {
            Kind::Process(_) => self.processes.lift(&self.arena),
            Kind::Network(_) => network::lift(&self.arena),
            Kind::Clock(_) => clocks::lift(&self.arena),
            Kind::Disk(_) => {
                self.disks.lift(&self.arena, &mut self.processes);
                self.processes.lift(&self.arena);
            }
            Kind::Change(_) => self.processes.lift(&self.arena),
        }
    }

    /// Every process runs, every link works, every disk has room, every clock is
    /// right, every node is a member.
    pub async fn lift_all(&mut self) {
        network::lift(&self.arena);
        clocks::lift(&self.arena);
        self.disks.lift(&self.arena, &mut self.processes);
        self.processes.lift(&self.arena);
        self.changes.finish(&self.arena, &mut self.processes).await;
    }

    /// The number of times that each kind of fault happened.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.clone()
    }
}

/// All nodes in a random order.
fn shuffled(arena: &Arena, rng: &mut Rng) -> Vec<u32> {
    let mut ids: Vec<u32> = arena.cluster.ids().collect();
    for at in (1..ids.len()).rev() {
        ids.swap(at, rng.below(at as u64 + 1) as usize);
    }
    ids
}
