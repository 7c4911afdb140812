//! The result of a merge takes long to work out, while other things go on (P49).

use eldest::protocol::{Message, Node};
use eldest::types::NodeId;

use super::stage::{counts, get, has, heal, led, run, set, split, stage};
use crate::checks::{Check, Violation, ensure};
use crate::stage::{MS, core, leads};
use crate::world::World;

const LONG: u64 = 10_000 * MS;

/// n1 with n2 on one side, and n3 on the other, have written the same key. They hear each other again, and n1
/// has begun to work on what n3 has.
fn at_work() -> Result<World, Violation> {
    let mut world = stage(3, 51)?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    for (node, value) in [(1, "1"), (3, "3")] {
        set(&mut world, node, "k", value)?;
        set(&mut world, node, &format!("own{node}"), value)?;
    }
    world.hosts[0].prepare_us = (LONG, LONG);
    split(&mut world, &[&[1, 2, 3]]);
    let begun = world.run_until_true(world.now + 5_000 * MS, |world| world.hosts[0].prepares)?;
    ensure(begun, "P34 sides become one", || "they do not meet".into())?;
    // Later results take almost no time.
    world.hosts[0].prepare_us = (100, 1_000);
    Ok(world)
}

fn is_down(world: &World, node: u32) -> bool {
    core(world, node).is_none_or(Node::service_is_down)
}

/// The work takes ten times as long as a leader may be silent, and five times as long as a hold lasts: n1
/// goes on leading, and its result is taken in.
pub fn the_leader_leads_on() -> Check {
    let mut world = at_work()?;
    let epoch = core(&world, 1).and_then(Node::leads);
    while world.hosts[0].prepares {
        let leads = core(&world, 1).and_then(Node::leads) == epoch;
        let followed = core(&world, 2).is_some_and(|core| core.leader() == Some(NodeId(1)));
        ensure(leads && followed, "P49 a leader leads while it prepares", || crate::run::states(&world))?;
        let held = is_down(&world, 1) && is_down(&world, 3);
        ensure(held, "P34 both sides hold their service", || "one takes writes".into())?;
        run(&mut world, 50)?;
    }
    run(&mut world, 100)?;
    let merged = get(&world, 1, "own3");
    ensure(merged.as_deref() == Some("3"), "P49 what was prepared is taken in", || format!("{merged:?}"))?;
    heal(&mut world)?;
    counts(&world, 1)
}

/// The sides lose each other, take writes, and meet again before n1 is done with what n3 had before.
pub fn the_state_changes_meanwhile() -> Check {
    let mut world = at_work()?;
    split(&mut world, &[&[1, 2], &[3]]);
    let up = |world: &World| !is_down(world, 1) && !is_down(world, 3);
    let up = world.run_until_true(world.now + 5_000 * MS, up)?;
    ensure(up, "stage", || "the holds do not lapse".into())?;
    set(&mut world, 1, "k", "11")?;
    set(&mut world, 3, "k", "33")?;
    split(&mut world, &[&[1, 2, 3]]);
    let again = |world: &World| is_down(world, 1) && is_down(world, 3);
    let again = world.run_until_true(world.now + 3_000 * MS, again)?;
    ensure(again && world.hosts[0].prepares, "stage", || "they do not meet in time".into())?;
    world.run_until_true(world.now + LONG, |world| !world.hosts[0].prepares)?;
    heal(&mut world)?;
    has(&world, "k", Some("11"))?;
    counts(&world, 1)
}

/// n1 dies at work, and begins again.
pub fn the_elder_dies() -> Check {
    let mut world = at_work()?;
    world.crash(0, false);
    run(&mut world, 300)?;
    world.start(0)?;
    heal(&mut world)?;
    has(&world, "k", Some("1"))?;
    counts(&world, 1)
}

/// n3 works for long on the result of the merge, and the leader changes twice meanwhile. Writes wait for n3
/// no longer than they would with one leader.
pub fn leaders_change_meanwhile() -> Check {
    let mut world = stage(3, 52)?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    for node in [1, 3] {
        set(&mut world, node, &format!("own{node}"), "1")?;
    }
    world.hosts[2].prepare_us = (LONG, LONG);
    split(&mut world, &[&[1, 2, 3]]);
    let begun = world.run_until_true(world.now + 5_000 * MS, |world| world.hosts[2].prepares)?;
    ensure(begun && is_down(&world, 1), "P34 sides become one", || "they do not meet".into())?;
    let (merged, window) = (world.now, world.hosts[0].settings.timing.window.0);
    world.hosts[2].prepare_us = (100, 1_000);
    for (from, to) in [(1, 2), (2, 1)] {
        run(&mut world, 700)?;
        world.hand_over(from - 1, Some(NodeId(to)))?;
        let came = world.run_until_true(world.now + 1_000 * MS, |world| leads(world, to))?;
        ensure(came, "stage", || format!("n{to} does not lead: {}", crate::run::states(&world)))?;
    }
    let up = world.run_until_true(merged + 2 * window + 200 * MS, |world| !is_down(world, 1))?;
    ensure(up && world.hosts[2].prepares, "P34 a hold lasts two windows", || crate::run::states(&world))?;
    set(&mut world, 1, "k", "1")?;
    world.run_until_true(world.now + LONG, |world| !world.hosts[2].prepares)?;
    heal(&mut world)?;
    has(&world, "k", Some("1"))
}

/// While n3 works on what it was sent, more is written than n1 keeps: the next transfer to n3 holds only what
/// has come since.
pub fn more_is_written_meanwhile() -> Check {
    let mut world = stage(3, 53)?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    for node in [1, 3] {
        set(&mut world, node, &format!("own{node}"), "1")?;
    }
    world.recorder =
        Some(|envelope| envelope.to == NodeId(3) && matches!(envelope.message, Message::Override { .. }));
    world.hosts[2].prepare_us = (LONG, LONG);
    split(&mut world, &[&[1, 2, 3]]);
    let up = |world: &World| world.hosts[2].prepares && !is_down(world, 1);
    let up = world.run_until_true(world.now + 5_000 * MS, up)?;
    ensure(up, "stage", || "n3 is waited for".into())?;
    world.hosts[2].prepare_us = (100, 1_000);
    for round in 0..40 {
        set(&mut world, 1, "k", &round.to_string())?;
    }
    world.run_until_true(world.now + LONG, |world| !world.hosts[2].prepares)?;
    run(&mut world, 3_000)?;
    let newest_first = world.recorded.iter().rev();
    let mut bases = newest_first.filter_map(|(envelope, _)| match &envelope.message {
        Message::Override { term, base, .. } => Some((term.epoch, base)),
        _ => None,
    });
    let known = bases.next().is_some_and(|(epoch, base)| base.newest() == epoch);
    ensure(known, "P33 what is there is not sent again", || "n3 is sent everything twice".into())?;
    heal(&mut world)?;
    has(&world, "k", Some("39"))
}

#[test]
fn a_merge_that_takes_long() {
    let scenarios = [
        ("the leader leads on", the_leader_leads_on as fn() -> Check),
        ("the state changes meanwhile", the_state_changes_meanwhile),
        ("the elder dies", the_elder_dies),
        ("leaders change meanwhile", leaders_change_meanwhile),
        ("more is written meanwhile", more_is_written_meanwhile),
    ];
    for (name, scenario) in scenarios {
        assert_eq!(crate::guarded::guarded(scenario), Ok(()), "{name}");
    }
}
