//! A death at any output of a heal: no matter which node dies, when, how, and for how long, the result is the
//! same.
//!
//! A fixed sample runs; `SIM_FULL=1` runs more.

use std::collections::BTreeSet;

use eldest::store::Key;
use eldest::types::Position;

use super::end::{ends_well, is_one_state};
use super::stage::{data, led, remove, set, split, stage};
use crate::calm::{MS, for_all, is_full, sample};
use crate::checks::{Check, Violation, ensure, merged};
use crate::world::{Doom, World};

/// At once, or when all nodes have drawn their conclusions.
const BACK: [u64; 2] = [5 * MS, 2_500 * MS];

/// Two sides that have written and deleted against each other, right before they hear each other again.
fn before() -> Result<World, Violation> {
    let mut world = stage(3, 21)?;
    for key in ["k", "gone", "there"] {
        set(&mut world, 1, key, "0")?;
    }
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    set(&mut world, 1, "k", "1")?;
    set(&mut world, 1, "only1", "1")?;
    set(&mut world, 2, "k", "2")?;
    set(&mut world, 2, "only2", "2")?;
    remove(&mut world, 2, "gone")?;
    remove(&mut world, 1, "there")?;
    set(&mut world, 2, "there", "2")?;
    world.net.heal();
    Ok(world)
}

/// The data that clients see in the end, and the positions of the values that lost.
struct Wanted {
    data: Vec<(Key, String)>,
    journal: BTreeSet<Position>,
}

/// The number of outputs from the mended link to one side, and the data that clients then see.
fn undisturbed() -> Result<(u64, Wanted), Violation> {
    let mut world = before()?;
    let began = world.outputs;
    let one = world.run_until_true(world.now + 16_000 * MS, is_one_state)?;
    ensure(one, "stage", || "no end of the heal".into())?;
    // The count goes on to the first writes after the merge's hold.
    world.run_until(world.now + 200 * MS)?;
    let outputs = world.outputs - began;
    ends_well(&mut world)?;
    Ok((outputs, Wanted { data: data(&world), journal: merged::journaled(world.side(0)) }))
}

fn live(doom: &Doom, wanted: &Wanted) -> Check {
    let mut world = before()?;
    world.doom = Some(Doom { output: world.outputs + doom.output, ..*doom });
    let struck = world.run_until_true(world.now + 16_000 * MS, |world| world.doom.is_none())?;
    ensure(struck, "stage", || "nobody died".into())?;
    world.run_until(world.now + doom.back)?;
    for node in 0..world.hosts.len() {
        world.start(node)?;
    }
    ends_well(&mut world)?;
    let (found, expected) = (data(&world), &wanted.data);
    ensure(found == *expected, "P34 every step can be repeated", || format!("{found:?}, not {expected:?}"))?;
    let (found, expected) = (merged::journaled(world.side(0)), &wanted.journal);
    ensure(found == *expected, "C23 the journal tells each loss once", || {
        format!("{found:?}, not {expected:?}")
    })
}

#[test]
fn crashes_during_a_heal() {
    let (outputs, wanted) = undisturbed().expect("a heal that ends");
    let mut all = Vec::new();
    for output in 0..outputs {
        for node in 0..3 {
            for power in [false, true] {
                all.extend(BACK.map(|back| Doom { output, node, power, back }));
            }
        }
    }
    let some = if is_full() { 3_000 } else { 400 };
    let chosen: Vec<Doom> = match is_full() {
        true => all.iter().step_by(all.len().div_ceil(some)).copied().collect(),
        false => sample(all.len(), some).into_iter().map(|case| all[case]).collect(),
    };
    let runs = for_all(&chosen, |doom| live(doom, &wanted));
    println!("{outputs} outputs of a heal, {} of {} crashes", runs.len(), all.len());
}
