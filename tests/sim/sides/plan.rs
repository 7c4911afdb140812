//! The meaning of a seed in available mode, and what is done to the cluster and when.

use eldest::protocol::{Mode, ServiceChange, Settings, Takeover};
use eldest::replica::Call;
use eldest::types::{NodeId, Owner, Span};

use super::clients::{Event, Sides};
use crate::checks::Check;
use crate::client::Clients;
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::pace::Pace;
use crate::plan::{draw_no_secret, draw_readers, draw_rollout, members};
use crate::reconfigured::Rollout;
use crate::rng::Rng;
use crate::state::State;
use crate::world::{Doom, Event as Happens, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Kill,
    PowerCut,
    PowerCutAll,
    /// A node dies right before one of the next outputs.
    Doom,
    Pause,
    Isolate,
    Reject,
    /// Two or three groups that do not hear each other.
    Split,
    /// Another cut, on top of what is cut already.
    CutMore,
    OneWay,
    RandomGraph,
    /// Links that come and go faster than any node gives up.
    Flap,
    Heal,
    /// The cut is healed, and there is another one before the sides can have become one.
    HealAndCut,
    /// One link between two sides comes back.
    Bridge,
    Storm,
    SlowDisk,
    /// One of the next operations on its files fails.
    BadDisk,
    Wipe,
    WallJump,
    HandOver,
    ServiceDown,
}

const HARMS: [(Harm, u64); 22] = [
    (Harm::Kill, 10),
    (Harm::PowerCut, 8),
    (Harm::PowerCutAll, 3),
    (Harm::Doom, 10),
    (Harm::Pause, 8),
    (Harm::Isolate, 10),
    (Harm::Reject, 6),
    (Harm::Split, 16),
    (Harm::CutMore, 8),
    (Harm::OneWay, 10),
    (Harm::RandomGraph, 6),
    (Harm::Flap, 8),
    (Harm::Heal, 16),
    (Harm::HealAndCut, 10),
    (Harm::Bridge, 10),
    (Harm::Storm, 6),
    (Harm::SlowDisk, 4),
    (Harm::BadDisk, 6),
    (Harm::Wipe, 3),
    (Harm::WallJump, 3),
    (Harm::HandOver, 6),
    (Harm::ServiceDown, 2),
];

/// Each kind of harm, by its name among a world's features.
pub fn kinds_of_harm() -> impl Iterator<Item = String> {
    HARMS.iter().map(|(harm, _)| format!("{harm:?}"))
}

/// These are drawn separately, so that the seeds in which no client holds a role stay what they are.
const ROLES: u64 = 0x401E;

/// The same for the time that it takes to prepare what another side hands in.
const PREPARING: u64 = 0x9E49;

#[derive(Debug)]
pub struct Plan {
    pub steps: usize,
    between: (u64, u64),
    /// The factor by which machines are away, and links stay as they are, for longer than usual.
    pace: u64,
    wipes: u64,
    rng: Rng,
    /// A node that is killed comes back with another configuration.
    rollout: Option<Rollout>,
}

/// A blank node in available mode.
pub fn host(settings: Settings, seed: u64, clock: Clock) -> Host {
    Host::new(settings, Disk::of(seed, State::with_sides()), clock)
}

fn settings(rng: &mut Rng, count: u32) -> Settings {
    let mut settings = Settings::lan(NodeId(1), members(count));
    settings.mode = Mode::Available;
    settings.takeover = *rng.pick(&[Takeover::Never, Takeover::WhenStable]);
    settings.timing.stable_for = Span::millis(1_500);
    settings.timing.hold = Span::millis(1_000);
    settings.timing.hold_most = Span::millis(8_000);
    settings.limits.batch = *rng.pick(&[1, 8, 64]);
    settings.limits.inflight = *rng.pick(&[1, 8]);
    settings.limits.keep = *rng.pick(&[0, 5, 30, 1_000]);
    settings.limits.ready_lag = *rng.pick(&[10, 100]);
    settings
}

