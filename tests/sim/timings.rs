//! Timings differ between nodes, and change when a node starts again: a leader that was granted a long lease
//! relies on it, no matter what the others are configured to (P11).

use eldest::protocol::Timing;
use eldest::types::{NodeId, Span};

use crate::checks::{Check, Violation, ensure};
use crate::disks::patient;
use crate::guarded::each_holds;
use crate::scenarios::Scenario;
use crate::stage::{MS, leads, link, run, stage};
use crate::world::World;

const SHORT: Span = Span::millis(300);

/// n1 leads with leases of three seconds, and relies only on those granted by the named nodes. The others are
/// configured to leases of `others`; a node that n1 does not reach has granted it nothing for longer than a
/// lease.
fn long(count: u32, seed: u64, relies_on: &[u32], others: Span) -> Result<World, Violation> {
    let mut world = stage(count, seed, |settings| {
        let lease = if settings.me == NodeId(1) { patient().lease } else { others };
        settings.timing = Timing { lease, ..patient() };
    })?;
    for far in (2..=count).filter(|id| !relies_on.contains(id)) {
        link(&mut world, 1, far, false);
    }
    run(&mut world, 4_000)?;
    Ok(world)
}

/// The process ends, and is back at once, configured to short leases.
fn restart(world: &mut World, id: u32) -> Check {
    let node = world.slot(NodeId(id));
    world.crash(node, false);
    world.hosts[node].settings.timing.lease = SHORT;
    world.start(node)
}

/// The node leads soon, and never says so at the same time as n1.
fn leads_beside_n1(world: &mut World, id: u32) -> Check {
    let led = world.run_until_true(world.now + 1_500 * MS, |world| leads(world, id))?;
    ensure(led, "stage", || format!("n{id} does not lead"))?;
    run(world, 6_000)
}

/// P11: n2 has granted n1 three seconds, and is back with a configuration of 300 ms, as n3 is.
pub fn timings_change_node_by_node() -> Check {
    let mut world = long(3, 71, &[2], patient().lease)?;
    world.reject(0);
    [2, 3].into_iter().try_for_each(|id| restart(&mut world, id))?;
    leads_beside_n1(&mut world, 2)
}

/// P11: n1 relies on n3 alone, whose disk was written by an earlier version, which says nothing of leases. n3
/// is back twice: first with its earlier leases, under n1, then with leases of 300 ms.
pub fn a_disk_of_an_earlier_version() -> Check {
    let mut world = long(3, 77, &[3], patient().lease)?;
    world.crash(2, false);
    world.hosts[2].disk.says_nothing_of_leases();
    world.start(2)?;
    run(&mut world, 8_000)?;
    world.reject(0);
    restart(&mut world, 3)?;
    let led = world.run_until_true(world.now + 1_500 * MS, |world| leads(world, 2) || leads(world, 3))?;
    ensure(led, "stage", || "nobody takes over".into())?;
    run(&mut world, 6_000)
}

/// P11: n1 relies on n2 and n3, and is cut off. n2 leads, and hands over to n4, which n3 and n5 elect. Among
/// these, only n3 has granted n1 anything. It is configured to 300 ms, and so is n4, to which it reports the
/// grant.
pub fn others_are_configured_to_shorter_leases() -> Check {
    let mut world = n1_is_followed_by_n2(72)?;
    hands_over_to_n4(&mut world)
}

/// P11: the same; n3 has heard that n2 asks for 300 ms, and starts again.
pub fn a_short_lease_follows_a_long_one() -> Check {
    let mut world = n1_is_followed_by_n2(74)?;
    restart(&mut world, 3)?;
    run(&mut world, 20)?;
    hands_over_to_n4(&mut world)
}

fn n1_is_followed_by_n2(seed: u64) -> Result<World, Violation> {
    let mut world = long(5, seed, &[2, 3], SHORT)?;
    world.reject(0);
    let led = world.run_until_true(world.now + 1_500 * MS, |world| leads(world, 2))?;
    ensure(led, "stage", || "n2 does not lead".into())?;
    // All have answered a beat.
    run(&mut world, 20)?;
    Ok(world)
}

/// n2, which knows of n1's lease, is asked too late.
fn hands_over_to_n4(world: &mut World) -> Check {
    world.net.slow.insert((NodeId(4), NodeId(2)), 3_000 * MS);
    world.hand_over(1, Some(NodeId(4)))?;
    leads_beside_n1(world, 4)
}

const ALL: &[(&str, Scenario)] = &[
    ("timings_change_node_by_node", timings_change_node_by_node),
    ("a_disk_of_an_earlier_version", a_disk_of_an_earlier_version),
    ("others_are_configured_to_shorter_leases", others_are_configured_to_shorter_leases),
    ("a_short_lease_follows_a_long_one", a_short_lease_follows_a_long_one),
];

#[test]
fn every_scenario_holds() {
    each_holds(ALL);
}
