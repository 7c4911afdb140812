//! A cluster has grown, and its founders come back on blank disks, with the topology files of the first day (P9).

use eldest::replica::Call;
use eldest::types::NodeId;

use crate::checks::{Check, Violation, ensure};
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::membership::{add, comes, spare, votes};
use crate::rng::Rng;
use crate::stage::{MS, core, leads, link, run, stage, write};
use crate::world::World;

/// n1 and n2 have founded a cluster, n3 to n5 have been added. Then both founders lose their disks: two of five.
fn grown(seed: u64) -> Result<World, Violation> {
    let mut world = stage(2, seed, |_| {})?;
    let settings = world.hosts[0].settings.clone();
    let mut rng = Rng::new(seed);
    for id in 3..=5 {
        let clock = Clock { offset: 1_000_000 * u64::from(id), rate_ppm: 0, wall_offset: 0 };
        world.hosts.push(Host::new(spare(&settings, id), Disk::new(rng.next()), clock));
        world.start(id as usize - 1)?;
        world.order(0, Call::ChangeMembers(add(id)))?;
        comes(&mut world, 3_000, "it votes", |world| votes(world, id))?;
    }
    write(&mut world, 1, 1);
    run(&mut world, 100)?;
    for node in [0, 1] {
        world.crash(node, true);
        world.hosts[node].disk.wipe(0xF40 + node as u64);
    }
    Ok(world)
}

fn none_is_founded(world: &mut World, ms: u64) -> Check {
    let led = world.run_until_true(world.now + ms * MS, |world| leads(world, 1) || leads(world, 2))?;
    ensure(!led, "P9 a cluster forms once", || crate::run::states(world))
}

fn all_are_one(world: &mut World) -> Check {
    comes(world, 6_000, "both are let in", |world| {
        [1, 2].iter().all(|id| {
            core(world, *id).is_some_and(|core| core.is_admitted() && core.leader() >= Some(NodeId(3)))
        })
    })
}

/// n5 is down, so nobody leads. n2 comes first, and hears n3 and n4; n1 hears nobody but n2.
pub fn one_founder_has_heard_of_it() -> Check {
    let mut world = grown(40)?;
    world.crash(4, true);
    run(&mut world, 2_000)?;
    (3..=5).for_each(|other| link(&mut world, 1, other, false));
    world.start(1)?;
    run(&mut world, 500)?;
    world.start(0)?;
    none_is_founded(&mut world, 2_000)?;
    (3..=5).for_each(|other| link(&mut world, 1, other, true));
    world.start(4)?;
    all_are_one(&mut world)
}

#[test]
fn a_grown_cluster_stays_one() {
    assert_eq!(crate::guarded::guarded(one_founder_has_heard_of_it), Ok(()));
}
