//! One seed from its first event to its verdict: harm, then calm, then every question asked.

use std::collections::BTreeSet;

use eldest::types::Format;

use crate::checks::{Violation, ensure};
use crate::commands::{Command, Tag};
use crate::guarded::guarded;
use crate::host::Host;
use crate::linear;
use crate::membership;
use crate::plan::{self, Plan};
use crate::soak::note_features;
use crate::world::World;

/// Calls that no client makes have numbers from here on.
const OTHERS: u64 = 1 << 30;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub steps: u64,
    pub trace_hash: u64,
    pub acknowledged: usize,
    pub calls: usize,
    pub leaders: usize,
    pub simulated_us: u64,
    /// From the end of the faults to the first write begun and acknowledged since.
    pub resumed_us: u64,
    /// As in [`World::features`].
    pub features: BTreeSet<String>,
    pub trace: Vec<String>,
}

/// A report, or the violation and the trace up to it.
pub type Outcome = Result<Report, (Violation, Vec<String>)>;

/// Runs a seed.
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

fn report(world: &World, resumed_us: u64, trace: Vec<String>) -> Report {
    Report {
        steps: world.steps,
        trace_hash: world.trace_hash,
        acknowledged: world.clients.writes.len(),
        calls: world.clients.history.len(),
        leaders: world.checks.epochs.count(),
        simulated_us: world.now,
        resumed_us,
        features: world.features.clone(),
        trace,
    }
}

pub fn live(world: &mut World, plan: &mut Plan) -> Result<u64, Violation> {
    world.run_until(400_000 * plan.pace)?;
    for _ in 0..plan.steps {
        let pause = plan.pause();
        world.run_until(world.now + pause)?;
        plan.harm(world)?;
        plan.double(world)?;
    }
    let pause = plan.pause();
    world.run_until(world.now + pause)?;
    world.retire_doubles();
    plan.mend_all(world)?;
    let resumed = resumes(world)?;
    agrees(world)?;
    world.readers_agree()?;
    world.stories_are_told()?;
    world.close_all();
    linearizable(world)?;
    Ok(resumed)
}

/// I10: within four election time-outs of the end of the faults, a write begun since is acknowledged.
pub fn resumes(world: &mut World) -> Result<u64, Violation> {
    let (healed, patience) = (world.now, world.clients.patience);
    let bound = world.hosts[0].settings.timing.election_timeout().times(4).0;
    let resumed = |world: &World| {
        let newest = world.clients.writes.last();
        newest.is_some_and(|(begun, _)| *begun >= healed)
    };
    // A client may be waiting for an answer that never comes; this wait is not the cluster's.
    let until = healed + bound + patience;
    let came = world.run_until_true(until, resumed)?;
    ensure(came, "I10 writes resume", || format!("no write within {bound} us: {}", states(world)))?;
    let at = world.now - healed;
    let more = world.now + 300_000;
    world.run_until(more)?;
    Ok(at)
}

/// I5 at the end: with nothing left to do all nodes hold the same state, and every disk counts.
pub fn agrees(world: &mut World) -> Result<(), Violation> {
    world.clients.stopped = true;
    let until = world.now + world.hosts[0].settings.timing.election_timeout().times(4).0;
    let came = world.run_until_true(until, |world| {
        let last = world.checks.survival.len();
        let Some((_, leader)) = membership::leader(world) else {
            return false;
        };
        let belongs = |host: &&Host| leader.is_member(host.id) && !host.retired;
        world.hosts.iter().filter(belongs).all(|host| {
            let admitted = host.core().is_some_and(|core| core.is_admitted() && core.leader().is_some());
            host.applied() == last && admitted && leader.is_voter(host.id)
        })
    })?;
    ensure(came, "I5 all nodes agree in the end", || states(world))?;
    world.no_restore_is_left()?;
    world.blank_readers_get_all()?;
    everybody_is_answered(world)
}

/// No client asks any more, and every caller of a process that lives must have its answer. A write whose
/// record was cut is decided once another record is committed at its index, so the log goes on for a while.
fn everybody_is_answered(world: &mut World) -> Result<(), Violation> {
    let pause = world.hosts[0].settings.timing.election_timeout().0 / 10;
    let answered = |world: &World| world.hosts.iter().all(|host| host.calls.is_empty());
    for round in 0..20 {
        let until = world.now + pause;
        if world.run_until_true(until, answered)? {
            return Ok(());
        }
        let leader = world.hosts.iter().position(|host| host.core().is_some_and(|core| core.is_open()));
        for number in 0..8 {
            let tag = Tag { op: OTHERS + 8 * round + number, attempt: 0 };
            let write = Command::Write { key: u32::MAX, value: tag.op }.call(tag, Format(1));
            world.order(leader.unwrap_or_default(), write)?;
        }
    }
    let until = world.now + pause;
    let came = world.run_until_true(until, answered)?;
    ensure(came, "P15 each call is answered once", || {
        let open: Vec<_> = world.hosts.iter().map(|host| (host.id, &host.calls)).collect();
        format!("these wait for ever: {open:?}")
    })
}

/// I3.
pub fn linearizable(world: &World) -> Result<(), Violation> {
    linear::check(&world.clients.history)
        .map_err(|verdict| Violation { checker: "I3 linearizable", what: format!("{verdict}") })
}

pub fn states(world: &World) -> String {
    let state = |host: &crate::host::Host| match host.core() {
        Some(core) => format!(
            "{} {:?} promise {} last {} commit {} applied {} leader {:?} admitted {}",
            host.id,
            core.role_name(),
            core.vote().promise.epoch,
            core.last(),
            core.commit_index(),
            host.applied(),
            core.leader(),
            core.is_admitted(),
        ),
        None => format!("{} down", host.id),
    };
    let states: Vec<String> = world.hosts.iter().map(state).collect();
    states.join("; ")
}
