//! The meaning of a seed: how large the cluster is, how it is set up, and what is done to it and when.

use std::collections::BTreeSet;

use eldest::protocol::{Ack, ServiceChange, Settings, Takeover};
use eldest::replica::Call;
use eldest::types::{Entry, FORMAT, Format, NodeId, Owner, Record, Span};

use crate::checks::Check;
use crate::client::Clients;
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::membership;
use crate::pace::Pace;
use crate::readers::Readers;
use crate::reconfigured::Rollout;
use crate::rng::Rng;
use crate::world::{Event, World};

/// One thing done to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Kill,
    PowerCut,
    PowerCutAll,
    Pause,
    Isolate,
    Reject,
    Split,
    OneWay,
    Flap,
    RandomGraph,
    Heal,
    Storm,
    SlowDisk,
    /// One of the next operations on its files fails.
    BadDisk,
    FullDisk,
    RoomAgain,
    Wipe,
    Damage,
    WallJump,
    HandOver,
    ServiceDown,
    Upgrade,
}

const HARMS: [(Harm, u64); 22] = [
    (Harm::Kill, 14),
    (Harm::PowerCut, 10),
    (Harm::PowerCutAll, 3),
    (Harm::Pause, 10),
    (Harm::Isolate, 10),
    (Harm::Reject, 10),
    (Harm::Split, 8),
    (Harm::OneWay, 12),
    (Harm::Flap, 8),
    (Harm::RandomGraph, 5),
    (Harm::Heal, 16),
    (Harm::Storm, 8),
    (Harm::SlowDisk, 5),
    (Harm::BadDisk, 6),
    (Harm::FullDisk, 3),
    (Harm::RoomAgain, 4),
    (Harm::Wipe, 8),
    (Harm::Damage, 8),
    (Harm::WallJump, 4),
    (Harm::HandOver, 12),
    (Harm::ServiceDown, 2),
    (Harm::Upgrade, 3),
];

/// Each kind of harm, by its name among a world's features.
pub fn kinds_of_harm() -> impl Iterator<Item = String> {
    HARMS.iter().map(|(harm, _)| format!("{harm:?}"))
}

const RESTORES: u64 = 0x4E57;
const READERS: u64 = 0x4EAD;
const SNAPSHOTS: u64 = 0x5A4B;
const MEMBERS: u64 = 0x3E3B;
const TIMINGS: u64 = 0x71E5;
const ROLLOUT: u64 = 0x4011;
const NO_SECRET: u64 = 0x5EC4;
const VOTES: u64 = 0x507E;
const LOOKS: u64 = 0x100C;
const FLAWS: u64 = 0xF1A3;

const READERS_COUNT: usize = 2;

/// Everything random about a seed that is decided before it runs.
#[derive(Debug)]
pub struct Plan {
    pub steps: usize,
    pub between: (u64, u64),
    /// The factor by which machines are away for longer than usual.
    pub pace: u64,
    rng: Rng,
    /// Disks that have forgotten something and have not been let in again.
    lost: BTreeSet<NodeId>,
    /// Nodes are added, removed and moved.
    pub changes_members: bool,
    /// A node that is killed comes back with leases of another length.
    timings: Option<Rng>,
    /// A node that is killed comes back with another configuration.
    rollout: Option<Rollout>,
    /// Promise files go bad.
    flaws: Option<Rng>,
}

pub fn members(count: u32) -> Vec<NodeId> {
    (1..=count).map(NodeId).collect()
}

pub fn settings(rng: &mut Rng, count: u32) -> Settings {
    let mut settings = Settings::lan(NodeId(1), members(count));
    settings.takeover = *rng.pick(&[Takeover::Never, Takeover::WhenStable]);
    settings.ack = if rng.chance(150) { Ack::All } else { Ack::Majority };
    settings.timing.stable_for = Span::millis(1_500);
    settings.timing.hold = Span::millis(1_000);
    settings.timing.hold_most = Span::millis(8_000);
    settings.limits.batch = *rng.pick(&[1, 2, 8, 64]);
    settings.limits.inflight = *rng.pick(&[1, 2, 8]);
    settings.limits.keep = *rng.pick(&[0, 5, 30, 1_000]);
    settings.limits.ready_lag = *rng.pick(&[2, 10, 100]);
    settings.format = FORMAT;
    settings
}

