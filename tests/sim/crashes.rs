//! A crash between any two outputs: during a failover, a hand-over, a rejoin, a change of members and the
//! forming of a cluster, every node dies right before every output of any node, its process or its whole
//! machine, and comes back at once or after a while.
//!
//! A fixed sample of the cases with five nodes runs; `SIM_FULL=1` runs every one.

use crate::calm::{MS, ends_well, for_all, ms, sample};
use crate::checks::{Violation, ensure};
use crate::operations::{Extent, Operation};
use crate::world::Doom;

#[derive(Clone, Copy, Debug)]
struct Case {
    operation: Operation,
    count: u32,
    /// Its output is counted from the beginning of the operation.
    doom: Doom,
}

/// At once, or when all nodes have drawn their conclusions.
const BACK: [u64; 2] = [5 * MS, 1_500 * MS];

fn cases(operation: Operation, count: u32, extent: Extent) -> Vec<Case> {
    let mut cases = Vec::new();
    for output in 0..extent.outputs {
        for node in 0..count as usize {
            for power in [false, true] {
                for back in BACK {
                    let doom = Doom { output, node, power, back };
                    cases.push(Case { operation, count, doom });
                }
            }
        }
    }
    cases
}

/// Runs one case. Returns how long after the last return writes resumed.
fn live(case: &Case) -> Result<u64, Violation> {
    let mut world = case.operation.before(case.count)?;
    let output = world.outputs + case.doom.output;
    world.doom = Some(Doom { output, ..case.doom });
    case.operation.begin(&mut world)?;
    let until = world.now + 10_000 * MS;
    let struck = world.run_until_true(until, |world| world.doom.is_none())?;
    ensure(struck, "stage", || "nobody died".into())?;
    let back = world.now + case.doom.back;
    world.run_until(back)?;
    ends_well(&mut world)
}

fn explore(operation: Operation, count: u32, some: usize) {
    let extent = operation.extent(count).expect("an operation that ends");
    let all = cases(operation, count, extent);
    let chosen: Vec<Case> = sample(all.len(), some).into_iter().map(|case| all[case]).collect();
    let resumed = for_all(&chosen, live);
    println!(
        "{operation:?} of {count}: {} outputs in {} ms, {} of {} crashes; writes resumed within {} ms of the return",
        extent.outputs,
        ms(extent.us),
        chosen.len(),
        all.len(),
        ms(resumed.into_iter().max().unwrap_or(0)),
    );
}

#[test]
fn crashes_during_a_failover() {
    explore(Operation::Failover, 3, usize::MAX);
    explore(Operation::SilentFailover, 3, usize::MAX);
    explore(Operation::Failover, 5, 200);
}

#[test]
fn crashes_during_a_hand_over() {
    explore(Operation::HandOver, 3, usize::MAX);
    explore(Operation::HandOver, 5, 200);
}

#[test]
fn crashes_during_a_rejoin() {
    explore(Operation::Rejoin, 3, usize::MAX);
    explore(Operation::RejoinBySnapshot, 3, usize::MAX);
    explore(Operation::RejoinWiped, 3, usize::MAX);
}

#[test]
fn crashes_while_members_change() {
    explore(Operation::Adding, 4, 300);
    explore(Operation::Removing, 4, 300);
    explore(Operation::Adding, 3, 150);
    explore(Operation::Removing, 3, 150);
}

#[test]
fn crashes_while_forming() {
    explore(Operation::Forming, 3, usize::MAX);
    explore(Operation::Forming, 5, 200);
}
