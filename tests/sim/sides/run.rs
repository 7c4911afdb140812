//! One seed of available mode, from its first event to its verdict.

use super::end::ends_well;
use super::plan::{self, Plan};
use crate::checks::Violation;
use crate::guarded::guarded;
use crate::run::{Outcome, Report};
use crate::soak::note_features;
use crate::world::World;

pub fn run(seed: u64, traced: bool) -> Outcome {
    let (mut world, mut plan) = plan::world(seed);
    world.trace = traced.then(Vec::new);
    note_features(&mut world);
    let outcome = guarded(|| live(&mut world, &mut plan));
    let trace = world.trace.take().unwrap_or_default();
    match outcome {
        Ok(resumed_us) => Ok(Report {
            steps: world.steps,
            trace_hash: world.trace_hash,
            acknowledged: world.sides.acknowledged.len(),
            calls: world.checks.history.facts.len(),
            leaders: world.checks.epochs.count(),
            simulated_us: world.now,
            resumed_us,
            features: world.features,
            trace,
        }),
        Err(violation) => Err((violation, trace)),
    }
}

pub fn live(world: &mut World, plan: &mut Plan) -> Result<u64, Violation> {
    world.run_until(400_000)?;
    for _ in 0..plan.steps {
        let pause = plan.pause();
        world.run_until(world.now + pause)?;
        plan.harm(world)?;
    }
    let pause = plan.pause();
    world.run_until(world.now + pause)?;
    plan.mend_all(world)?;
    let took = ends_well(world)?;
    world.roles_end()?;
    Ok(took)
}
