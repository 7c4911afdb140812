//! Operations of a cluster in which leaders change and nodes come back, each from the instant before it
//! begins to its end, so that it can be disturbed anywhere in between.

use eldest::protocol::MemberChange;
use eldest::replica::Call;
use eldest::types::NodeId;

use crate::calm::{MS, SECOND, Shape, bound, hand_over, is_settled, leader, start_all, wake_clients};
use crate::checks::{Check, Violation, ensure};
use crate::disk::Disk;
use crate::host::{Clock, Host};
use crate::membership::{self, add, spare, votes};
use crate::run::states;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// All machines start for the first time.
    Forming,
    /// The leader's process dies, and its port says so.
    Failover,
    /// The leader's machine dies. The others miss it, and from then on the operation counts as begun.
    SilentFailover,
    HandOver,
    /// The youngest node comes back and lacks a few records.
    Rejoin,
    /// The youngest node comes back so late that it is sent a snapshot.
    RejoinBySnapshot,
    /// The youngest node comes back with an empty disk, and must be let in again.
    RejoinWiped,
    /// The youngest node, which did not found the cluster, is added: it learns, is let in and votes (P43).
    Adding,
    /// The youngest node is removed (P43).
    Removing,
}

/// The extent of one undisturbed run of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub steps: u64,
    pub outputs: u64,
    pub us: u64,
}

impl Operation {
    fn shape(self, count: u32) -> Shape {
        let keep = if self == Operation::RejoinBySnapshot { 0 } else { 10_000 };
        Shape { keep, think: (15 * MS, 40 * MS), seed: 7, ..Shape::of(count) }
    }

    /// The cluster right before the operation.
    pub fn before(self, count: u32) -> Result<World, Violation> {
        if self == Operation::Forming {
            return Ok(self.shape(count).unformed());
        }
        if self == Operation::Adding {
            return with_a_spare(self.shape(count - 1).formed()?);
        }
        let mut world = self.shape(count).formed()?;
        let youngest = count as usize - 1;
        match self {
            Operation::SilentFailover => {
                world.crash(0, true);
                let until = world.now + bound(&world);
                world.run_until_true(until, someone_seeks)?;
            }
            Operation::Rejoin | Operation::RejoinBySnapshot | Operation::RejoinWiped => {
                world.crash(youngest, true);
                let until = world.now + SECOND;
                world.run_until(until)?;
            }
            _ => {}
        }
        if self == Operation::RejoinWiped {
            world.hosts[youngest].disk.wipe(77);
        }
        Ok(world)
    }

    pub fn begin(self, world: &mut World) -> Check {
        match self {
            Operation::Forming => {
                start_all(world)?;
                wake_clients(world);
            }
            Operation::Failover => world.crash(0, false),
            Operation::SilentFailover => {}
            Operation::HandOver => hand_over(world, NodeId(2))?,
            Operation::Adding => world.order(0, Call::ChangeMembers(add(world.hosts.len() as u32)))?,
            Operation::Removing => {
                let youngest = NodeId(world.hosts.len() as u32);
                world.order(0, Call::ChangeMembers(MemberChange::Remove(youngest)))?;
            }
            _ => {
                let youngest = world.hosts.len() - 1;
                world.start(youngest)?;
            }
        }
        Ok(())
    }

    fn is_over(self, world: &World) -> bool {
        let youngest = world.hosts.len() as u32;
        if self == Operation::Removing {
            // The removed node hears of it later.
            return membership::leader(world).is_some_and(|(_, core)| {
                let decided = core.log().roster().members_since() <= core.commit_index();
                decided && !core.is_member(NodeId(youngest))
            });
        }
        let led = match self {
            Operation::Forming => leader(world).is_some(),
            Operation::Failover | Operation::SilentFailover | Operation::HandOver => {
                leader(world).is_some_and(|leader| leader != NodeId(1))
            }
            Operation::Adding => votes(world, youngest),
            _ => true,
        };
        led && is_settled(world, None)
    }

    /// Runs it undisturbed, and measures it.
    pub fn extent(self, count: u32) -> Result<Extent, Violation> {
        let mut world = self.before(count)?;
        let (steps, outputs, began) = (world.steps, world.outputs, world.now);
        self.begin(&mut world)?;
        let until = world.now + bound(&world);
        let over = world.run_until_true(until, |world| self.is_over(world))?;
        ensure(over, "stage", || format!("{self:?} does not end: {}", states(&world)))?;
        Ok(Extent { steps: world.steps - steps, outputs: world.outputs - outputs, us: world.now - began })
    }
}

/// One more machine runs, which no node knows of yet.
fn with_a_spare(mut world: World) -> Result<World, Violation> {
    let id = world.hosts.len() as u32 + 1;
    let settings = spare(&world.hosts[0].settings, id);
    let clock = Clock { offset: SECOND / 2, rate_ppm: 0, wall_offset: 0 };
    world.hosts.push(Host::new(settings, Disk::new(u64::from(id)), clock));
    world.start(id as usize - 1)?;
    let until = world.now + 100 * MS;
    world.run_until(until)?;
    Ok(world)
}

fn someone_seeks(world: &World) -> bool {
    let cores = world.hosts.iter().filter_map(|host| host.core());
    cores.into_iter().any(|core| core.leader().is_none())
}