pub fn world(seed: u64) -> (World, Plan) {
    let mut rng = Rng::new(seed ^ 0xA7A1_1AB1E);
    let count = *rng.pick(&[3, 3, 3, 5]);
    let mut common = settings(&mut rng, count);
    let pace = Pace::of(seed);
    pace.apply(&mut common);
    let machine = |me: NodeId, rng: &mut Rng| {
        let clock = Clock {
            offset: rng.below(50_000_000),
            rate_ppm: rng.range(0, 19_000) as i64 - 9_500,
            wall_offset: rng.range(0, 2_000_000) as i64 - 1_000_000,
        };
        let mut host = host(Settings { me, ..common.clone() }, rng.next(), clock);
        host.sync_us = *rng.pick(&[100, 200, 1_000, 4_000]);
        host
    };
    let hosts: Vec<Host> = members(count).into_iter().map(|me| machine(me, &mut rng)).collect();
    let mut world = World::new(hosts, Clients::new(0, 1, rng.fork()), rng.fork());
    world.gathers = rng.chance(500);
    world.sides = Sides::new(rng.range(3, 6) as usize, rng.fork());
    world.sides.think = pace.slow(world.sides.think);
    pace.delay_messages(&mut world);
    // Every side has a leader.
    world.checks.lease.void = true;
    prepare(&mut world, &mut rng);
    let mut roles = Rng::new(seed ^ ROLES);
    // Holders do not slow down with the rest: that would only make these seeds long.
    if pace.factor == 1 && roles.chance(300) {
        world.draw_holders(roles);
    }
    crate::plan::draw_failing_snapshots(&mut world, seed);
    world.draw_tokens(seed);
    let mut preparing = Rng::new(seed ^ PREPARING);
    for host in &mut world.hosts {
        host.prepare_us.1 = *preparing.pick(&[1_000, 1_000, 200_000, 4_000_000 * pace.factor]);
    }
    let steps = rng.range(5, 20) as usize;
    let between = *rng.pick(&[(20_000, 400_000), (200_000, 1_600_000), (500_000, 3_000_000)]);
    let wipes = if rng.chance(250) { 1 } else { 0 };
    let between = pace.slow(between);
    let rollout = draw_rollout(&mut world, seed, &common);
    draw_no_secret(&mut world, seed);
    draw_readers(&mut world, seed);
    (world, Plan { steps, between, pace: pace.factor, wipes, rng, rollout })
}

fn prepare(world: &mut World, rng: &mut Rng) {
    for node in 0..world.hosts.len() {
        let late = if rng.chance(200) { rng.below(3_000_000) } else { rng.below(50_000) };
        world.at(late, Happens::Restart { node });
    }
    for client in 0..world.sides.count() {
        let start = rng.below(300_000);
        world.at(start, Happens::Side(Event::Wakes { client }));
    }
}

impl Plan {
    pub fn pause(&mut self) -> u64 {
        self.rng.range(self.between.0, self.between.1)
    }

    pub fn harm(&mut self, world: &mut World) -> Check {
        let harm = self.rng.weighted(&HARMS);
        world.note(|| format!("--- {harm:?}"));
        world.features.insert(format!("{harm:?}"));
        self.inflict(world, harm)
    }

    fn someone(&mut self, world: &World) -> usize {
        let leads = |node: &usize| world.hosts[*node].core().is_some_and(|core| core.is_open());
        let leaders: Vec<usize> = (0..world.hosts.len()).filter(leads).collect();
        match leaders.is_empty() || self.rng.chance(500) {
            true => self.rng.below(world.hosts.len() as u64) as usize,
            false => *self.rng.pick(&leaders),
        }
    }

    fn inflict(&mut self, world: &mut World, harm: Harm) -> Check {
        let node = self.someone(world);
        match harm {
            Harm::Kill => self.kill(world, node, false),
            Harm::PowerCut => self.kill(world, node, true),
            Harm::PowerCutAll => (0..world.hosts.len()).for_each(|node| self.kill(world, node, true)),
            Harm::Doom => self.doom(world, node),
            Harm::Pause => {
                world.hosts[node].paused_until = world.now + self.rng.skewed(10_000, 4_000_000 * self.pace)
            }
            Harm::Isolate => world.cut_off(node),
            Harm::Reject => world.reject(node),
            Harm::Split => {
                world.net.heal();
                self.cut_between(world, 2);
            }
            Harm::CutMore => self.cut_between(world, 2),
            Harm::OneWay => self.one_way(world, node),
            Harm::RandomGraph => self.random_graph(world),
            Harm::Flap => return self.flap(world),
            Harm::Heal => world.net.heal(),
            Harm::HealAndCut => return self.heal_and_cut(world),
            Harm::Bridge => self.bridge(world),
            Harm::Storm => {
                world.net.loss = self.rng.below(200);
                world.net.repeat = self.rng.below(200);
                world.net.straggle = self.rng.below(80);
            }
            Harm::SlowDisk => world.hosts[node].sync_us = self.rng.skewed(200, 300_000),
            Harm::BadDisk => world.hosts[node].disk.turns_bad(&mut self.rng),
            Harm::Wipe => self.wipe(world, node),
            Harm::WallJump => {
                world.hosts[node].clock.jump(self.rng.below(7_200_000_000));
            }
            Harm::HandOver => {
                let to =
                    self.rng.chance(700).then(|| NodeId(self.rng.range(1, world.hosts.len() as u64) as u32));
                return world.hand_over(node, to);
            }
            Harm::ServiceDown => return self.service_down(world, node),
        }
        Ok(())
    }

