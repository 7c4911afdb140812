//! A stage for scenarios: a formed, calm cluster, and a few functions to direct it with.

use eldest::protocol::{Node, Settings};
use eldest::types::NodeId;

use crate::checks::{Check, Violation, ensure};
use crate::client::Clients;
use crate::commands::{Ask, Command};
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::linear;
use crate::plan::members;
use crate::rng::Rng;
use crate::world::World;

pub const MS: u64 = 1_000;

/// A formed cluster that n1 leads, calm, with clients that ask only when told to.
pub fn stage(count: u32, seed: u64, adjust: impl Fn(&mut Settings)) -> Result<World, Violation> {
    let mut world = started(count, seed, adjust)?;
    let led = world.run_until_true(2_000 * MS, |world| leads(world, 1))?;
    ensure(led, "stage", || "n1 does not lead".into())?;
    world.run_until(world.now + 500 * MS)?;
    Ok(world)
}

/// Blank nodes, all started at once, the youngest first.
pub fn started(count: u32, seed: u64, adjust: impl Fn(&mut Settings)) -> Result<World, Violation> {
    let mut world = unstarted(count, seed, adjust);
    for node in (0..count as usize).rev() {
        world.start(node)?;
    }
    Ok(world)
}

/// Blank nodes, none of them started.
pub fn unstarted(count: u32, seed: u64, adjust: impl Fn(&mut Settings)) -> World {
    let mut rng = Rng::new(seed);
    let hosts = members(count).into_iter().map(|me| {
        let mut settings = Settings::lan(me, members(count));
        settings.limits.keep = 5;
        adjust(&mut settings);
        let clock = Clock { offset: 1_000_000 * u64::from(me.0), rate_ppm: 0, wall_offset: 0 };
        Host::new(settings, Disk::new(rng.next()), clock)
    });
    let hosts: Vec<Host> = hosts.collect();
    let mut clients = Clients::new(1_000, 1, rng.fork());
    clients.stopped = true;
    clients.reliable = true;
    World::new(hosts, clients, rng.fork())
}

pub fn core(world: &World, id: u32) -> Option<&Node> {
    world.host(NodeId(id)).core()
}

pub fn leads(world: &World, id: u32) -> bool {
    core(world, id).is_some_and(Node::is_open)
}

pub fn run(world: &mut World, ms: u64) -> Check {
    world.run_until(world.now + ms * MS)
}

pub fn link(world: &mut World, a: u32, b: u32, passes: bool) {
    for (from, to) in [(a, b), (b, a)] {
        match passes {
            true => world.net.mend(NodeId(from), NodeId(to)),
            false => world.net.cut(NodeId(from), NodeId(to)),
        }
    }
}

pub fn write(world: &mut World, node: u32, value: u64) {
    world.ask(NodeId(node), Ask::Command(Command::Write { key: 0, value }));
}

pub fn read(world: &mut World, node: u32) {
    world.ask(NodeId(node), Ask::Read { key: 0 });
}

pub fn linearizable(world: &mut World) -> Check {
    world.close_all();
    let verdict = linear::check(&world.clients.history);
    verdict.map_err(|verdict| Violation { checker: "I3 linearizable", what: verdict.to_string() })
}
