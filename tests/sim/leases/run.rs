//! One seed, from its first event to its verdict.

use super::contenders::Wants;
use super::{Witness, plan};
use crate::calm::leader;
use crate::checks::{Check, Violation, ensure};
use crate::guarded::guarded;
use crate::plan::Plan;
use crate::run::{Outcome, Report, states};
use crate::soak::note_features;
use crate::world::World;

const SECOND: u64 = 1_000_000;

/// The longest ttl of the plan, and the time that the checkers allow beyond it.
const TTL_MOST: u64 = 3 * SECOND;

pub fn run(seed: u64, traced: bool) -> Outcome {
    let (mut world, mut plan) = plan::world(seed);
    world.trace = traced.then(Vec::new);
    note_features(&mut world);
    let outcome = guarded(|| live(&mut world, &mut plan));
    let trace = world.trace.take().unwrap_or_default();
    match outcome {
        Ok(resumed_us) => Ok(report(&world, resumed_us, trace)),
        Err(violation) => Err((violation, trace)),
    }
}

/// Runs a seed that must hold, and returns what was seen in it.
pub fn seen(seed: u64) -> Witness {
    let (mut world, mut plan) = plan::world(seed);
    live(&mut world, &mut plan).expect("a seed that holds");
    world.lessees.map(|lessees| lessees.witness).unwrap_or_default()
}

fn report(world: &World, resumed_us: u64, trace: Vec<String>) -> Report {
    Report {
        steps: world.steps,
        trace_hash: world.trace_hash,
        acknowledged: world.witness().beliefs,
        calls: world.witness().answers,
        leaders: world.checks.epochs.count(),
        simulated_us: world.now,
        resumed_us,
        features: world.features.clone(),
        trace,
    }
}

fn live(world: &mut World, plan: &mut Plan) -> Result<u64, Violation> {
    world.run_until(400_000)?;
    for _ in 0..plan.steps {
        let pause = plan.pause();
        world.operator_wakes_within(pause);
        world.run_until(world.now + pause)?;
        plan.harm(world)?;
        plan.double(world)?;
        world.checks.late.pardon();
    }
    let pause = plan.pause();
    world.run_until(world.now + pause)?;
    world.retire_doubles();
    plan.mend_all(world)?;
    world.lessees_mut().writers.iter_mut().for_each(|writers| writers.stopped = true);
    let resumed = everything_is_held(world)?;
    world.no_restore_is_left()?;
    world.blank_readers_get_all()?;
    everything_ends(world)?;
    Ok(resumed)
}

/// Once the faults end, every role gets a holder that believes. The earlier holder may have died, so its ttl
/// passes first, and the waiters may be frozen or dead themselves for a while.
fn everything_is_held(world: &mut World) -> Result<u64, Violation> {
    let (healed, patience) = (world.now, world.hosts[0].settings.timing.election_timeout().times(4).0);
    let led = world.run_until_true(healed + patience, |world| leader(world).is_some())?;
    ensure(led, "I10 writes resume", || states(world))?;
    let resumed = world.now - healed;
    for role in world.roles() {
        let until = world.now + 4 * TTL_MOST;
        let wanted = Wants::Role(role.clone());
        let came = world.run_until_true(until, |world| {
            let all = world.lessees.iter().flat_map(|lessees| &lessees.all);
            all.clone().any(|contender| contender.wants == wanted && contender.believes(world.now))
        })?;
        ensure(came, "C14 a free role is held again", || format!("{role}: {}", states(world)))?;
    }
    Ok(resumed)
}

/// All die at once: nothing is held for longer than the last ttl.
pub fn everything_ends(world: &mut World) -> Check {
    world.lessees_mut().stopped = true;
    for who in 0..world.lessees_mut().all.len() {
        world.contender_dies(who);
    }
    let until = world.now + 2 * TTL_MOST + 2 * SECOND;
    let ended = world.run_until_true(until, |world| world.checks.late.is_empty())?;
    ensure(ended, "C14 ends in time", || format!("{:?}: {}", world.checks.late, states(world)))
}
