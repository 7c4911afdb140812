//! A node's disk is replaced: what the earlier disk had promised, granted and acknowledged still binds (P10,
//! P11).

use eldest::protocol::{Message, Node, Timing};
use eldest::types::{Format, Incarnation, NodeId, Span};

use crate::checks::{Check, Violation, ensure};
use crate::commands::{Command, Tag};
use crate::scenarios::{Scenario, deposed_meets_wiped};
use crate::stage::{MS, core, leads, linearizable, link, run, stage};
use crate::world::World;

/// Leases of three seconds, with time to spare between them.
pub fn patient() -> Timing {
    Timing {
        heartbeat: Span::millis(500),
        dead_after: Span::millis(5_000),
        declare: Span::millis(1_000),
        lease: Span::millis(3_000),
        window: Span::millis(5_000),
        ..Timing::wan()
    }
}

/// A node gets a blank disk, at once.
fn replace_disk(world: &mut World, node: usize) -> Check {
    world.crash(node, true);
    world.hosts[node].disk.wipe(0xB1A9C);
    world.start(node)
}

/// P10: n1 relies on n2 and n3, and is cut off. n2 leads, lets a new disk of n3 in and hands over. n4 is
/// elected by n3 and n5, neither of which knows that n1 relied on the earlier disk.
pub fn wiped_granter() -> Check {
    let mut world = stage(5, 31, |settings| settings.timing = patient())?;
    for far in [4, 5] {
        link(&mut world, 1, far, false);
    }
    run(&mut world, 4_000)?;
    world.reject(0);
    replace_disk(&mut world, 2)?;
    let counts = |world: &World| leads(world, 2) && core(world, 3).is_some_and(Node::is_admitted);
    let let_in = world.run_until_true(world.now + 5_000 * MS, counts)?;
    ensure(let_in, "stage", || "n3 is not let in".into())?;
    world.net.slow.insert((NodeId(4), NodeId(2)), 100 * MS);
    world.hand_over(1, Some(NodeId(4)))?;
    run(&mut world, 6_000)?;
    ensure(leads(&world, 4), "stage", || "n4 does not lead".into())
}

/// P10: a deposed leader has noted that a new disk is to be let in, and no node has stored that, because no
/// append passes. The disk, which is still blank, is asked for its vote.
pub fn blank_disk_is_asked() -> Check {
    let mut world = deposed_meets_wiped()?;
    world.net.dropped =
        Some(|envelope| envelope.from == NodeId(1) && matches!(envelope.message, Message::Append { .. }));
    run(&mut world, 4_000)?;
    world.net.heal();
    run(&mut world, 3_000)?;
    linearizable(&mut world)
}

/// The seed for the disk of a machine that takes another's place.
const NEW: u64 = 0x2E3;

/// n2 lives but cannot be reached any more, and another n2 with a blank disk is let in.
fn another_n2() -> Result<(World, usize), Violation> {
    let mut world = stage(3, 41, |_| {})?;
    let double = world.start_double(1, NEW)?;
    for peer in [1, 3] {
        world.redirect(NodeId(peer), double);
    }
    let counts = |world: &World| world.hosts[double].core().is_some_and(Node::is_admitted);
    let let_in = world.run_until_true(world.now + 3_000 * MS, counts)?;
    ensure(let_in, "stage", || "the new n2 is not let in".into())?;
    run(&mut world, 500)?;
    Ok((world, double))
}

fn disk_of(world: &World, machine: usize) -> Incarnation {
    world.hosts[machine].disk.durable.incarnation
}

/// Every machine is asked to write.
fn all_write(world: &mut World, number: u64) -> Check {
    for node in 0..world.hosts.len() {
        let tag = Tag { op: 7_000 + number * 16 + node as u64, attempt: 0 };
        let write = Command::Write { key: 0, value: tag.op }.call(tag, Format(1));
        world.order(node, write)?;
    }
    run(world, 1_500)
}

/// P10: n1 and the new n2 are cut off from n3 and the old n2.
pub fn two_disks_of_one_id() -> Check {
    let (mut world, double) = another_n2()?;
    link(&mut world, 1, 3, false);
    world.redirect(NodeId(3), 1);
    (0..4).try_for_each(|number| all_write(&mut world, number))?;
    let told = core(&world, 2).and_then(Node::replaced_by);
    let new = disk_of(&world, double);
    ensure(told == Some(new), "P10 who is replaced knows it", || format!("{told:?}"))?;
    world.retire_doubles();
    world.net.heal();
    all_write(&mut world, 4)?;
    ensure(leads(&world, 1), "I10 writes resume", || "n1 does not lead".into())
}

/// P10: n1 meets the old n2 again, and does not let it in: otherwise the two would take each other's place
/// forever.
pub fn the_disk_before_comes_back() -> Check {
    let (mut world, double) = another_n2()?;
    world.redirect(NodeId(1), 1);
    run(&mut world, 3_000)?;
    world.doubles.both_speak = true;
    run(&mut world, 3_000)?;
    let seat = core(&world, 1).and_then(|node| node.log().roster().seat(NodeId(2)));
    let kept = seat.is_some_and(|seat| seat.incarnation == disk_of(&world, double));
    ensure(kept, "P10 a disk is let in once", || format!("the seat is {seat:?}"))
}

/// P11: n1 leads and is cut off; another n1 starts, and its process is taken for the end of the earlier one.
pub fn old_leader_lives_on() -> Check {
    let mut world = stage(3, 42, |settings| settings.timing = patient())?;
    run(&mut world, 2_000)?;
    let double = world.start_double(0, NEW)?;
    for peer in [2, 3] {
        world.redirect(NodeId(peer), double);
    }
    run(&mut world, 6_000)?;
    ensure(leads(&world, 2), "stage", || "n2 does not lead".into())
}

#[test]
fn every_replaced_disk() {
    let all: [(&str, Scenario); 5] = [
        ("wiped_granter", wiped_granter),
        ("blank_disk_is_asked", blank_disk_is_asked),
        ("two_disks_of_one_id", two_disks_of_one_id),
        ("the_disk_before_comes_back", the_disk_before_comes_back),
        ("old_leader_lives_on", old_leader_lives_on),
    ];
    for (name, scenario) in all {
        if let Err(violation) = scenario() {
            panic!("{name}: {} — {}", violation.checker, violation.what);
        }
    }
}