    fn kill(&mut self, world: &mut World, node: usize, power: bool) {
        world.crash(node, power);
        if let Some(rollout) = &mut self.rollout {
            rollout.again(&mut world.hosts[node].settings);
        }
        let back = self.rng.skewed(1_000, 3_500_000 * self.pace);
        world.after(back, Happens::Restart { node });
    }

    fn doom(&mut self, world: &mut World, node: usize) {
        let output = world.outputs + self.rng.skewed(0, 400);
        let back = self.rng.skewed(1_000, 2_500_000);
        world.doom = Some(Doom { output, node, power: self.rng.chance(500), back });
    }

    fn wipe(&mut self, world: &mut World, node: usize) {
        if self.wipes > 0 {
            self.wipes -= 1;
            world.wipe(node);
            let back = self.rng.skewed(1_000, 3_500_000);
            world.after(back, Happens::Restart { node });
        }
    }

    fn cut_between(&mut self, world: &mut World, groups: u64) {
        let groups = groups + u64::from(self.rng.chance(300));
        let sides: Vec<(NodeId, u64)> =
            world.hosts.iter().map(|host| (host.id, self.rng.below(groups))).collect();
        for (a, here) in &sides {
            for (b, _) in sides.iter().filter(|(_, there)| there != here) {
                world.net.cut(*a, *b);
            }
        }
    }

    fn one_way(&mut self, world: &mut World, node: usize) {
        let id = world.hosts[node].id;
        let inwards = self.rng.chance(500);
        for other in world.others(id) {
            if self.rng.chance(600) {
                let (from, to) = if inwards { (other, id) } else { (id, other) };
                world.net.cut(from, to);
            }
        }
    }

    fn random_graph(&mut self, world: &mut World) {
        let ids: Vec<NodeId> = world.hosts.iter().map(|host| host.id).collect();
        for a in &ids {
            for b in ids.iter().filter(|b| *b != a) {
                match self.rng.chance(400) {
                    true => world.net.cut(*a, *b),
                    false => world.net.mend(*a, *b),
                }
            }
        }
    }

    fn some_link(&mut self, world: &World) -> (NodeId, NodeId) {
        let a = self.rng.below(world.hosts.len() as u64) as usize;
        let b = (a + self.rng.range(1, world.hosts.len() as u64 - 1) as usize) % world.hosts.len();
        (world.hosts[a].id, world.hosts[b].id)
    }

    fn flap(&mut self, world: &mut World) -> Check {
        for _ in 0..self.rng.range(2, 10) {
            let (a, b) = self.some_link(world);
            match world.net.passes(a, b) {
                true => world.net.cut(a, b),
                false => world.net.mend(a, b),
            }
            if self.rng.chance(700) {
                world.net.mend(b, a);
            }
            let pause = self.rng.range(5_000, 700_000) * self.pace;
            world.run_until(world.now + pause)?;
        }
        Ok(())
    }

    fn heal_and_cut(&mut self, world: &mut World) -> Check {
        for _ in 0..self.rng.range(1, 5) {
            world.net.heal();
            let pause = self.rng.range(5_000, 1_500_000) * self.pace;
            world.run_until(world.now + pause)?;
            self.cut_between(world, 2);
            let pause = self.rng.range(5_000, 1_500_000) * self.pace;
            world.run_until(world.now + pause)?;
        }
        Ok(())
    }

    fn bridge(&mut self, world: &mut World) {
        let (a, b) = self.some_link(world);
        world.net.mend(a, b);
        world.net.mend(b, a);
    }

    fn service_down(&mut self, world: &mut World, node: usize) -> Check {
        let ttl = Span::millis(self.rng.range(100, 1_500));
        let change = ServiceChange::Down { owner: Owner::Operator, ttl, reason: "".into() };
        world.order(node, Call::Service(change))
    }

    /// The faults end: every machine runs, every link passes.
    pub fn mend_all(&mut self, world: &mut World) -> Check {
        world.net.heal();
        world.net.late = 0;
        world.doom = None;
        self.rollout.iter().for_each(|rollout| rollout.ends(world));
        for node in 0..world.hosts.len() {
            world.thaw(node);
            world.finish_work(node);
            world.hosts[node].sync_us = 200;
            world.hosts[node].prepare_us = (100, 1_000);
            world.hosts[node].disk.mend();
            world.start(node)?;
        }
        Ok(())
    }
}