pub fn world(seed: u64) -> (World, Plan) {
    let mut rng = Rng::new(seed);
    let count = *rng.pick(&[3, 3, 3, 3, 5, 5, 7]);
    let mut common = settings(&mut rng, count);
    let pace = Pace::of(seed);
    pace.apply(&mut common);
    let mixed_formats = rng.chance(200);
    let mut joining = Rng::new(seed ^ MEMBERS);
    let changes_members = joining.chance(200);
    let hosts = members(count).into_iter().map(|me| {
        let mut settings = Settings { me, ..common.clone() };
        // A node that was removed, while the others began to write what it cannot read, stops when it is
        // added again (P23).
        if mixed_formats && rng.chance(500) && !changes_members {
            settings.format = Format(1);
        }
        host(&mut rng, settings)
    });
    let mut hosts: Vec<Host> = hosts.collect();
    hosts.extend(changes_members.then(|| membership::spares(&mut joining, &common)).into_iter().flatten());
    let keys = rng.range(1, 4);
    let clients = Clients::new(rng.range(3, 6) as usize, keys, rng.fork());
    let steps = rng.range(6, 26) as usize;
    let between = *rng.pick(&[(20_000, 400_000), (100_000, 900_000), (1_000, 60_000)]);
    let mut world = World::new(hosts, clients, rng.fork());
    world.gathers = rng.chance(500);
    world.clients.think = pace.slow(world.clients.think);
    pace.delay_messages(&mut world);
    prepare(&mut world, &mut rng);
    draw_failing_snapshots(&mut world, seed);
    draw_readers(&mut world, seed);
    world.draw_tokens(seed);
    if !changes_members {
        world.draw_doubles(seed);
    }
    world.clients.restores = Rng::new(seed ^ RESTORES).chance(250);
    let between = pace.slow(between);
    world.clients.votes = Rng::new(seed ^ VOTES).chance(250);
    world.clients.looks = Rng::new(seed ^ LOOKS).chance(250);
    let plan = Plan { pace: pace.factor, changes_members, ..Plan::new(steps, between, rng) };
    let plan = plan.drawn_apart(&mut world, seed, &common);
    (world, plan)
}

pub fn host(rng: &mut Rng, settings: Settings) -> Host {
    // Each clock is within the drift bound of one percent, and no two are in step.
    let clock = Clock {
        offset: rng.below(50_000_000),
        rate_ppm: rng.range(0, 19_000) as i64 - 9_500,
        wall_offset: rng.range(0, 2_000_000) as i64 - 1_000_000,
    };
    let mut host = Host::new(settings, Disk::new(rng.next()), clock);
    host.sync_us = *rng.pick(&[100, 200, 1_000, 4_000]);
    host
}

pub fn prepare(world: &mut World, rng: &mut Rng) {
    for node in 0..world.hosts.len() {
        let late = if rng.chance(100) { rng.below(1_500_000) } else { rng.below(50_000) };
        world.at(late, Event::Restart { node });
    }
    for client in 0..world.clients.count() {
        let start = rng.below(300_000);
        world.at(start, Event::ClientWakes { client });
    }
}

/// In some seeds snapshots fail, on every machine.
pub fn draw_failing_snapshots(world: &mut World, seed: u64) {
    let mut rng = Rng::new(seed ^ SNAPSHOTS);
    if rng.chance(200) {
        world.hosts.iter_mut().for_each(|host| host.disk.failing = Some(rng.fork()));
    }
}

/// In some seeds the nodes are configured to leases of different lengths.
fn draw_timings(world: &mut World, seed: u64) -> Option<Rng> {
    let mut rng = Rng::new(seed ^ TIMINGS);
    if !rng.chance(300) {
        return None;
    }
    world.features.insert("leases differ".to_string());
    world.hosts.iter_mut().for_each(|host| draw_lease(host, &mut rng));
    Some(rng)
}

