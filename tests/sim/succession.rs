//! The next leader. Where delays stay far below the stagger, it is the eldest node that lives, no matter
//! which node led and which died with it.
//!
//! `SIM_FULL=1` repeats every case with forty seeds instead of four.

use eldest::protocol::{Heir, succession};
use eldest::types::NodeId;

use crate::calm::{MS, Shape, bound, for_all, is_full};
use crate::checks::{Violation, ensure};
use crate::world::World;

#[derive(Clone, Copy, Debug)]
struct Case {
    count: u32,
    leader: u32,
    /// The nodes that die at the same instant, the leader among them: one bit per node.
    dead: u32,
    /// The machines die, so that no system refuses in their names.
    silent: bool,
    seed: u64,
}

/// Every leader of three; the eldest, the middle and the youngest of more; every set that leaves a majority.
fn cases(seeds: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [3u32, 5, 7] {
        for leader in [1, count / 2 + 1, count] {
            let few = (0..1u32 << count).filter(|dead| dead.count_ones() <= (count - 1) / 2);
            for dead in few.filter(|dead| dead >> (leader - 1) & 1 == 1) {
                for silent in [false, true] {
                    cases.extend((0..seeds).map(|seed| Case { count, leader, dead, silent, seed }));
                }
            }
        }
    }
    cases
}

fn succeed(case: &Case) -> Result<(), Violation> {
    let Case { count, leader, dead, silent, seed } = *case;
    let seed = u64::from(dead) + (seed << 32);
    let mut world = Shape { leader, seed, ..Shape::of(count) }.formed()?;
    for node in (0..count as usize).filter(|node| dead >> node & 1 == 1) {
        world.hosts[node].powered = !silent;
        world.crash(node, silent);
    }
    let until = world.now + bound(&world);
    world.run_until_true(until, |world| !world.openings.is_empty())?;
    let first = world.openings.first().map(|(_, successor)| successor.0);
    let eldest = dead.trailing_ones() + 1;
    ensure(first == Some(eldest), "P4 the eldest leads", || format!("{first:?}, not {eldest}"))?;
    let until = world.now + 500 * MS;
    world.run_until(until)?;
    ensure(world.openings.len() == 1, "P4 and goes on leading", || format!("{:?}", world.openings))
}

#[test]
fn the_successor_is_the_eldest_that_lives() {
    let cases = cases(if is_full() { 40 } else { 4 });
    let runs = for_all(&cases, succeed);
    println!("{} deaths: the eldest that lived led each time", runs.len());
}

/// The leader's answer to `eldest why`: the node that would be next, step by step.
fn foretold(world: &World, leader: NodeId) -> Vec<Heir> {
    let host = world.host(leader);
    let now = host.clock.now(world.now).mono;
    let told = host.core().map(|core| succession(leader, &core.contenders(now), core.quorum()));
    told.unwrap_or_default()
}

/// One leader after the other dies, and each time the node leads that the first leader foretold, until no
/// node can (P58).
fn dies_as_foretold((count, leader, silent): &(u32, u32, bool)) -> Result<usize, Violation> {
    let seed = u64::from(count * 10 + leader);
    let mut world = Shape { leader: *leader, seed, ..Shape::of(*count) }.formed()?;
    world.run_until(world.now + 1_000 * MS)?;
    let steps = foretold(&world, NodeId(*leader));
    ensure(steps.len() == (*count as usize).div_ceil(2), "P58 until no majority is left", || {
        format!("{steps:?}")
    })?;
    for (number, step) in steps.iter().enumerate() {
        let dies = step.dead.last().map_or(0, |node| node.0 as usize - 1);
        world.openings.clear();
        world.hosts[dies].powered = !silent;
        world.crash(dies, *silent);
        let until = world.now + bound(&world);
        world.run_until_true(until, |world| !world.openings.is_empty())?;
        let next = world.openings.first().map(|(_, successor)| *successor);
        ensure(next == step.next, "P58 as it was foretold", || {
            format!("{next:?} at step {number} of {steps:?}")
        })?;
        // Long enough for the new leader to have heard from all.
        world.run_until(world.now + 1_000 * MS)?;
        if let Some(next) = next {
            let again = foretold(&world, next);
            let rest: Vec<Option<NodeId>> = steps[number + 1..].iter().map(|step| step.next).collect();
            let told: Vec<Option<NodeId>> = again.iter().map(|step| step.next).collect();
            ensure(told == rest, "P58 each says the same", || format!("{told:?}, not {rest:?}"))?;
        }
    }
    Ok(steps.len())
}

#[test]
fn who_would_be_next_is_who_is_next() {
    let cases: Vec<(u32, u32, bool)> = [3, 5, 7]
        .into_iter()
        .flat_map(|count| {
            (1..=count).flat_map(move |leader| [false, true].map(|silent| (count, leader, silent)))
        })
        .collect();
    let deaths: usize = for_all(&cases, dies_as_foretold).into_iter().sum();
    println!("{deaths} deaths, each as it was foretold");
    assert!(deaths > cases.len(), "one after the other");
}
