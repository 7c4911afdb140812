//! So many disks are doubtful that no node is left to let them in, and an operator says that they count
//! (P27).

use eldest::protocol::majority;
use eldest::types::{Index, NodeId};

use crate::checks::{Check, Checks, Violation, ensure};
use crate::rng::Rng;
use crate::run::states;
use crate::stage::{MS, core, leads, linearizable, read, run, stage, write};
use crate::world::World;

/// The last index that is on so many disks that every majority has one of them.
fn kept_by_some_of_every_majority(world: &World) -> Index {
    let mut lasts: Vec<Index> = world.hosts.iter().map(|host| host.disk.durable.last()).collect();
    lasts.sort_unstable();
    lasts[majority(lasts.len()) - 1]
}

fn leader(world: &World) -> Option<NodeId> {
    let ids = world.hosts.iter().map(|host| host.id);
    ids.into_iter().find(|id| leads(world, id.0))
}

/// Bits flip on some of the disks. Returns the disks that have forgotten something.
fn damage_some(world: &mut World, rng: &mut Rng) -> Vec<usize> {
    let mut doubtful = Vec::new();
    for node in 0..world.hosts.len() {
        let disk = &mut world.hosts[node].disk;
        let forgot = match rng.below(10) {
            0..5 => disk.damage(rng),
            5..8 => disk.spoil_promise(rng, true),
            _ => false,
        };
        doubtful.extend(forgot.then_some(node));
    }
    doubtful
}

/// Returns whether so many disks were doubtful that an operator had to act.
fn an_operator_trusts(seed: u64) -> Result<bool, Violation> {
    let mut rng = Rng::new(seed);
    let count = *rng.pick(&[3, 5]);
    let mut world =
        stage(count, seed, |settings| settings.limits.keep = if seed.is_multiple_of(2) { 5 } else { 1_000 })?;
    for value in 1..=rng.range(1, 40) {
        write(&mut world, 1, value);
        run(&mut world, rng.below(20))?;
    }
    for node in 0..world.hosts.len() {
        world.crash(node, rng.chance(500));
    }
    let doubtful = damage_some(&mut world, &mut rng);
    let kept = kept_by_some_of_every_majority(&world);
    (0..world.hosts.len()).try_for_each(|node| world.start(node))?;
    run(&mut world, 4_000)?;
    let sound = world.hosts.len() - doubtful.len();
    let stands = sound < majority(world.hosts.len());
    ensure(leader(&world).is_none() == stands, "P27 doubtful disks elect nobody", || {
        format!("{sound} are sound: {}", states(&world))
    })?;
    // A disk that has lost all of its log knows of no seat that it could take up.
    if !stands || kept == 0 {
        return Ok(false);
    }
    // Records that only lost disks had are lost: the cluster is judged by what is left.
    let mut survival = std::mem::take(&mut world.checks.survival);
    survival.may_lose_beyond(kept);
    world.checks = Checks { survival, ..Checks::default() };
    (0..world.hosts.len()).for_each(|node| world.crash(node, false));
    for node in 0..world.hosts.len() {
        if doubtful.contains(&node) {
            world.hosts[node].disk.is_trusted();
        }
        world.start(node)?;
        run(&mut world, rng.below(300))?;
    }
    let led = world.run_until_true(world.now + 6_000 * MS, |world| leader(world).is_some())?;
    ensure(led, "P27 trusted disks elect", || states(&world))?;
    all_count(&mut world)?;
    goes_on(&mut world)?;
    Ok(true)
}

fn all_count(world: &mut World) -> Check {
    let counts = |world: &World| {
        let mut ids = world.hosts.iter().map(|host| host.id.0);
        ids.all(|id| core(world, id).is_some_and(|core| core.is_admitted() && core.leader().is_some()))
    };
    let came = world.run_until_true(world.now + 6_000 * MS, counts)?;
    ensure(came, "P27 trusted disks count", || states(world))
}

fn goes_on(world: &mut World) -> Check {
    let leads = leader(world).map_or(1, |leader| leader.0);
    world.clients.history.clear();
    write(world, leads, 77);
    run(world, 500)?;
    let nodes = world.hosts.len() as u32;
    (1..=nodes).for_each(|node| read(world, node));
    run(world, 500)?;
    linearizable(world)
}

#[test]
fn disks_that_an_operator_trusts_elect_a_leader() {
    const SEEDS: u64 = 300;
    let mut trusted = 0;
    for seed in 0..SEEDS {
        match an_operator_trusts(seed) {
            Ok(needed) => trusted += u64::from(needed),
            Err(violation) => panic!("seed {seed}: {} — {}", violation.checker, violation.what),
        }
    }
    assert!(trusted > SEEDS / 3, "in {trusted} an operator was needed");
}
