//! An older copy of a node's disk is put back, under the same incarnation (P27).

use eldest::protocol::Node;
use eldest::types::{Index, NodeId};

use crate::checks::{Check, ensure};
use crate::disk::Copy;
use crate::rng::Rng;
use crate::sides;
use crate::stage::{MS, core, leads, linearizable, link, run, stage, write};
use crate::world::World;

const FOUND: &str = "P27 a disk that forgot is found";
const COMES_BACK: &str = "P27 it comes back as a new disk";

/// The content of a node's disk between two of its processes.
fn copy(world: &mut World, node: usize) -> Result<Copy, crate::checks::Violation> {
    world.crash(node, false);
    let copy = world.hosts[node].disk.copy();
    world.start(node)?;
    Ok(copy)
}

/// The node stops, and starts with the copy on its disk. Returns how much of what it had acknowledged is
/// gone.
fn put_back(world: &mut World, node: usize, copy: &Copy) -> Result<Index, crate::checks::Violation> {
    world.crash(node, false);
    let host = &mut world.hosts[node];
    let had = host.disk.durable.last();
    host.disk.put_back(copy);
    host.put_back = true;
    let lost = had - host.disk.durable.last().min(had);
    world.start(node)?;
    Ok(lost)
}

fn comes_back(world: &mut World, id: u32) -> Check {
    let counts = |world: &World| core(world, id).is_some_and(Node::is_admitted);
    let back = world.run_until_true(world.now + 5_000 * MS, counts)?;
    ensure(back, COMES_BACK, || format!("n{id} is not let in"))
}

/// n1 commits with n3, n2 is cut off, and n3 forgets. n3 must neither count for n1 nor elect n2 before it has
/// been let in again.
pub fn an_old_copy_is_put_back() -> Check {
    let mut world = stage(3, 51, |_| {})?;
    for value in 1..4 {
        write(&mut world, 1, value);
        run(&mut world, 10)?;
    }
    let old = copy(&mut world, 2)?;
    run(&mut world, 500)?;
    link(&mut world, 1, 2, false);
    link(&mut world, 2, 3, false);
    write(&mut world, 1, 4);
    run(&mut world, 300)?;
    let lost = put_back(&mut world, 2, &old)?;
    ensure(lost > 0, "stage", || "nothing was acknowledged since".into())?;
    let found = |world: &World| world.odd == [NodeId(3)];
    let told = world.run_until_true(world.now + 400 * MS, found)?;
    ensure(told, FOUND, || format!("sent away: {:?}", world.odd))?;
    run(&mut world, 100)?;
    world.crash(0, true);
    world.net.heal();
    run(&mut world, 5_000)?;
    ensure(!leads(&world, 2) && !leads(&world, 3), COMES_BACK, || "it has elected a leader".into())?;
    world.start(0)?;
    comes_back(&mut world, 3)?;
    run(&mut world, 500)?;
    linearizable(&mut world)
}

/// In available mode nothing is compared: the copy is brought up to date, like any disk that is behind (P33).
fn an_old_copy_on_a_side() -> Check {
    let mut world = sides::stage(3, 53)?;
    sides::set(&mut world, 1, "a", "1")?;
    let old = copy(&mut world, 2)?;
    run(&mut world, 500)?;
    for number in 0..20 {
        sides::set(&mut world, 1, &format!("k{number}"), "2")?;
    }
    run(&mut world, 500)?;
    let lost = put_back(&mut world, 2, &old)?;
    ensure(lost > 0, "stage", || "nothing was acknowledged since".into())?;
    let applied = |world: &World| world.hosts[2].applied() == world.hosts[0].applied();
    let up_to_date = world.run_until_true(world.now + 5_000 * MS, applied)?;
    ensure(up_to_date, "P33 a copy is brought up to date", || crate::run::states(&world))?;
    ensure(world.odd.is_empty(), FOUND, || format!("sent away: {:?}", world.odd))
}

#[test]
fn a_side_brings_an_old_copy_up_to_date() {
    assert_eq!(crate::guarded::guarded(an_old_copy_on_a_side), Ok(()));
}

/// A follower of a leader that stays gets a copy of its disk back, over a network that loses, repeats and
/// delays. If anything is gone, the disk is found and let in again; if nothing is, nothing happens to it.
fn some_copy_is_put_back(seed: u64) -> Result<bool, crate::checks::Violation> {
    let mut rng = Rng::new(seed);
    let mut world = stage(*rng.pick(&[3, 5]), seed, |settings| {
        settings.limits.keep = if seed.is_multiple_of(2) { 5 } else { 1_000 };
        settings.peers_prove = !seed.is_multiple_of(3);
        settings.asks_from = 1_000_000 * u64::from(settings.me.0);
        // The leader stays, however few of its messages arrive.
        settings.timing.dead_after = eldest::types::Span::millis(2_000);
    })?;
    world.net.loss = *rng.pick(&[0, 20, 100]);
    world.net.repeat = *rng.pick(&[0, 100]);
    world.net.straggle = *rng.pick(&[0, 50]);
    let node = 1 + rng.below(world.hosts.len() as u64 - 1) as usize;
    let id = world.hosts[node].id;
    let mut value = 0;
    let mut some_writes = |world: &mut World, rng: &mut Rng| -> Check {
        for _ in 0..rng.below(30) {
            value += 1;
            write(world, 1, value);
            run(world, rng.below(60))?;
        }
        Ok(())
    };
    some_writes(&mut world, &mut rng)?;
    let old = copy(&mut world, node)?;
    run(&mut world, 1_000)?;
    some_writes(&mut world, &mut rng)?;
    run(&mut world, 1_000)?;
    let epochs = world.checks.epochs.count();
    let lost = put_back(&mut world, node, &old)? > 0;
    let expected = if lost { vec![id] } else { Vec::new() };
    run(&mut world, 2_000)?;
    ensure(world.checks.epochs.count() == epochs, "stage", || "the leader has changed".into())?;
    ensure(world.odd == expected, FOUND, || format!("sent away: {:?}, not {expected:?}", world.odd))?;
    some_writes(&mut world, &mut rng)?;
    world.net.heal();
    comes_back(&mut world, id.0)?;
    run(&mut world, 1_000)?;
    ensure(world.odd == expected, FOUND, || format!("sent away: {:?}, not {expected:?}", world.odd))?;
    linearizable(&mut world)?;
    Ok(lost)
}

#[test]
fn old_copies_at_random() {
    let mut lost = 0;
    for seed in 0..400 {
        match some_copy_is_put_back(seed) {
            Ok(some) => lost += usize::from(some),
            Err(violation) => panic!("seed {seed}: {} — {}", violation.checker, violation.what),
        }
    }
    assert!((200..400).contains(&lost), "{lost} had lost something");
}
