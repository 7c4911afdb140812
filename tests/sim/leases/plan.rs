//! The meaning of a seed: a cluster as in `crate::plan`, with the same harm done to it, and the contenders
//! that want something of it.

use eldest::protocol::Settings;
use eldest::store::NewProcess;
use eldest::types::{FORMAT, Format, Span};

use super::Event;
use super::contenders::{Contender, Lessees, Wants};
use super::documents::Writers;
use super::thieves::keep_secrets;
use super::ties::Ties;
use crate::client::Clients;
use crate::host::{Clock, Host};
use crate::membership;
use crate::pace::Pace;
use crate::plan::{self, Plan, members};
use crate::restores::Operator;
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

const HOLDERS: usize = 20;
const PROCESSES: usize = 4;

/// A holder takes off a hundredth of what it was promised, so the rates of any two clocks differ by no more
/// than that.
const RATE_MOST: i64 = 4_950;

/// These are drawn separately, so that the seeds in which no client restores, ties or writes anything stay
/// what they are.
const RESTORES: u64 = 0x4E57;
const TIES: u64 = 0x71E5;
const DOCUMENTS: u64 = 0xD0C5;
const VARIED: u64 = 0x7A41;

pub fn world(seed: u64) -> (World, Plan) {
    let mut rng = Rng::new(seed);
    let count = *rng.pick(&[3, 3, 3, 5]);
    let mut common = plan::settings(&mut rng, count);
    let mut documents = Rng::new(seed ^ DOCUMENTS);
    let writers = documents.chance(500).then(|| Writers::new(documents));
    if let Some(most) = writers.as_ref().and_then(|writers| writers.most) {
        common.limits.state_bytes = most;
    }
    let hosts = members(count).into_iter().map(|me| {
        let settings = Settings { me, format: FORMAT, ..common.clone() };
        let mut host = plan::host(&mut rng, settings);
        host.clock.rate_ppm = rate(&mut rng);
        host
    });
    let mut hosts: Vec<Host> = hosts.collect();
    let mut varied = Rng::new(seed ^ VARIED);
    let changes_members = varied.chance(200);
    if changes_members {
        hosts.extend(membership::spares(&mut varied, &common));
        hosts[common.members.len()..].iter_mut().for_each(|host| host.clock.rate_ppm = rate(&mut varied));
    } else if varied.chance(200) {
        // A node that was removed, while the others began to write what it cannot read, stops when it is
        // added again (P23).
        hosts
            .iter_mut()
            .for_each(|host| host.settings.format = Format(varied.range(1, FORMAT.0.into()) as u16));
    }
    let clients = Clients::new(0, 1, rng.fork());
    let steps = rng.range(8, 24) as usize;
    let between = *rng.pick(&[(20_000, 700_000), (100_000, 1_500_000), (400_000, 2_500_000)]);
    let mut world = World::new(hosts, clients, rng.fork());
    world.gathers = rng.chance(500);
    Pace::of(seed).delay_messages(&mut world);
    plan::prepare(&mut world, &mut rng);
    let mut lessees = Lessees::new(everybody(&mut rng), rng.fork());
    lessees.loses_answers = *rng.pick(&[0, 5, 50]);
    if varied.chance(500) {
        keep_secrets(&mut lessees.all, &mut varied);
        lessees.thieves = Some(varied.fork());
    }
    let mut ties = Rng::new(seed ^ TIES);
    lessees.ties = ties.chance(500).then(|| Ties::new(ties, &mut lessees.all));
    if writers.is_some() {
        world.at(500_000, Happens::Lease(Event::Writes));
    }
    lessees.writers = writers;
    world.lessees = Some(lessees);
    plan::draw_failing_snapshots(&mut world, seed);
    let mut restores = Rng::new(seed ^ RESTORES);
    world.operator = restores.chance(300).then(|| Operator::new(restores));
    for who in 0..HOLDERS + PROCESSES {
        let begins = rng.below(1_000_000);
        world.wakes_after(who, begins);
    }
    world.at(0, Happens::Lease(Event::Audit));
    if !changes_members {
        world.draw_doubles(seed);
    }
    let mut plan = Plan::new(steps, between, rng);
    plan.changes_members = changes_members;
    let plan = plan.drawn_apart(&mut world, seed, &common);
    (world, plan)
}

fn rate(rng: &mut Rng) -> i64 {
    let any = rng.range(0, 2 * RATE_MOST as u64) as i64 - RATE_MOST;
    *rng.pick(&[-RATE_MOST, RATE_MOST, 0, any])
}

fn everybody(rng: &mut Rng) -> Vec<Contender> {
    let roles = rng.range(2, 6);
    let contender = |number: usize, rng: &mut Rng| {
        let ttl = Span::millis(*rng.pick(&[1_000, 1_500, 2_000, 3_000]));
        let clock = Clock { offset: rng.below(50_000_000), rate_ppm: rate(rng), wall_offset: 0 };
        let wants = match number < HOLDERS {
            true => Wants::Role(format!("r{}", rng.below(roles)).into()),
            false => Wants::Process(process(ttl)),
        };
        Contender::new(wants, number, ttl, clock)
    };
    (0..HOLDERS + PROCESSES).map(|number| contender(number, rng)).collect()
}

pub fn process(ttl: Span) -> NewProcess {
    NewProcess {
        identifier: "worker".into(),
        role: None,
        capabilities: None,
        metadata: None,
        ttl,
        secret: None,
    }
}
