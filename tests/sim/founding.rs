//! A cluster is formed once (P9), even when founders of a cluster that has grown come back on empty disks
//! under their old topology file. These are timelines by hand.

use eldest::protocol::MemberChange;
use eldest::replica::Call;
use eldest::types::NodeId;

use crate::checks::{Check, ensure};
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::membership::{add, comes, leader, spare, votes};
use crate::rng::Rng;
use crate::stage::{core, leads, link, run, stage, write};
use crate::world::World;

/// A cluster that the first `founders` nodes formed, and that has grown to `count`.
fn grown(founders: u32, count: u32, seed: u64) -> Result<World, crate::checks::Violation> {
    let mut world = stage(founders, seed, |_| {})?;
    let settings = world.hosts[0].settings.clone();
    let mut rng = Rng::new(seed);
    for id in founders + 1..=count {
        let clock = Clock { offset: 1_000_000 * u64::from(id), rate_ppm: 0, wall_offset: 0 };
        world.hosts.push(Host::new(spare(&settings, id), Disk::new(rng.next()), clock));
        world.start(id as usize - 1)?;
        world.order(0, Call::ChangeMembers(add(id)))?;
        comes(&mut world, 3_000, "it votes", |world| votes(world, id))?;
    }
    write(&mut world, 1, 1);
    run(&mut world, 100)?;
    Ok(world)
}

fn wipe(world: &mut World, id: u32) {
    let node = id as usize - 1;
    world.crash(node, true);
    world.hosts[node].disk.wipe(0xF39 + u64::from(id));
}

/// All nodes that have a cluster's first record have the same cluster's.
fn one_cluster(world: &World) -> Check {
    let clusters = world.hosts.iter().filter_map(Host::core).map(|core| core.log().roster().cluster());
    let mut known: Vec<_> = clusters.filter(|cluster| cluster.is_known()).collect();
    known.dedup();
    ensure(known.len() <= 1, "P9 a cluster is formed once", || crate::run::states(world))
}

fn is_let_in(world: &World, id: u32) -> bool {
    let leader = leader(world).map(|(node, _)| world.hosts[node].id);
    core(world, id).is_some_and(|core| core.is_admitted() && core.leader() == leader)
}

/// n1 founds a cluster alone; n2 and n3 are added. n1's disk is replaced, and its topology file still names
/// no other node.
pub fn a_grown_clusters_founder_is_wiped() -> Check {
    let mut world = grown(1, 3, 39)?;
    wipe(&mut world, 1);
    comes(&mut world, 4_000, "n2 leads", |world| leads(world, 2))?;
    world.start(0)?;
    comes(&mut world, 4_000, "n1 is let in", |world| is_let_in(world, 1))
}

/// n1 and n2 found a cluster that grows to five. Both disks are replaced, which is a minority. Their topology
/// files still name only the two of them, and they start at once, at any time between two beats of the
/// cluster's leader.
pub fn a_grown_clusters_founders_are_wiped() -> Check {
    for later_ms in [0, 30, 60, 90] {
        let mut world = grown(2, 5, 40)?;
        wipe(&mut world, 1);
        wipe(&mut world, 2);
        comes(&mut world, 4_000, "n3 leads", |world| leads(world, 3))?;
        run(&mut world, 1_000 + later_ms)?;
        world.start(0)?;
        world.start(1)?;
        run(&mut world, 1_000)?;
        one_cluster(&world)?;
        comes(&mut world, 4_000, "both are let in", |world| is_let_in(world, 1) && is_let_in(world, 2))?;
    }
    Ok(())
}

/// As before, but one of the two was removed when its disk was replaced. It never hears the cluster, and has
/// long been asking only the other, which comes back on an empty disk.
fn one_was_removed(removed: u32, other: u32) -> Check {
    let mut world = grown(2, 5, 41)?;
    wipe(&mut world, removed);
    comes(&mut world, 4_000, "the other leads", |world| leads(world, other))?;
    run(&mut world, 500)?;
    world.order(other as usize - 1, Call::ChangeMembers(MemberChange::Remove(NodeId(removed))))?;
    comes(&mut world, 4_000, "it is removed", |world| {
        leader(world).is_some_and(|(_, core)| !core.is_member(NodeId(removed)))
    })?;
    run(&mut world, 500)?;
    wipe(&mut world, other);
    world.start(removed as usize - 1)?;
    comes(&mut world, 4_000, "n3 leads", |world| leads(world, 3))?;
    run(&mut world, 1_000)?;
    world.start(other as usize - 1)?;
    run(&mut world, 1_000)?;
    one_cluster(&world)?;
    comes(&mut world, 4_000, "the other is let in", |world| is_let_in(world, other))
}

pub fn a_removed_founder_asks_a_wiped_one() -> Check {
    one_was_removed(1, 2)
}

pub fn a_wiped_founder_asks_a_removed_one() -> Check {
    one_was_removed(2, 1)
}

/// n5 is down, so no node leads. n2 comes first, and hears n3 and n4; n1 hears only n2.
pub fn one_founder_has_heard_of_it() -> Check {
    let mut world = grown(2, 5, 42)?;
    wipe(&mut world, 1);
    wipe(&mut world, 2);
    world.crash(4, true);
    run(&mut world, 2_000)?;
    (3..=5).for_each(|other| link(&mut world, 1, other, false));
    world.start(1)?;
    run(&mut world, 500)?;
    world.start(0)?;
    run(&mut world, 2_000)?;
    one_cluster(&world)?;
    (3..=5).for_each(|other| link(&mut world, 1, other, true));
    world.start(4)?;
    comes(&mut world, 6_000, "both are let in", |world| is_let_in(world, 1) && is_let_in(world, 2))
}

pub const ALL: &[(&str, crate::scenarios::Scenario)] = &[
    ("a_grown_clusters_founder_is_wiped", a_grown_clusters_founder_is_wiped),
    ("a_grown_clusters_founders_are_wiped", a_grown_clusters_founders_are_wiped),
    ("a_removed_founder_asks_a_wiped_one", a_removed_founder_asks_a_wiped_one),
    ("a_wiped_founder_asks_a_removed_one", a_wiped_founder_asks_a_removed_one),
    ("one_founder_has_heard_of_it", one_founder_has_heard_of_it),
];

#[test]
fn a_cluster_is_formed_once() {
    crate::guarded::each_holds(ALL);
}
