//! The start of every enumeration, which is a formed cluster on a calm network, and what the enumerations
//! share: jobs on all cores, a sample of a set that is too large for every run, and the end that every run
//! must come to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use eldest::protocol::{Settings, Takeover};
use eldest::types::{NodeId, Span};

use crate::checks::{Check, Violation, ensure};
use crate::client::Clients;
use crate::disk::Disk;
use crate::guarded::guarded;
use crate::host::{Clock, Host};
use crate::plan::members;
use crate::rng::Rng;
use crate::run::{agrees, linearizable, resumes, states};
use crate::world::{Event, World};

pub const MS: u64 = 1_000;
pub const SECOND: u64 = 1_000 * MS;

/// The cluster before anything is done to it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub count: u32,
    pub leader: u32,
    pub takeover: Takeover,
    /// Records kept below a snapshot. With none, a node that lags is sent a snapshot.
    pub keep: u64,
    pub clients: usize,
    pub think: (u64, u64),
    /// One-way delay and sync time in µs that never vary, for figures.
    pub steady: Option<(u64, u64)>,
    pub seed: u64,
}

impl Shape {
    pub fn of(count: u32) -> Shape {
        Shape {
            count,
            leader: 1,
            takeover: Takeover::Never,
            keep: 10_000,
            clients: 3,
            think: (20 * MS, 100 * MS),
            steady: None,
            seed: 1,
        }
    }

    fn host(&self, me: NodeId, rng: &mut Rng) -> Host {
        let mut settings = Settings::lan(me, members(self.count));
        settings.takeover = self.takeover;
        settings.limits.keep = self.keep;
        let clock = Clock {
            offset: if self.steady.is_some() { 0 } else { rng.below(SECOND) },
            rate_ppm: 0,
            wall_offset: 0,
        };
        let mut host = Host::new(settings, Disk::new(rng.next()), clock);
        if let Some((_, sync)) = self.steady {
            host.sync_us = sync;
            host.steady = true;
        }
        host
    }

    /// The machines, with nothing running on them.
    pub fn unformed(&self) -> World {
        let mut rng = Rng::new(self.seed);
        let hosts = members(self.count).into_iter().map(|me| self.host(me, &mut rng)).collect();
        let mut clients = Clients::new(self.clients, 3, rng.fork());
        clients.think = self.think;
        clients.patience = 250 * MS;
        clients.reliable = true;
        let mut world = World::new(hosts, clients, rng.fork());
        if let Some((delay, _)) = self.steady {
            world.net.delay = (delay, delay);
        }
        world
    }

    /// The cluster formed, led by the wanted node, and in use for a while.
    pub fn formed(&self) -> Result<World, Violation> {
        let mut world = self.unformed();
        start_all(&mut world)?;
        settled(&mut world, None)?;
        if world.hosts[self.slot()].core().is_some_and(|core| !core.is_open()) {
            hand_over(&mut world, NodeId(self.leader))?;
            settled(&mut world, Some(NodeId(self.leader)))?;
        }
        wake_clients(&mut world);
        let until = world.now + 350 * MS;
        world.run_until(until)?;
        world.openings.clear();
        Ok(world)
    }

    fn slot(&self) -> usize {
        self.leader as usize - 1
    }
}

pub fn start_all(world: &mut World) -> Check {
    (0..world.hosts.len()).try_for_each(|node| world.start(node))
}

pub fn wake_clients(world: &mut World) {
    for client in 0..world.clients.count() {
        world.after(client as u64 * 7 * MS, Event::ClientWakes { client });
    }
}

pub fn leader(world: &World) -> Option<NodeId> {
    let open = |host: &&Host| host.core().is_some_and(|core| core.is_open());
    world.hosts.iter().find(open).map(|host| host.id)
}

/// Asks the leader to hand over.
pub fn hand_over(world: &mut World, to: NodeId) -> Check {
    let Some(leader) = leader(world) else {
        return ensure(false, "stage", || "nobody leads".into());
    };
    let node = world.slot(leader);
    world.hand_over(node, Some(to))
}

/// Every node that runs follows one leader (`wanted`, if given), has all that is committed, and counts.
pub fn is_settled(world: &World, wanted: Option<NodeId>) -> bool {
    let leader = leader(world);
    let last = world.checks.survival.len();
    let agrees = |host: &Host| {
        let Some(core) = host.core() else {
            return true;
        };
        core.leader() == leader && core.is_admitted() && host.applied() == last
    };
    let right = wanted.is_none() || leader == wanted;
    leader.is_some() && right && world.hosts.iter().all(agrees)
}

pub fn settled(world: &mut World, wanted: Option<NodeId>) -> Check {
    let until = world.now + bound(world);
    let came = world.run_until_true(until, |world| is_settled(world, wanted))?;
    ensure(came, "stage", || format!("not settled: {}", states(world)))
}

/// I10's bound: four election time-outs.
pub fn bound(world: &World) -> u64 {
    world.hosts[0].settings.timing.election_timeout().times(4).0
}

/// Every machine runs and every link passes again: writes resume in time, and all nodes agree.
pub fn ends_well(world: &mut World) -> Result<u64, Violation> {
    world.net.heal();
    start_all(world)?;
    let resumed = resumes(world)?;
    agrees(world)?;
    world.close_all();
    linearizable(world)?;
    Ok(resumed)
}

/// With `SIM_FULL` set the whole of a set is run, however long that takes.
pub fn is_full() -> bool {
    std::env::var_os("SIM_FULL").is_some()
}

/// `some` of `total` numbers, always the same, spread without a pattern: or all of them.
pub fn sample(total: usize, some: usize) -> Vec<usize> {
    if is_full() || some >= total {
        return (0..total).collect();
    }
    let mut rng = Rng::new(total as u64);
    let mut numbers: Vec<usize> = (0..total).collect();
    for place in 0..some {
        let other = place + rng.below((total - place) as u64) as usize;
        numbers.swap(place, other);
    }
    numbers.truncate(some);
    numbers.sort_unstable();
    numbers
}

/// Runs a job for every item on all cores. Every item that fails is named, up to a dozen.
pub fn for_all<I: Sync + std::fmt::Debug, T: Send>(
    items: &[I],
    job: impl Fn(&I) -> Result<T, Violation> + Sync,
) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            match guarded(|| job(item)) {
                Ok(result) => results.lock().expect("results").push(result),
                Err(Violation { checker, what }) => {
                    failures.lock().expect("failures").push(format!("{item:?}\n  {checker}: {what}"));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let failures = failures.into_inner().expect("failures");
    let shown: Vec<&str> = failures.iter().take(12).map(String::as_str).collect();
    let count = failures.len();
    assert!(count == 0, "{count} of {} fail:\n{}", items.len(), shown.join("\n"));
    results.into_inner().expect("results")
}

/// A span as text, in milliseconds.
pub fn ms(us: u64) -> String {
    format!("{:.1}", Span(us).0 as f64 / MS as f64)
}