/// In some seeds an operator rolls out another configuration.
pub fn draw_rollout(world: &mut World, seed: u64, common: &Settings) -> Option<Rollout> {
    let mut rng = Rng::new(seed ^ ROLLOUT);
    if !rng.chance(250) {
        return None;
    }
    let rollout = Rollout::new(rng, common);
    let what = if rollout.changes_timings() { "timings change" } else { "settings change" };
    world.features.insert(what.to_string());
    Some(rollout)
}

/// In some seeds the cluster has no secret, so nodes do not prove who they are.
pub fn draw_no_secret(world: &mut World, seed: u64) {
    if Rng::new(seed ^ NO_SECRET).chance(250) {
        world.hosts.iter_mut().for_each(|host| host.settings.peers_prove = false);
    }
}

fn draw_lease(host: &mut Host, rng: &mut Rng) {
    let timing = &mut host.settings.timing;
    timing.lease = Span(timing.dead_after.0 / *rng.pick(&[1, 2, 5, 25]));
}

/// In some seeds there are readers of the feed.
pub fn draw_readers(world: &mut World, seed: u64) {
    let mut rng = Rng::new(seed ^ READERS);
    if rng.chance(300) {
        world.readers = Some(Readers::new(READERS_COUNT, rng));
        (0..READERS_COUNT).for_each(|reader| world.at(0, Event::ReaderWakes { reader }));
    }
}

/// Whether its disk votes again, by records that every leader has: other records may be lost.
fn is_let_in(world: &World, host: &Host) -> bool {
    let (survival, disk) = (&world.checks.survival, host.disk.durable.incarnation);
    let lets_in = |record: &Record| match &record.entry {
        Entry::Rejoin { node, incarnation } => (*node, *incarnation) == (host.id, disk),
        Entry::Lead { founding: Some(founding) } => founding.founders.get(&host.id) == Some(&disk),
        _ => false,
    };
    let votes = survival.newest(|record| match &record.entry {
        Entry::Members { members } => Some(members.iter().any(|member| member.id == host.id && member.votes)),
        _ => None,
    });
    host.disk.durable.vote.admitted && survival.any(lets_in) && votes.unwrap_or(true)
}

impl Plan {
    pub fn new(steps: usize, between: (u64, u64), rng: Rng) -> Plan {
        Plan {
            steps,
            between,
            pace: 1,
            rng,
            lost: BTreeSet::new(),
            changes_members: false,
            timings: None,
            rollout: None,
            flaws: None,
        }
    }

    /// Draws what else differs from seed to seed, no matter what the clients want.
    pub fn drawn_apart(self, world: &mut World, seed: u64, common: &Settings) -> Plan {
        let timings = draw_timings(world, seed);
        let rollout = draw_rollout(world, seed, common);
        draw_no_secret(world, seed);
        let mut flaws = Rng::new(seed ^ FLAWS);
        Plan { timings, rollout, flaws: flaws.chance(300).then_some(flaws), ..self }
    }

    pub fn pause(&mut self) -> u64 {
        self.rng.range(self.between.0, self.between.1)
    }

    /// Does one harmful thing.
    pub fn harm(&mut self, world: &mut World) -> Check {
        if self.changes_members && self.rng.chance(300) {
            let node = self.someone(world);
            world.features.insert("members change".to_string());
            return membership::change(world, &mut self.rng, node);
        }
        if self.flaws.as_mut().is_some_and(|flaws| flaws.chance(150)) {
            self.spoil_promise(world);
            return Ok(());
        }
        if self.flaws.as_mut().is_some_and(|flaws| flaws.chance(80)) {
            self.flip_a_bit(world);
        }
        let harm = self.rng.weighted(&HARMS);
        world.note(|| format!("--- {harm:?}"));
        world.features.insert(format!("{harm:?}"));
        self.inflict(world, harm)
    }

    fn someone(&mut self, world: &World) -> usize {
        // Harm to the leader hurts most.
        let leader = world.hosts.iter().position(|host| host.core().is_some_and(|core| core.is_open()));
        match leader {
            Some(leader) if self.rng.chance(450) => leader,
            _ => self.rng.below(world.hosts.len() as u64) as usize,
        }
    }

