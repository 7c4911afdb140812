//! A stage for scenarios: a calm cluster that n1 leads, and contenders that a scenario directs.

use eldest::protocol::Settings;
use eldest::types::{NodeId, Span, Text};

use super::contenders::{Contender, Lessees, Wants};
use super::plan::process;
use super::{Asked, Event, Told, Wish};
use crate::checks::{Check, Violation, ensure};
use crate::client::Clients;
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::plan::members;
use crate::rng::Rng;
use crate::run::states;
use crate::stage::{MS, leads};
use crate::world::{Event as Happens, World};

const STEADY: Clock = Clock { offset: 5_000_000, rate_ppm: 0, wall_offset: 0 };

/// Three nodes, and this many contenders for the role `r`.
pub fn stage(seed: u64, contenders: usize, ttl_ms: u64) -> Result<World, Violation> {
    stage_as(seed, contenders, ttl_ms, |_| {})
}

pub fn stage_as(
    seed: u64,
    contenders: usize,
    ttl_ms: u64,
    adjust: impl Fn(&mut Settings),
) -> Result<World, Violation> {
    let mut rng = Rng::new(seed);
    let hosts = members(3).into_iter().map(|me| {
        let mut settings = Settings::lan(me, members(3));
        adjust(&mut settings);
        let clock = Clock { offset: 1_000_000 * u64::from(me.0), rate_ppm: 0, wall_offset: 0 };
        Host::new(settings, Disk::new(rng.next()), clock)
    });
    let hosts: Vec<Host> = hosts.collect();
    let mut world = World::new(hosts, Clients::new(0, 1, rng.fork()), rng.fork());
    let role = Wants::Role("r".into());
    let contender = |number| {
        let new = Contender::new(role.clone(), number, Span::millis(ttl_ms), STEADY);
        Contender { idle: true, ..new }
    };
    world.lessees = Some(Lessees::new((0..contenders).map(contender).collect(), rng.fork()));
    for node in (0..3).rev() {
        world.start(node)?;
    }
    let led = world.run_until_true(2_000 * MS, |world| leads(world, 1))?;
    ensure(led, "stage", || "n1 does not lead".into())?;
    world.at(0, Happens::Lease(Event::Audit));
    run(&mut world, 500)?;
    Ok(world)
}

pub fn run(world: &mut World, ms: u64) -> Check {
    world.run_until(world.now + ms * MS)
}

/// The contender wants another role; it has not asked for any yet.
pub fn wants(world: &mut World, who: usize, role: &str) {
    world.contender(who).wants = Wants::Role(role.into());
}

fn role_of(world: &mut World, who: usize) -> Text {
    match &world.contender(who).wants {
        Wants::Role(role) => role.clone(),
        Wants::Process(_) => unreachable!("on this stage all want roles"),
    }
}

/// Registers a process that is never renewed.
pub fn register(world: &mut World, id: String, ttl_ms: u64) {
    let wish = Wish::Register { id: id.into(), process: process(Span::millis(ttl_ms)).into(), call: None };
    world.asks(0, 0, wish, 60_000 * MS);
}

/// The contender asks this node for its role. Returns the id of the call.
pub fn acquire(world: &mut World, who: usize, node: u32, wait_ms: u64) -> u64 {
    let role = role_of(world, who);
    let wish = world.acquisition(who, role, Span::millis(wait_ms), 0, false);
    world.asks(who, node as usize - 1, wish, 60_000 * MS)
}

pub fn renew(world: &mut World, who: usize, node: u32) -> u64 {
    let role = role_of(world, who);
    let contender = world.contender(who);
    let (instance, token) = (contender.instance.clone(), contender.token.unwrap_or_default());
    let wish = Wish::Renew { role, instance, token, ttl: None, tie: None };
    world.asks(who, node as usize - 1, wish, 60_000 * MS)
}

/// The contender renews at this node, and names a connection.
pub fn renew_tied(world: &mut World, who: usize, node: u32, tie: u64) -> u64 {
    let role = role_of(world, who);
    let contender = world.contender(who);
    let (instance, token) = (contender.instance.clone(), contender.token.unwrap_or_default());
    let wish = Wish::Renew { role, instance, token, ttl: None, tie: Some(tie) };
    world.asks(who, node as usize - 1, wish, 60_000 * MS)
}

/// This node reports that the connection of this number has closed, for the holder of the role.
pub fn untie(world: &mut World, who: usize, node: u32, tie: u64) -> Check {
    let role = role_of(world, who);
    let held = world.witness().store.role(&role).map(|held| (held.claim.instance.clone(), held.token));
    let (instance, token) = held.unwrap_or_default();
    world.checks.early.unties(token, tie);
    let wish = Wish::Untie { role, instance, token, tie };
    let asked = Asked { id: 1_000_000 + tie, who, sent: world.now, wish, secret: None, via: None };
    world.lease_event(Event::Call { node: node as usize - 1, asked })
}

pub fn release(world: &mut World, who: usize, node: u32) -> u64 {
    let role = role_of(world, who);
    let contender = world.contender(who);
    let (instance, token) = (contender.instance.clone(), contender.token.unwrap_or_default());
    contender.forget();
    world.checks.believers.forget(who);
    let wish = Wish::Release { role, instance, token };
    world.asks(who, node as usize - 1, wish, 60_000 * MS)
}

/// The node learns now that this caller has hung up.
pub fn hang_up(world: &mut World, id: u64) -> Check {
    world.lessees_mut().hung_up.insert(id);
    world.lease_event(Event::Gone { id })
}

pub fn told(world: &World, id: u64) -> Option<Told> {
    let lessees = world.lessees.as_ref()?;
    lessees.heard.iter().find(|(call, _)| *call == id).map(|(_, told)| *told)
}

/// The contender asks for the role, and believes.
pub fn gets(world: &mut World, who: usize, node: u32) -> Check {
    let id = acquire(world, who, node, 0);
    let until = world.now + 1_000 * MS;
    world.run_until_true(until, |world| told(world, id).is_some())?;
    let now = world.now;
    let believes = world.contender(who).believes(now);
    ensure(believes, "stage", || format!("contender {who} does not get it: {}", states(world)))
}

/// Messages to n1 take this long; those from n1 do not.
pub fn slow_answers(world: &mut World, ms: u64) {
    for follower in [2, 3] {
        match ms {
            0 => world.net.slow.remove(&(NodeId(follower), NodeId(1))),
            ms => world.net.slow.insert((NodeId(follower), NodeId(1)), ms * MS),
        };
    }
}

pub fn hand_over(world: &mut World, to: u32) -> Check {
    let from = world.hosts.iter().position(|host| host.core().is_some_and(|core| core.is_open()));
    world.hand_over(from.unwrap_or_default(), Some(NodeId(to)))?;
    let until = world.now + 3_000 * MS;
    let led = world.run_until_true(until, |world| leads(world, to))?;
    ensure(led, "stage", || format!("n{to} does not lead: {}", states(world)))
}
