//! A stage for available mode: a formed, calm cluster, and the functions that its scenarios are written in.

use eldest::protocol::{Mode, Settings};
use eldest::store::{DocCondition, Key};
use eldest::types::NodeId;

use super::clients::{Sides, Wish, delete, one, put};
use super::end::{ends_well, is_one_side};
use super::plan;
use crate::checks::{Check, Violation, ensure, merged};
use crate::client::Clients;
use crate::host::{Clock, Host};
use crate::plan::members;
use crate::rng::Rng;
use crate::stage::{MS, leads, link};
use crate::world::World;

/// A formed cluster that n1 leads, calm, with no clients but the scenario.
pub fn stage(count: u32, seed: u64) -> Result<World, Violation> {
    let mut world = unformed(count, seed);
    for node in (0..count as usize).rev() {
        world.start(node)?;
    }
    let one = world.run_until_true(10_000 * MS, |world| is_one_side(world) && leads(world, 1))?;
    ensure(one, "stage", || "n1 does not lead all".into())?;
    run(&mut world, 500)?;
    Ok(world)
}

/// Blank machines, none of them started.
pub fn unformed(count: u32, seed: u64) -> World {
    let mut rng = Rng::new(seed);
    let machine = |me: NodeId, rng: &mut Rng| {
        let mut settings = Settings::lan(me, members(count));
        settings.mode = Mode::Available;
        settings.limits.keep = 5;
        let clock = Clock { offset: 1_000 * MS * u64::from(me.0), rate_ppm: 0, wall_offset: 0 };
        plan::host(settings, rng.next(), clock)
    };
    let hosts: Vec<Host> = members(count).into_iter().map(|me| machine(me, &mut rng)).collect();
    let mut world = World::new(hosts, Clients::new(0, 1, rng.fork()), rng.fork());
    world.sides = Sides::new(0, rng.fork());
    world.checks.lease.void = true;
    world
}

pub fn run(world: &mut World, ms: u64) -> Check {
    world.run_until(world.now + ms * MS)
}

/// These groups do not hear each other; within each all links pass.
pub fn split(world: &mut World, groups: &[&[u32]]) {
    let group = |node: u32| groups.iter().position(|group| group.contains(&node));
    let nodes: Vec<u32> = world.hosts.iter().map(|host| host.id.0).collect();
    for a in &nodes {
        for b in nodes.iter().filter(|b| *b > a) {
            link(world, *a, *b, group(*a) == group(*b));
        }
    }
}

/// Runs until each of these nodes leads its own side, and the members of the side follow it.
pub fn led(world: &mut World, sides: &[(u32, &[u32])]) -> Check {
    let leads_them = |world: &World| {
        let follows = |node: &u32, leader: u32| {
            let core = world.host(NodeId(*node)).core();
            core.is_some_and(|core| core.leader() == Some(NodeId(leader)))
        };
        sides
            .iter()
            .all(|(leader, side)| leads(world, *leader) && side.iter().all(|node| follows(node, *leader)))
    };
    let came = world.run_until_true(world.now + 16_000 * MS, leads_them)?;
    ensure(came, "stage", || format!("not led as {sides:?}: {}", crate::run::states(world)))?;
    run(world, 100)
}

/// Sends a command through this node, which must acknowledge it.
pub fn ask(world: &mut World, node: u32, wish: Wish) -> Check {
    let before = world.sides.acknowledged.len();
    world.wish(NodeId(node), wish);
    let until = world.now + 5_000 * MS;
    let done = world.run_until_true(until, |world| world.sides.acknowledged.len() > before)?;
    ensure(done, "stage", || format!("n{node} does not take it: {}", crate::run::states(world)))
}

pub fn set(world: &mut World, node: u32, key: &str, value: &str) -> Check {
    ask(world, node, one(put(key.into(), value.into(), DocCondition::None)))
}

/// Replaces the document if it still is what the node has.
pub fn replace(world: &mut World, node: u32, key: &str, value: &str) -> Check {
    ask(world, node, Wish::Replace { key: key.into(), value: value.into() })
}

pub fn remove(world: &mut World, node: u32, key: &str) -> Check {
    ask(world, node, one(delete(key)))
}

pub fn get(world: &World, node: u32, key: &str) -> Option<String> {
    let store = &world.side(world.slot(NodeId(node))).store;
    store.doc(key).map(|doc| doc.value.to_string())
}

pub fn has(world: &World, key: &str, wanted: Option<&str>) -> Check {
    let found = get(world, 1, key);
    ensure(found.as_deref() == wanted, "C21 the right value wins", || {
        format!("{key} is {found:?}, not {wanted:?}")
    })
}

/// The number of values in the journal of the first node.
pub fn conflicts(world: &World) -> usize {
    merged::journaled(world.side(0)).len()
}

pub fn counts(world: &World, conflicts_wanted: usize) -> Check {
    let found = conflicts(world);
    ensure(found == conflicts_wanted, "C23 the journal tells each loss once", || {
        format!("{found} conflicts, not {conflicts_wanted}")
    })
}

/// All links pass again: one side, one state, nothing lost.
pub fn heal(world: &mut World) -> Check {
    world.net.heal();
    ends_well(world).map(|_| ())
}

/// The data that clients can see of a state, regardless of its positions.
pub fn data(world: &World) -> Vec<(Key, String)> {
    let data = |key: &Key| matches!(key, Key::Doc(_) | Key::Election(_) | Key::User(_) | Key::Vote(_));
    world.side(0).store.entries().filter(|(key, _)| data(key)).collect()
}