    fn inflict(&mut self, world: &mut World, harm: Harm) -> Check {
        let node = self.someone(world);
        match harm {
            Harm::Kill => self.kill(world, node, false),
            Harm::PowerCut => self.kill(world, node, true),
            Harm::PowerCutAll => (0..world.hosts.len()).for_each(|node| self.kill(world, node, true)),
            Harm::Pause => {
                let until = world.now + self.rng.skewed(10_000, 3_000_000 * self.pace);
                world.hosts[node].paused_until = until;
            }
            Harm::Isolate => world.cut_off(node),
            Harm::Reject => world.reject(node),
            Harm::Split => self.split(world),
            Harm::OneWay => self.one_way(world, node),
            Harm::Flap => self.flap(world, node),
            Harm::RandomGraph => self.random_graph(world),
            Harm::Heal => world.net.heal(),
            Harm::Storm => {
                world.net.loss = self.rng.below(200);
                world.net.repeat = self.rng.below(200);
                world.net.straggle = self.rng.below(80);
            }
            Harm::SlowDisk => world.hosts[node].sync_us = self.rng.skewed(200, 300_000),
            Harm::BadDisk => world.hosts[node].disk.turns_bad(&mut self.rng),
            Harm::FullDisk => fill_up(world, node, &mut self.rng),
            Harm::RoomAgain => all_have_room(world),
            Harm::Wipe | Harm::Damage => self.forget(world, node, harm),
            Harm::WallJump => {
                world.hosts[node].clock.jump(self.rng.below(7_200_000_000));
            }
            Harm::HandOver => return self.hand_over(world, node),
            Harm::ServiceDown => return self.service_down(world, node),
            Harm::Upgrade => self.upgrade(world, node),
        }
        Ok(())
    }

    fn kill(&mut self, world: &mut World, node: usize, power: bool) {
        world.crash(node, power);
        if let Some(rollout) = &mut self.rollout {
            rollout.again(&mut world.hosts[node].settings);
        }
        if let Some(rng) = &mut self.timings {
            draw_lease(&mut world.hosts[node], rng);
        }
        let back = self.rng.skewed(1_000, 2_500_000 * self.pace);
        world.after(back, Event::Restart { node });
    }

