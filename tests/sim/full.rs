//! Disks without room, where records wait, and promises and answers do not (P24, C32); and a slow disk (P26).

use eldest::protocol::Node;
use eldest::types::{Format, NodeId};

use crate::calls::Waiting;
use crate::checks::{Check, Violation, ensure};
use crate::commands::{Command, Tag};
use crate::stage::{MS, core, leads, link, read, run, stage, write};
use crate::world::World;

/// More records than a segment of the simulator's logs holds.
const BURST: u64 = 120;

/// n3 has been given records that it has no room for, in one append; n1 and n2 have committed them.
fn n3_is_full(seed: u64) -> Result<World, Violation> {
    let mut world = stage(3, seed, |_| {})?;
    world.hosts[2].disk.run_short(0);
    let calls = (1..=BURST).map(|op| {
        let write = Command::Write { key: 0, value: op }.call(Tag { op: 9_000 + op, attempt: 0 }, Format(1));
        (Waiting::Nobody, write)
    });
    world.calls(0, calls.collect())?;
    run(&mut world, 300)?;
    let (has, all) = (world.hosts[2].disk.durable.last(), core(&world, 1).map_or(0, Node::commit_index));
    let stuck = world.hosts[2].full && has < all;
    ensure(stuck, "stage", || format!("n3 has {has} of {all} records on its disk"))?;
    Ok(world)
}

/// n1 goes on leading with n3 alone, which takes no records: beats are answered, and so are reads.
pub fn full_follower_answers() -> Check {
    let mut world = n3_is_full(51)?;
    world.crash(1, true);
    run(&mut world, 4_000)?;
    ensure(leads(&world, 1), "P24 who has no room answers", || "n1 leads no more".into())?;
    let before = world.clients.history.len();
    read(&mut world, 1);
    run(&mut world, 200)?;
    let answered = world.clients.history.len() > before;
    ensure(answered, "P24 who has no room answers", || "n1 cannot read".into())
}

/// n1 dies. n2 needs the promise of n3, and n3's disk stores it although it takes no records; n3 dies and
/// keeps it.
pub fn full_follower_promises() -> Check {
    let mut world = n3_is_full(52)?;
    world.crash(0, true);
    let promised = |world: &World| core(world, 2).is_some_and(|node| node.leads().is_some());
    let led = world.run_until_true(world.now + 4_000 * MS, promised)?;
    ensure(led, "P24 a promise needs no room", || "n2 has no majority".into())?;
    let epoch = core(&world, 2).and_then(|node| node.leads()).unwrap_or_default();
    world.crash(2, true);
    world.start(2)?;
    let kept = core(&world, 3).is_some_and(|node| node.vote().promise.epoch >= epoch);
    ensure(kept, "P24 a promise needs no room", || "n3 has forgotten it".into())?;
    world.hosts[2].disk.give_room();
    run(&mut world, 3_000)?;
    let opened = leads(&world, 2) || leads(&world, 3);
    ensure(opened, "I10 writes resume", || "nobody leads".into())?;
    let same = core(&world, 2).map(|node| node.last()) == core(&world, 3).map(|node| node.last());
    ensure(same, "I5 states are identical", || format!("{} lags", NodeId(3)))
}

/// P26: n1 comes back far behind, pulls a snapshot and leads; its disk takes so long to install it that a
/// newer one is due.
pub fn installs_slowly() -> Check {
    let mut led = 0;
    for seed in 60..80 {
        let mut world = stage(5, seed, |_| {})?;
        world.crash(0, true);
        let ready = world.run_until_true(world.now + 5_000 * MS, |world| leads(world, 2))?;
        ensure(ready, "stage", || "n2 does not lead".into())?;
        for value in 0..60 {
            write(&mut world, 2, value + 10);
            run(&mut world, 5)?;
        }
        (2..=5).for_each(|other| link(&mut world, 1, other, false));
        world.hosts[0].sync_us = 100 * MS;
        world.start(0)?;
        run(&mut world, 300)?;
        world.crash(1, true);
        (3..=5).for_each(|other| link(&mut world, 1, other, true));
        // n1's disk is slow with its promise, too: sometimes n3 is quicker.
        let somebody = |world: &World| leads(world, 1) || leads(world, 3);
        world.run_until_true(world.now + 5_000 * MS, somebody)?;
        led += u32::from(leads(&world, 1));
        for value in 0..40 {
            write(&mut world, 1, value + 100);
            run(&mut world, 5)?;
        }
        run(&mut world, 1_000)?;
        world.crash(0, true);
        world.start(0)?;
    }
    ensure(led > 5, "stage", || format!("n1 led {led} times"))
}

/// P26: the disk of n3 syncs slowly. n3 follows a new leader, hears of commits beyond a boundary, and loses
/// power before its promise is on the disk. Nothing else on that disk may look newer.
pub fn promises_slowly() -> Check {
    for seed in 80..90 {
        let mut world = stage(3, seed, |_| {})?;
        world.hosts[2].sync_us = 400 * MS;
        world.hand_over(0, Some(NodeId(2)))?;
        let led = world.run_until_true(world.now + 2_000 * MS, |world| leads(world, 2))?;
        ensure(led, "stage", || "n2 does not lead".into())?;
        for value in 0..24 {
            write(&mut world, 2, value + 10);
            run(&mut world, 5)?;
        }
        run(&mut world, 150)?;
        world.crash(2, true);
        world.start(2)?;
        run(&mut world, 1_000)?;
    }
    Ok(())
}

#[test]
fn a_full_disk_answers_and_promises() {
    assert_eq!(crate::guarded::guarded(full_follower_answers), Ok(()));
    assert_eq!(crate::guarded::guarded(full_follower_promises), Ok(()));
    assert_eq!(crate::guarded::guarded(installs_slowly), Ok(()));
    assert_eq!(crate::guarded::guarded(promises_slowly), Ok(()));
}
