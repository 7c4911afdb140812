//! Processes that end, freeze, or lose their power.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::arena::Arena;
use crate::harness::{Call, Rng};

use super::shuffled;

/// The bound for one answer of a node that may be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// After this time it is killed. It is far longer than a node takes to end.
const TERM_MOST: Duration = Duration::from_secs(20);

/// The exit codes with which the library ends a process, and those of a panic.
const BROKEN: [i32; 3] = [99, 101, 134];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    KillOne,
    KillLeader,
    KillMajority,
    KillAll,
    TermOne,
    TermLeader,
    Freeze,
    FreezeLeader,
    PowerOne,
    PowerMajority,
    PowerAll,
}

pub const ALL: [Kind; 11] = [
    Kind::KillOne,
    Kind::KillLeader,
    Kind::KillMajority,
    Kind::KillAll,
    Kind::TermOne,
    Kind::TermLeader,
    Kind::Freeze,
    Kind::FreezeLeader,
    Kind::PowerOne,
    Kind::PowerMajority,
    Kind::PowerAll,
];

impl Kind {
    pub fn is_of_many(self) -> bool {
        matches!(self, Kind::KillMajority | Kind::KillAll | Kind::PowerMajority | Kind::PowerAll)
    }
}

#[derive(Debug, Default)]
pub struct Processes {
    stopped: BTreeSet<u32>,
    /// They may end by themselves.
    excused: BTreeSet<u32>,
}

impl Processes {
    pub async fn begin(&mut self, kind: Kind, arena: &Arena, rng: &mut Rng) -> Option<String> {
        let ids = self.victims(kind, arena, rng).await;
        if ids.is_empty() {
            return None;
        }
        let mut told = Vec::new();
        match kind {
            Kind::KillOne | Kind::KillLeader | Kind::KillMajority | Kind::KillAll => self.kill(arena, &ids),
            Kind::TermOne | Kind::TermLeader => told.push(self.term(arena, ids[0]).await),
            Kind::Freeze | Kind::FreezeLeader => self.freeze(arena, ids[0]),
            Kind::PowerOne | Kind::PowerMajority | Kind::PowerAll => {
                // All of them are without power before any disk is examined.
                self.kill(arena, &ids);
                told.extend(ids.iter().map(|id| arena.machine(*id).lose_power(rng)));
            }
        }
        let ids: Vec<String> = ids.iter().map(|id| format!("n{id}")).collect();
        Some(format!("{} {}", ids.join(" "), told.join(", ")).trim_end().to_string())
    }

    async fn victims(&self, kind: Kind, arena: &Arena, rng: &mut Rng) -> Vec<u32> {
        let running = |id: &u32| arena.cluster.node(*id).runs() && !self.stopped.contains(id);
        let ids: Vec<u32> = shuffled(arena, rng).into_iter().filter(running).collect();
        let count = match kind {
            Kind::KillAll | Kind::PowerAll => arena.nodes(),
            Kind::KillMajority | Kind::PowerMajority => arena.nodes() / 2 + 1,
            Kind::KillLeader | Kind::TermLeader | Kind::FreezeLeader => {
                return leader_now(arena, &ids).await.into_iter().collect();
            }
            _ => 1,
        };
        ids.into_iter().take(count as usize).collect()
    }

    fn kill(&mut self, arena: &Arena, ids: &[u32]) {
        self.look(arena);
        ids.iter().for_each(|id| arena.cluster.kill9(*id));
    }

    /// Kills the node in any state, for a disk or a membership that goes with it.
    pub fn end(&mut self, arena: &Arena, id: u32) {
        self.stopped.remove(&id);
        self.kill(arena, &[id]);
    }

    fn freeze(&mut self, arena: &Arena, id: u32) {
        arena.cluster.stop(id);
        self.stopped.insert(id);
    }

    /// Asks it to end, and kills it if it does not: it may be cut off, or have a disk that stalls.
    pub async fn term(&mut self, arena: &Arena, id: u32) -> String {
        self.look(arena);
        let node = arena.cluster.node(id);
        if !node.runs() {
            return "does not run".to_string();
        }
        node.signal(Signal::TERM);
        let ended = tokio::time::timeout(TERM_MOST, async {
            loop {
                if let Some(status) = node.ended() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        match ended.await {
            Ok(status) if status.code() == Some(0) || self.excused.contains(&id) => {
                format!("ended with {status}")
            }
            Ok(status) if status.signal() == Some(Signal::TERM.as_raw()) => {
                "ended before it listened to signals".to_string()
            }
            Ok(status) => panic!("n{id} ended with {status} after SIGTERM:\n{}", node.log_tail()),
            Err(_) => {
                node.kill9();
                format!("did not end in {TERM_MOST:?} and was killed")
            }
        }
    }

    /// This node may end by itself from now on, until it has.
    pub fn excuse(&mut self, id: u32) {
        self.excused.insert(id);
    }

    pub fn excuse_no_more(&mut self, id: u32) {
        self.excused.remove(&id);
    }

    /// Reaps processes that have ended by themselves, for which only certain faults are an excuse.
    pub fn look(&mut self, arena: &Arena) {
        for id in arena.cluster.ids() {
            let node = arena.cluster.node(id);
            let Some(status) = node.ended() else { continue };
            let code = status.code().unwrap_or_default();
            let excused = self.excused.remove(&id) && !BROKEN.contains(&code);
            assert!(excused, "n{id} ended by itself with {status}:\n{}", node.log_tail());
        }
    }

    /// Makes every process run and continue.
    pub fn lift(&mut self, arena: &Arena) {
        self.look(arena);
        for id in std::mem::take(&mut self.stopped) {
            if arena.cluster.node(id).runs() {
                arena.cluster.cont(id);
            }
        }
        for id in arena.cluster.ids().filter(|id| !arena.cluster.node(*id).runs()) {
            arena.cluster.start(id);
        }
    }
}

/// The node that says now that it leads.
pub async fn leader_now(arena: &Arena, ids: &[u32]) -> Option<u32> {
    for id in ids {
        let answer = arena.cluster.ask(*id, &Call::post("/is_leader").timeout(PATIENCE)).await;
        if answer.is_ok_and(|answer| answer.ok() && answer.json() == json!(true)) {
            return Some(*id);
        }
    }
    None
}
