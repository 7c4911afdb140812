//! Clocks that jump, run at a wrong rate, or stand still.

use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::harness::Rng;

use super::shuffled;

/// In both modes the rates of two clocks differ by one percent at most (`timing.drift_percent`, I13): half of
/// that for each, and a little less.
const MILLIONTHS_MOST: u64 = 4_500;

const HOUR_MS: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    WallJump,
    Drift,
    Suspended,
}

pub const ALL: [Kind; 3] = [Kind::WallJump, Kind::Drift, Kind::Suspended];

pub async fn begin(kind: Kind, arena: &Arena, rng: &mut Rng) -> Option<String> {
    let id = shuffled(arena, rng)[0];
    let machine = arena.machine(id);
    match kind {
        Kind::WallJump => {
            let far = *rng.pick(&[1_000, 60_000, HOUR_MS, 48 * HOUR_MS, 365 * 24 * HOUR_MS]);
            let ms = if rng.below(2) == 0 { far } else { -far };
            machine.shift_wall(ms);
            Some(format!("n{id} by {ms} ms"))
        }
        Kind::Drift => {
            let rates: Vec<i64> = arena.cluster.ids().map(|_| rate(rng)).collect();
            arena.cluster.ids().zip(&rates).for_each(|(id, rate)| arena.machine(id).drift(*rate));
            Some(format!("{rates:?} millionths"))
        }
        Kind::Suspended => {
            let node = arena.cluster.node(id);
            if !node.alive() {
                return None;
            }
            node.stop();
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(200 + rng.below(8_000))).await;
            let ms = began.elapsed().as_millis() as i64;
            // The clock that runs in a sleep has continued.
            machine.lose(ms);
            machine.sleep(ms);
            if node.alive() {
                node.cont();
            }
            Some(format!("n{id} for {ms} ms"))
        }
    }
}

fn rate(rng: &mut Rng) -> i64 {
    rng.below(2 * MILLIONTHS_MOST + 1) as i64 - MILLIONTHS_MOST as i64
}

pub fn lift(arena: &Arena) {
    for id in arena.cluster.ids() {
        arena.machine(id).shift_wall(0);
        arena.machine(id).drift(0);
    }
}
