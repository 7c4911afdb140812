//! Who leads next. Where delays stay far below the stagger it is the eldest that lives, whoever led and
//! whoever died with it.
//!
//! `SIM_FULL=1` repeats every case with forty seeds instead of four.

use crate::calm::{MS, Shape, bound, for_all, is_full};
use crate::checks::{Violation, ensure};

#[derive(Clone, Copy, Debug)]
struct Case {
    count: u32,
    leader: u32,
    /// Who dies at the same instant, the leader among them: a bit a node.
    dead: u32,
    /// The machines die, so that nobody refuses in their names.
    silent: bool,
    seed: u64,
}

/// Every leader of three, the eldest, the middle and the youngest of more; every set that leaves a majority.
fn cases(seeds: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [3u32, 5, 7] {
        for leader in [1, count / 2 + 1, count] {
            let few = (0..1u32 << count).filter(|dead| dead.count_ones() <= (count - 1) / 2);
            for dead in few.filter(|dead| dead >> (leader - 1) & 1 == 1) {
                for silent in [false, true] {
                    cases.extend((0..seeds).map(|seed| Case { count, leader, dead, silent, seed }));
                }
            }
        }
    }
    cases
}

fn succeed(case: &Case) -> Result<(), Violation> {
    let Case { count, leader, dead, silent, seed } = *case;
    let seed = u64::from(dead) + (seed << 32);
    let mut world = Shape { leader, seed, ..Shape::of(count) }.formed()?;
    for node in (0..count as usize).filter(|node| dead >> node & 1 == 1) {
        world.hosts[node].powered = !silent;
        world.crash(node, silent);
    }
    let until = world.now + bound(&world);
    world.run_until_true(until, |world| !world.openings.is_empty())?;
    let first = world.openings.first().map(|(_, successor)| successor.0);
    let eldest = dead.trailing_ones() + 1;
    ensure(first == Some(eldest), "P4 the eldest leads", || format!("{first:?}, not {eldest}"))?;
    let until = world.now + 500 * MS;
    world.run_until(until)?;
    ensure(world.openings.len() == 1, "P4 and goes on leading", || format!("{:?}", world.openings))
}

#[test]
fn the_successor_is_the_eldest_that_lives() {
    let cases = cases(if is_full() { 40 } else { 4 });
    let runs = for_all(&cases, succeed);
    println!("{} deaths: the eldest that lived led each time", runs.len());
}
