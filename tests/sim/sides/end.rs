//! The end that every run must come to once the faults are over: one side, one state, and nothing lost.

use eldest::protocol::{Node, SnapshotMeta};
use eldest::types::{NodeId, Vector};

use crate::checks::{Check, Violation, ensure, kept, merged};
use crate::host::Host;
use crate::run::states;
use crate::world::World;

/// The sides must become one within this many election time-outs.
const PATIENCE: u64 = 8;

/// Waits for the end. Returns how long it took until all nodes followed one leader that takes writes.
pub fn ends_well(world: &mut World) -> Result<u64, Violation> {
    let began = world.now;
    let within = world.hosts[0].settings.timing.election_timeout().times(PATIENCE).0;
    let one = world.run_until_true(began + within, is_one_side)?;
    ensure(one, "P34 sides become one", || format!("after {within} us: {}", states(world)))?;
    let took = world.now - began;
    resumes(world)?;
    world.sides.stopped = true;
    let same = world.run_until_true(world.now + within / 2, is_one_state)?;
    ensure(same, "I5 all nodes agree in the end", || states(world))?;
    nothing_is_lost(world)?;
    world.readers_agree()?;
    world.blank_readers_get_all()?;
    let settled = world.run_until_true(world.now + within / 2, is_settled)?;
    ensure(settled, "P35 what all have had is settled", || vectors(world))?;
    Ok(took)
}

pub fn leaders(world: &World) -> Vec<NodeId> {
    let leads = |host: &&Host| host.core().is_some_and(|core| core.leads().is_some());
    world.hosts.iter().filter(leads).map(|host| host.id).collect()
}

/// One node leads, its epoch is open, and all nodes follow it.
pub fn is_one_side(world: &World) -> bool {
    let leaders = leaders(world);
    let &[leader] = leaders.as_slice() else {
        return false;
    };
    let open = world.host(leader).core().is_some_and(|core| core.is_open());
    let follows = |host: &Host| host.core().is_some_and(|core| core.leader() == Some(leader));
    open && world.hosts.iter().all(follows)
}

/// With nothing left to do, all nodes are at the same position in the same state.
pub fn is_one_state(world: &World) -> bool {
    let first = &world.hosts[0];
    let quiet = |host: &Host| host.core().is_some_and(|core| core.last().index == host.applied());
    let same = |host: &Host| {
        host.state.store.digest() == first.state.store.digest() && host.applied() == first.applied()
    };
    is_one_side(world) && world.hosts.iter().all(|host| quiet(host) && same(host))
}

/// All histories that were kept apart have become one, and every epoch but the present one is forgotten.
fn is_settled(world: &World) -> bool {
    let told_apart = |host: &Host| host.core().map_or(0, |core| vector(host, core).len());
    is_one_state(world) && world.hosts.iter().all(|host| told_apart(host) <= 1)
}

fn vector(host: &Host, core: &Node) -> Vector {
    core.log().meta_at(host.applied()).vector.unwrap_or_default()
}

fn vectors(world: &World) -> String {
    let vectors = world.hosts.iter().filter_map(|host| {
        let core = host.core()?;
        Some(format!("{} has {}", host.id, vector(host, core)))
    });
    vectors.collect::<Vec<_>>().join("; ")
}

/// Writes go on through the one leader.
fn resumes(world: &mut World) -> Check {
    if world.sides.count() == 0 {
        return Ok(());
    }
    let (healed, within) = (world.now, world.hosts[0].settings.timing.election_timeout().times(2).0);
    let came = world.run_until_true(healed + within, |world| {
        world.sides.acknowledged.last().is_some_and(|(at, _)| *at > healed)
    })?;
    ensure(came, "I10 writes resume", || states(world))
}

pub fn nothing_is_lost(world: &mut World) -> Check {
    for node in 0..world.hosts.len() {
        let host = &world.hosts[node];
        let id = host.id;
        let meta: SnapshotMeta = match host.core() {
            Some(core) => core.log().meta_at(host.applied()),
            None => continue,
        };
        world.looks_right(node, world.side(node), &meta)?;
        kept::all(&world.checks.history, id, &world.side(node).known)?;
        let (side, first) = (world.side(node), world.side(0));
        let lost = merged::losers(&world.checks.history, side);
        ensure(lost.is_subset(&side.lost), "C23 nothing vanishes", || format!("{id}: {lost:?}"))?;
        ensure(side.store == first.store, "I5 all nodes agree in the end", || {
            format!("{id} and {} differ beyond their digests", world.hosts[0].id)
        })?;
    }
    Ok(())
}
