//! Disks that are full, stall, or fail.

use std::collections::{BTreeMap, BTreeSet};

use crate::arena::Arena;
use crate::harness::Rng;

use super::processes::Processes;
use super::shuffled;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    FullOne,
    FullMajority,
    SlowOne,
    SlowAll,
    StalledOne,
    StalledAll,
    Failing,
}

pub const ALL: [Kind; 7] = [
    Kind::FullOne,
    Kind::FullMajority,
    Kind::SlowOne,
    Kind::SlowAll,
    Kind::StalledOne,
    Kind::StalledAll,
    Kind::Failing,
];

#[derive(Debug, Default)]
pub struct Disks {
    full: BTreeSet<u32>,
    /// The number of calls that had failed before, for each node.
    failing: BTreeMap<u32, i64>,
}

impl Disks {
    pub fn begin(
        &mut self,
        kind: Kind,
        arena: &Arena,
        rng: &mut Rng,
        processes: &mut Processes,
    ) -> Option<String> {
        let mut ids = shuffled(arena, rng);
        let count = match kind {
            Kind::FullMajority => ids.len() / 2 + 1,
            Kind::SlowAll | Kind::StalledAll => ids.len(),
            _ => 1,
        };
        ids.truncate(count);
        match kind {
            Kind::FullOne | Kind::FullMajority => {
                for id in &ids {
                    arena.disk(*id).fill();
                    self.full.insert(*id);
                }
            }
            // Each has its own pace.
            Kind::SlowOne | Kind::SlowAll => {
                for id in &ids {
                    arena.machine(*id).slow_down(Some(20 + rng.below(400) as i64));
                }
            }
            Kind::StalledOne | Kind::StalledAll => ids.iter().for_each(|id| arena.machine(*id).stall(true)),
            Kind::Failing => {
                let machine = arena.machine(ids[0]);
                self.failing.entry(ids[0]).or_insert_with(|| machine.refuses_no_more());
                processes.excuse(ids[0]);
                machine.refuse_once();
            }
        }
        Some(format!("{ids:?}"))
    }

    pub fn lift(&mut self, arena: &Arena, processes: &mut Processes) {
        for id in std::mem::take(&mut self.full) {
            arena.disk(id).make_room();
        }
        for id in arena.cluster.ids() {
            arena.machine(id).stall(false);
            arena.machine(id).slow_down(None);
        }
        for (id, before) in std::mem::take(&mut self.failing) {
            if arena.machine(id).refuses_no_more() == before {
                // It has met no failure, and has no reason to end.
                processes.excuse_no_more(id);
            }
        }
    }
}
