//! Every single node isolated at every step of an election, a catch-up, a hand-over and a change of members:
//! both ways, only inwards, only outwards. The links heal at the instant at which the operation would have
//! ended, or long after.
//!
//! `SIM_FULL=1` runs every case; otherwise a fixed sample runs.

use crate::calm::{MS, SECOND, ends_well, for_all, ms, sample};
use crate::checks::Violation;
use crate::operations::{Extent, Operation};
use crate::world::World;

/// The think time of clients during a long isolation.
const IDLE: (u64, u64) = (60 * MS, 200 * MS);

#[derive(Clone, Copy, Debug)]
enum Way {
    Both,
    /// It is not heard any more.
    Out,
    /// It hears nothing any more.
    In,
}

#[derive(Clone, Copy, Debug)]
enum Heal {
    /// When the operation would have ended.
    Prompt,
    /// When all nodes have long drawn their conclusions.
    Late,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    operation: Operation,
    count: u32,
    /// The node is isolated after this many events since the operation began.
    step: u64,
    node: usize,
    way: Way,
    heal: Heal,
    lasts: u64,
}

/// All ways to isolate a node within one operation.
fn cases(operation: Operation, count: u32, extent: Extent) -> Vec<Case> {
    let mut cases = Vec::new();
    for step in 0..=extent.steps {
        for node in 0..count as usize {
            for way in [Way::Both, Way::Out, Way::In] {
                for heal in [Heal::Prompt, Heal::Late] {
                    cases.push(Case { operation, count, step, node, way, heal, lasts: extent.us });
                }
            }
        }
    }
    cases
}

fn isolate(world: &mut World, node: usize, way: Way) {
    let id = world.hosts[node].id;
    for other in world.others(id) {
        if matches!(way, Way::Both | Way::Out) {
            world.net.cut(id, other);
        }
        if matches!(way, Way::Both | Way::In) {
            world.net.cut(other, id);
        }
    }
}

/// Runs one case. Returns how long after the heal writes resumed.
fn live(case: &Case) -> Result<u64, Violation> {
    let mut world = case.operation.before(case.count)?;
    let (began, first) = (world.now, world.steps);
    case.operation.begin(&mut world)?;
    world.run_to_step(first + case.step)?;
    isolate(&mut world, case.node, case.way);
    let heal = match case.heal {
        Heal::Prompt => began + case.lasts,
        Heal::Late => world.now + 2 * SECOND + 500 * MS,
    };
    // As many calls as usual come until the conclusions are drawn, and few while nothing else happens.
    world.run_until(heal.clamp(world.now, world.now + SECOND))?;
    let busy = std::mem::replace(&mut world.clients.think, IDLE);
    world.run_until(heal.max(world.now))?;
    world.clients.think = busy;
    ends_well(&mut world)
}

fn explore(operation: Operation, count: u32, some: usize) {
    let extent = operation.extent(count).expect("an operation that ends");
    let all = cases(operation, count, extent);
    let chosen: Vec<Case> = sample(all.len(), some).into_iter().map(|case| all[case]).collect();
    let resumed = for_all(&chosen, live);
    println!(
        "{operation:?} of {count}: {} steps in {} ms, {} of {} isolations; writes resumed within {} ms of the heal",
        extent.steps,
        ms(extent.us),
        chosen.len(),
        all.len(),
        ms(resumed.into_iter().max().unwrap_or(0)),
    );
}

#[test]
fn isolated_during_an_election() {
    explore(Operation::Failover, 3, 400);
    explore(Operation::SilentFailover, 3, 400);
    explore(Operation::Failover, 5, 150);
    explore(Operation::SilentFailover, 5, 150);
}

#[test]
fn isolated_during_a_catch_up() {
    explore(Operation::Rejoin, 3, 400);
    explore(Operation::RejoinBySnapshot, 3, 400);
    explore(Operation::RejoinWiped, 3, 400);
    explore(Operation::RejoinBySnapshot, 5, 150);
}

#[test]
fn isolated_during_a_hand_over() {
    explore(Operation::HandOver, 3, 400);
    explore(Operation::HandOver, 5, 150);
}

#[test]
fn isolated_while_members_change() {
    explore(Operation::Adding, 4, 300);
    explore(Operation::Removing, 4, 300);
    explore(Operation::Adding, 3, 150);
    explore(Operation::Removing, 3, 150);
}

#[test]
fn isolated_while_forming() {
    explore(Operation::Forming, 3, 400);
    explore(Operation::Forming, 5, 150);
}
