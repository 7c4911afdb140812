//! Orders of an operator: restarts with other settings, a hand-over, another disk, members
//! that leave and come back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::arena::{Arena, TIMINGS, order};
use crate::harness::{Call, Rng};

use super::processes::{Processes, leader_now};
use super::shuffled;

/// The bound for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bound for a change that other faults may prevent.
const CHANGE_MOST: Duration = Duration::from_secs(15);
/// The bound for a change that nothing prevents: it only makes the run fail.
const FINISH_MOST: Duration = Duration::from_secs(90);
const BETWEEN: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Settings,
    Timings,
    HandOver,
    ReplaceDisk,
    LeaveAndReturn,
}

pub const ALL: [Kind; 5] =
    [Kind::Settings, Kind::Timings, Kind::HandOver, Kind::ReplaceDisk, Kind::LeaveAndReturn];

impl Kind {
    /// In available mode sides keep data that only their disks have, and files say
    /// which nodes belong together.
    pub fn is_safe_alone(self) -> bool {
        matches!(self, Kind::Timings | Kind::ReplaceDisk | Kind::LeaveAndReturn)
    }
}

#[derive(Debug)]
pub struct Changes {
    /// The timings that the nodes are configured to run with.
    timings: usize,
    /// Some nodes may still run with timings other than the configured ones.
    rolled: bool,
    /// A node that was removed, or may have been, and is not known to be a member again.
    away: Option<u32>,
}

impl Changes {
    pub fn beginning_with(timings: usize) -> Changes {
        Changes { timings, rolled: false, away: None }
    }

    pub async fn begin(
        &mut self,
        kind: Kind,
        arena: &Arena,
        rng: &mut Rng,
        processes: &mut Processes,
    ) -> Option<String> {
        match kind {
            Kind::Settings => Some(self.roll(arena, rng, processes).await),
            Kind::Timings => {
                (self.timings, self.rolled) = (1 - self.timings, true);
                Some(self.roll(arena, rng, processes).await)
            }
            Kind::HandOver => {
                let running = arena.cluster.running();
                if running.is_empty() {
                    return None;
                }
                let hand_over = order("/handoff").timeout(PATIENCE);
                let said = arena.cluster.ask(*rng.pick(&running), &hand_over).await;
                Some(said.map_or_else(|silence| format!("{silence:?}"), |answer| answer.status.to_string()))
            }
            Kind::ReplaceDisk | Kind::LeaveAndReturn if !self.is_whole(arena).await => None,
            Kind::ReplaceDisk => {
                let id = shuffled(arena, rng)[0];
                processes.end(arena, id);
                empty(arena, id);
                arena.cluster.start(id);
                Some(format!("n{id}"))
            }
            Kind::LeaveAndReturn => Some(self.leave(arena, rng, processes).await),
        }
    }

    /// Restarts one node after the other, the leader last, each with its own settings.
    async fn roll(&mut self, arena: &Arena, rng: &mut Rng, processes: &mut Processes) -> String {
        let mut ids = shuffled(arena, rng);
        let leader = leader_now(arena, &arena.cluster.running()).await;
        ids.sort_by_key(|id| Some(*id) == leader);
        let timings = &TIMINGS[self.timings];
        for id in &ids {
            let (batch, flight, every) = (1 + rng.below(64), 1 + rng.below(16), 1 + rng.below(50));
            let settings =
                format!("limits.batch = {batch}\nlimits.inflight = {flight}\nsnapshot_every = {every}\n");
            arena.configure(*id, timings, &settings);
            processes.term(arena, *id).await;
            processes.lift(arena);
            is_ready(arena, *id).await;
        }
        format!("{ids:?}, {timings:?}")
    }

    /// All disks are admitted and vote, as all nodes say: only then may one of them be lost.
    async fn is_whole(&self, arena: &Arena) -> bool {
        if self.away.is_some() || arena.nodes() < 3 {
            return false;
        }
        for id in arena.cluster.ids() {
            if !arena.cluster.node(id).runs() {
                return false;
            }
            let Some(status) = told(arena, id, "/v1/status").await else { return false };
            let Some(listed) = told(arena, id, "/v1/members").await else { return false };
            let voting =
                listed["members"].as_array().into_iter().flatten().filter(|member| member["votes"] == true);
            if status["admitted"] != true || voting.count() != arena.nodes() as usize {
                return false;
            }
        }
        true
    }

    async fn leave(&mut self, arena: &Arena, rng: &mut Rng, processes: &mut Processes) -> String {
        let ids = shuffled(arena, rng);
        let id = ids[0];
        let began = Instant::now();
        processes.excuse(id);
        self.away = Some(id);
        let remove = order("/v1/members").json(&json!({"remove": id})).timeout(PATIENCE);
        let mut said = String::new();
        while began.elapsed() < CHANGE_MOST {
            said = match arena.cluster.ask(ids[1], &remove).await {
                Ok(answer) if answer.ok() || answer.status == 404 => break,
                Ok(answer) => answer.show(),
                Err(silence) => format!("{silence:?}"),
            };
            tokio::time::sleep(BETWEEN).await;
        }
        // The outcome of the removal does not matter: the node comes back with an empty disk, and is added
        // unless it is still a member.
        processes.end(arena, id);
        empty(arena, id);
        arena.cluster.start(id);
        self.add(arena, id, CHANGE_MOST).await;
        format!("n{id}; last heard: {said}; back: {}", self.away.is_none())
    }

    async fn add(&mut self, arena: &Arena, id: u32, most: Duration) {
        let address = arena.cluster.node(id).url().replace("http://", "");
        let body = json!({"add": {"id": id, "name": format!("node-{id}"), "address": address}});
        let add = order("/v1/members").json(&body).timeout(PATIENCE);
        let began = Instant::now();
        while began.elapsed() < most {
            for other in arena.cluster.others(id) {
                if arena.cluster.ask(other, &add).await.is_ok_and(|answer| answer.ok()) {
                    self.away = None;
                    return;
                }
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// Makes all nodes members, with the same timings, once no other fault is left.
    pub async fn finish(&mut self, arena: &Arena, processes: &mut Processes) {
        if std::mem::take(&mut self.rolled) {
            arena.cluster.ids().for_each(|id| processes.end(arena, id));
            processes.lift(arena);
        }
        let Some(id) = self.away else { return };
        processes.lift(arena);
        self.add(arena, id, FINISH_MOST).await;
        assert!(self.away.is_none(), "n{id} is not taken back, and no fault is left");
    }
}

fn empty(arena: &Arena, id: u32) {
    arena.cluster.wipe(id);
    arena.machine(id).replace_disk();
}

async fn told(arena: &Arena, id: u32, path: &str) -> Option<Value> {
    let answer = arena.cluster.ask(id, &Call::get(path).timeout(PATIENCE)).await.ok()?;
    answer.ok().then(|| serde_json::from_str(&answer.text()).unwrap_or_default())
}

/// Waits for a while only: other faults may prevent it.
async fn is_ready(arena: &Arena, id: u32) {
    let began = Instant::now();
    while began.elapsed() < CHANGE_MOST && told(arena, id, "/readyz").await.is_none() {
        tokio::time::sleep(BETWEEN).await;
    }
}