    fn split(&mut self, world: &mut World) {
        let sides: Vec<(NodeId, bool)> =
            world.hosts.iter().map(|host| (host.id, self.rng.chance(500))).collect();
        for (a, left) in &sides {
            for (b, right) in &sides {
                if left != right {
                    world.net.cut(*a, *b);
                }
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

    fn flap(&mut self, world: &mut World, node: usize) {
        let id = world.hosts[node].id;
        for other in world.others(id) {
            match world.net.passes(id, other) {
                true => world.net.cut(id, other),
                false => world.net.mend(id, other),
            }
        }
    }

    fn random_graph(&mut self, world: &mut World) {
        let ids: Vec<NodeId> = world.hosts.iter().map(|host| host.id).collect();
        for a in &ids {
            for b in &ids {
                match a != b && self.rng.chance(400) {
                    true => world.net.cut(*a, *b),
                    false => world.net.mend(*a, *b),
                }
            }
        }
    }

    /// Whether one more disk may go. Never more than a minority are gone at a time, and none before the
    /// cluster is formed: until then the founder's disk may be the only one with the first record, and nodes
    /// that have heard of it wait for it (P9).
    fn may_lose(&mut self, world: &World, node: usize) -> bool {
        self.lost.retain(|lost| {
            let newest = world.newest_machine(*lost);
            newest.is_suspect() || !is_let_in(world, newest)
        });
        let spare = membership::may_be_lost(world, self.changes_members);
        let formed = world.checks.survival.len() > 0;
        let founded = formed && world.hosts[node].disk.durable.vote.admitted;
        self.lost.contains(&world.hosts[node].id) || (self.lost.len() < spare && founded)
    }

    /// An operator starts another machine under the id of this one. Until that machine is let in, its disk is
    /// as good as lost.
    pub fn double(&mut self, world: &mut World) -> Check {
        let counts = |world: &World, node: usize| world.hosts[node].disk.durable.vote.admitted;
        let wanted = world.wants_double().filter(|node| counts(world, *node));
        if let Some(node) = wanted.filter(|node| self.may_lose(world, *node)) {
            self.lost.insert(world.hosts[node].id);
            let seed = self.rng.next();
            world.start_double(node, seed)?;
        }
        world.redirect_peers();
        Ok(())
    }

    /// A disk forgets. Never more than a minority do at a time: beyond that nothing is promised.
    fn forget(&mut self, world: &mut World, node: usize, harm: Harm) {
        let id = world.hosts[node].id;
        if !self.may_lose(world, node) || world.has_double(id) {
            return;
        }
        let seed = world.rng.next();
        self.kill(world, node, true);
        let mut rng = self.rng.fork();
        let disk = &mut world.hosts[node].disk;
        let forgot = match harm {
            Harm::Wipe => {
                disk.wipe(seed);
                true
            }
            _ => disk.damage(&mut rng),
        };
        if forgot {
            self.lost.insert(id);
        }
    }

    /// One slot of a promise file goes bad, and its twin makes up for it. Or both go bad, and the disk has
    /// forgotten its promise.
    fn spoil_promise(&mut self, world: &mut World) {
        let node = self.someone(world);
        let Some(mut rng) = self.flaws.take() else { return };
        let both = rng.chance(500) && self.may_lose(world, node) && !world.has_double(world.hosts[node].id);
        self.kill(world, node, true);
        let host = &mut world.hosts[node];
        if host.disk.spoil_promise(&mut rng, both) {
            world.features.insert(if both { "promises are lost" } else { "a slot goes bad" }.to_string());
            if both {
                self.lost.insert(host.id);
            }
        }
        self.flaws = Some(rng);
    }

    /// The state in a node's memory differs from that of the others from now on. A node that is found to have
    /// diverged has lost its disk (P25). This is not done where roles are held, or data is restored, because
    /// the bit is one of the last token.
    fn flip_a_bit(&mut self, world: &mut World) {
        let node = self.someone(world);
        let sound = world.lessees.is_none()
            && !world.clients.restores
            && !world.hosts.iter().any(|host| host.flipped);
        if !sound || !self.may_lose(world, node) || world.has_double(world.hosts[node].id) {
            return;
        }
        let host = &mut world.hosts[node];
        if host.is_up() {
            host.flip_a_bit();
            self.lost.insert(host.id);
            world.features.insert("a bit flips in a state".to_string());
        }
    }

    fn hand_over(&mut self, world: &mut World, node: usize) -> Check {
        let to = self.rng.chance(700).then(|| NodeId(self.rng.range(1, world.hosts.len() as u64) as u32));
        world.hand_over(node, to)
    }

    fn service_down(&mut self, world: &mut World, node: usize) -> Check {
        let ttl = Span::millis(self.rng.range(100, 1_500));
        let change = ServiceChange::Down { owner: Owner::Operator, ttl, reason: "".into() };
        world.order(node, Call::Service(change))
    }

    fn upgrade(&mut self, world: &mut World, node: usize) {
        // All machines under a node's id read the format that it has shown that it reads (P23).
        let id = world.hosts[node].id;
        let machines: Vec<usize> =
            (0..world.hosts.len()).filter(|machine| world.hosts[*machine].id == id).collect();
        for machine in machines {
            world.hosts[machine].settings.format = FORMAT;
            self.kill(world, machine, false);
        }
    }

    /// The faults end: every machine runs, every link passes, every disk has room.
    pub fn mend_all(&mut self, world: &mut World) -> Check {
        world.net.heal();
        world.net.late = 0;
        all_have_room(world);
        self.rollout.iter().for_each(|rollout| rollout.ends(world));
        for node in 0..world.hosts.len() {
            world.thaw(node);
            let host = &mut world.hosts[node];
            host.sync_us = 200;
            host.disk.mend();
            host.settings.format = host.settings.format.max(Format(1));
            world.start(node)?;
        }
        Ok(())
    }
}

/// Fills the disk so far that it shows at once, or only when the next segment is due.
fn fill_up(world: &mut World, node: usize, rng: &mut Rng) {
    let disk = &mut world.hosts[node].disk;
    let left = rng.skewed(0, 3 * disk.segment_bytes);
    disk.run_short(left);
}

fn all_have_room(world: &mut World) {
    world.hosts.iter_mut().for_each(|host| host.disk.give_room());
}
