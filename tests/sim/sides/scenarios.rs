//! Timelines of available mode. Each sets the stage for one rule and ends with every link mended, and the
//! checkers watch.

use eldest::protocol::{Envelope, Message, Node};
use eldest::types::{Entry, NodeId};

use super::clients::{election, one, user, vote};
use super::end::leaders;
use super::stage::{
    ask, conflicts, counts, data, get, has, heal, led, remove, replace, run, set, split, stage,
};
use crate::calm::for_all;
use crate::checks::{Check, Violation, ensure};
use crate::disk::Copy;
use crate::readers::Readers;
use crate::rng::Rng;
use crate::stage::{MS, core, leads, link};
use crate::state::Transfer;
use crate::world::World;

/// The basic case: n1 is cut off, n2 leads n3, both sides write and vote, and meet again.
pub fn one_against_two() -> Check {
    let mut world = stage(3, 1)?;
    ask(&mut world, 1, one(election(0)))?;
    for voter in ["u1", "u2", "u3"] {
        ask(&mut world, 1, one(user(voter, 0)))?;
    }
    set(&mut world, 1, "both", "0")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    for (node, voter) in [(1, "u1"), (2, "u2"), (2, "u3")] {
        ask(&mut world, node, one(vote(0, voter, u64::from(node) - 1)))?;
        set(&mut world, node, "both", &node.to_string())?;
        set(&mut world, node, &format!("only{node}"), "1")?;
    }
    heal(&mut world)?;
    has(&world, "both", Some("1"))?;
    has(&world, "only2", Some("1"))?;
    counts(&world, 1)?;
    let votes = world.side(2).store.election("e0").map(|election| election.votes());
    ensure(votes == Some(3), "C23 each vote counts once", || format!("{votes:?}"))
}

/// Three sides of one node each. All have written the same key, and each has written another one as well.
fn three_sides() -> Result<World, Violation> {
    let mut world = stage(3, 2)?;
    set(&mut world, 1, "k", "0")?;
    split(&mut world, &[&[1], &[2], &[3]]);
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    for node in [1, 2, 3] {
        set(&mut world, node, "k", &node.to_string())?;
        set(&mut world, node, &format!("own{node}"), &node.to_string())?;
    }
    Ok(world)
}

/// C21: the result is the same, no matter which sides meet first.
pub fn three_sides_meet_in_any_order() -> Check {
    let mut ends = Vec::new();
    for (a, b) in [(1, 2), (1, 3), (2, 3)] {
        let mut world = three_sides()?;
        link(&mut world, a, b, true);
        led(&mut world, &[(a, &[b])])?;
        heal(&mut world)?;
        counts(&world, 2)?;
        ends.push(data(&world));
    }
    let same = ends.iter().all(|end| *end == ends[0]);
    ensure(same, "C21 the order of merging does not matter", || format!("{ends:?}"))
}

/// n1 and n2 meet while n3 hears only n2.
pub fn the_third_hears_only_one() -> Check {
    let mut world = three_sides()?;
    link(&mut world, 1, 2, true);
    link(&mut world, 2, 3, true);
    run(&mut world, 20_000)?;
    heal(&mut world)?;
    has(&world, "k", Some("1"))?;
    counts(&world, 2)
}

/// I7: n1 merges what n2 has, and loses power before its disk knows. It begins the same epoch again, and
/// comes to the same position.
pub fn a_merge_is_lost_with_its_epoch() -> Check {
    let mut world = stage(3, 6)?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    // Its next epoch is that of the merge.
    world.crash(0, false);
    world.start(0)?;
    led(&mut world, &[(1, &[])])?;
    set(&mut world, 1, "only1", "1")?;
    set(&mut world, 2, "only2", "2")?;
    let mut readers = Readers::new(1, Rng::new(1));
    readers.sit_at(0, &world.hosts[0]);
    world.readers = Some(readers);
    world.hosts[0].sync_us = 100 * MS;
    link(&mut world, 1, 2, true);
    let merged = |world: &World| {
        let host = &world.hosts[0];
        host.core().is_some_and(|core| core.vote().promise.epoch > host.disk.durable.vote.promise.epoch)
            && get(world, 1, "only2").is_some()
    };
    let came = world.run_until_true(world.now + 20_000 * MS, merged)?;
    ensure(came, "stage", || "n1 does not merge, or its disk is too fast".into())?;
    split(&mut world, &[&[1], &[2, 3]]);
    world.crash(0, true);
    world.hosts[0].sync_us = 200;
    world.start(0)?;
    led(&mut world, &[(1, &[])])?;
    for value in 0..20 {
        set(&mut world, 1, "only1", &value.to_string())?;
    }
    world.readers_agree()?;
    heal(&mut world)
}

/// C18: n1 alone acknowledges a write and dies; n2 goes on leading n3; n1 comes back.
pub fn returning_elder() -> Check {
    let mut world = stage(3, 3)?;
    set(&mut world, 1, "k", "0")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    set(&mut world, 1, "alone", "1")?;
    world.crash(0, true);
    set(&mut world, 2, "k", "2")?;
    world.net.heal();
    run(&mut world, 3_000)?;
    world.start(0)?;
    heal(&mut world)?;
    has(&world, "alone", Some("1"))?;
    has(&world, "k", Some("2"))?;
    counts(&world, 0)
}

/// C18: the same, but n1 comes back with its records while another leader serves, whose epoch is greater by
/// far.
pub fn returning_youngest() -> Check {
    let mut world = stage(3, 4)?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    set(&mut world, 3, "alone", "3")?;
    world.crash(2, true);
    for round in 0..3 {
        world.crash(0, false);
        led(&mut world, &[(2, &[])])?;
        set(&mut world, 2, "k", &format!("{round}"))?;
        world.start(0)?;
        run(&mut world, 3_000)?;
    }
    world.net.heal();
    world.start(2)?;
    heal(&mut world)?;
    has(&world, "alone", Some("3"))?;
    has(&world, "k", Some("2"))
}

/// C19: every message that carried data during a heal arrives again, after its receivers have acknowledged
/// more.
pub fn data_arrives_again() -> Check {
    let mut world = split_in_two(5)?;
    world.recorder = Some(|envelope| {
        matches!(envelope.message, Message::Merge { .. } | Message::Override { .. } | Message::Meet { .. })
    });
    heal(&mut world)?;
    let old = std::mem::take(&mut world.recorded);
    ensure(old.len() > 1, "stage", || format!("{} messages with data", old.len()))?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    set(&mut world, 1, "k", "11")?;
    set(&mut world, 2, "k", "22")?;
    set(&mut world, 2, "late", "2")?;
    for (envelope, state) in old {
        world.deliver(envelope, state)?;
        run(&mut world, 50)?;
    }
    heal(&mut world)?;
    has(&world, "k", Some("11"))?;
    has(&world, "late", Some("2"))
}

/// C19: the state that the younger side has handed in arrives after its hold has lapsed and it has
/// acknowledged more.
pub fn late_merge() -> Check {
    let mut world = split_in_two(6)?;
    world.net.slow.insert((NodeId(2), NodeId(1)), 900 * MS);
    for (a, b) in [(1, 2), (1, 3)] {
        world.net.mend(NodeId(a), NodeId(b));
        world.net.mend(NodeId(b), NodeId(a));
    }
    let mut number = 0;
    for _ in 0..30 {
        number += 1;
        let node = NodeId(2);
        world.wish(
            node,
            one(super::clients::put("late".into(), number.to_string().into(), Default::default())),
        );
        run(&mut world, 150)?;
        if number % 7 == 0 {
            split(&mut world, &[&[1], &[2, 3]]);
            run(&mut world, 1_300)?;
            world.net.mend(NodeId(1), NodeId(2));
            world.net.mend(NodeId(2), NodeId(1));
        }
    }
    heal(&mut world)
}

pub fn split_in_two(seed: u64) -> Result<World, Violation> {
    let mut world = stage(3, seed)?;
    set(&mut world, 1, "k", "0")?;
    set(&mut world, 1, "gone", "0")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    set(&mut world, 1, "k", "1")?;
    set(&mut world, 2, "k", "2")?;
    remove(&mut world, 2, "gone")?;
    set(&mut world, 2, "only2", "2")?;
    Ok(world)
}

/// C20: {1,3} write, 3 splits off and replaces that value, 3 meets 2, and only then 1.
pub fn repeated_splits() -> Check {
    let mut world = stage(3, 7)?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    set(&mut world, 1, "k", "1")?;
    split(&mut world, &[&[1], &[2], &[3]]);
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    replace(&mut world, 3, "k", "3")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    let there = get(&world, 2, "k");
    ensure(there.as_deref() == Some("3"), "stage", || format!("n2 has {there:?}"))?;
    heal(&mut world)?;
    has(&world, "k", Some("3"))?;
    counts(&world, 0)
}

/// P35: n2 has followed n1, and has then taken in what n3 had written as leader below n1's epoch. n3 comes
/// back to n1 with an empty disk. All three have had everything of n1's, and still n2 has something that n1
/// has never heard of.
pub fn a_replaced_disk_hides_nothing() -> Check {
    n3_hides_nothing(|world, _| world.wipe(2))
}

/// P35: the same, but n3 comes back with what it had before all that, under the same incarnation.
pub fn an_old_copy_hides_nothing() -> Check {
    n3_hides_nothing(|world, old| {
        world.crash(2, false);
        world.hosts[2].disk.put_back(old);
    })
}

fn n3_hides_nothing(loses_its_disk: fn(&mut World, &Copy)) -> Check {
    let mut world = stage(3, 10)?;
    world.crash(2, false);
    let old = world.hosts[2].disk.copy();
    world.start(2)?;
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1], &[2], &[3]]);
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    set(&mut world, 3, "only3", "3")?;
    // n1 takes n2 in, in an epoch above n3's.
    link(&mut world, 1, 2, true);
    led(&mut world, &[(1, &[2])])?;
    set(&mut world, 1, "only1", "1")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    let taken_in = get(&world, 2, "only3");
    ensure(taken_in.as_deref() == Some("3"), "stage", || format!("n2 has {taken_in:?}"))?;
    loses_its_disk(&mut world, &old);
    split(&mut world, &[&[1, 3], &[2]]);
    world.start(2)?;
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    set(&mut world, 1, "only1", "11")?;
    run(&mut world, 2_000)?;
    heal(&mut world)?;
    has(&world, "only1", Some("11"))?;
    has(&world, "only3", Some("3"))
}

/// P34: the state that n3 hands in to n2 comes late. Meanwhile n3's disk is lost, n1 leads all, and settles
/// what lies below its epoch.
pub fn a_merge_outlives_its_disk() -> Check {
    let mut world = stage(3, 11)?;
    split(&mut world, &[&[1], &[2], &[3]]);
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    set(&mut world, 3, "only3", "3")?;
    let late = handed_in(&mut world, 2)?;
    split(&mut world, &[&[1], &[2], &[3]]);
    world.wipe(2);
    run(&mut world, 3_000)?;
    world.start(2)?;
    world.net.heal();
    // n2 does not hear what n1 settles.
    world.net.dropped = Some(|envelope| envelope.to == NodeId(2) && settles(&envelope.message));
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    run(&mut world, 2_000)?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Merge { .. }));
    link(&mut world, 1, 2, true);
    has_settled(&world, 1, &late.0, true)?;
    has_settled(&world, 2, &late.0, false)?;
    comes_late(&mut world, 2, late)?;
    heal(&mut world)
}

/// P34: the same within one epoch of n1. n3 has led in an epoch below n1's, and in one above; the state that
/// it hands in to n1 comes late.
pub fn a_merge_outlives_its_disk_within_an_epoch() -> Check {
    let mut world = stage(3, 15)?;
    split(&mut world, &[&[1], &[2], &[3]]);
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    set(&mut world, 3, "only3", "3")?;
    link(&mut world, 1, 2, true);
    led(&mut world, &[(1, &[2])])?;
    for _ in 0..2 {
        world.crash(2, false);
        world.start(2)?;
        led(&mut world, &[(3, &[])])?;
    }
    set(&mut world, 3, "above", "3")?;
    let late = handed_in(&mut world, 1)?;
    split(&mut world, &[&[1, 2], &[3]]);
    world.wipe(2);
    run(&mut world, 3_000)?;
    world.start(2)?;
    world.net.heal();
    led(&mut world, &[(1, &[2, 3])])?;
    run(&mut world, 2_000)?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Merge { .. }));
    link(&mut world, 1, 2, true);
    comes_late(&mut world, 1, late)?;
    heal(&mut world)
}

/// P34: n3's data is under way to n1. Meanwhile n4 loses n1 for a moment and promises n2 a greater epoch, so
/// that n1 begins a still greater one.
pub fn a_merge_outlives_an_epoch() -> Check {
    let mut world = stage(4, 16)?;
    split(&mut world, &[&[1, 2, 4], &[3]]);
    led(&mut world, &[(1, &[2, 4]), (3, &[])])?;
    set(&mut world, 3, "only3", "3")?;
    let late = handed_in(&mut world, 1)?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Merge { .. }));
    let promise = |world: &World, node| core(world, node).map(|core| core.vote().promise.epoch);
    let epoch = promise(&world, 1);
    split(&mut world, &[&[1, 3], &[2, 4]]);
    let promised = world.run_until_true(world.now + 10_000 * MS, |world| promise(world, 4) > epoch)?;
    ensure(promised, "stage", || "n4 promises nothing".into())?;
    split(&mut world, &[&[1, 3, 4], &[2]]);
    let goes_on = world.run_until_true(world.now + 10_000 * MS, |world| promise(world, 1) > epoch)?;
    ensure(goes_on, "stage", || "n1 begins no greater epoch".into())?;
    led(&mut world, &[(1, &[4]), (2, &[]), (3, &[])])?;
    comes_late(&mut world, 1, late)?;
    let there = get(&world, 1, "only3");
    ensure(there.as_deref() == Some("3"), "P34 merges go on", || format!("n1 has {there:?}"))?;
    heal(&mut world)
}

/// The state that n3 had handed in arrives at this node once it leads, and waits for a merge.
fn comes_late(world: &mut World, node: u32, late: (Envelope, Option<Transfer>)) -> Check {
    let waits = |world: &World| leads(world, node) && core(world, node).is_some_and(Node::is_at_rest);
    let came = world.run_until_true(world.now + 10_000 * MS, waits)?;
    ensure(came, "stage", || format!("n{node} waits for no merge"))?;
    world.deliver(late.0, late.1)?;
    run(world, 100)
}

fn has_settled(world: &World, node: u32, merge: &Envelope, wanted: bool) -> Check {
    let Message::Merge { meta, .. } = &merge.message else {
        return ensure(false, "stage", || format!("{merge} hands nothing in"));
    };
    let vector = core(world, node).and_then(|core| core.log().vector());
    let settled = vector.is_some_and(|vector| vector.is_settled(meta.at));
    ensure(settled == wanted, "stage", || format!("n{node} has {vector:?}"))
}

fn settles(message: &Message) -> bool {
    let Message::Append { records, .. } = message else {
        return false;
    };
    records.iter().any(|record| matches!(record.entry, Entry::Settled { .. }))
}

/// The state that n3 hands in to this node, which it does not reach.
fn handed_in(world: &mut World, to: u32) -> Result<(Envelope, Option<Transfer>), Violation> {
    let merge = |envelope: &Envelope| matches!(envelope.message, Message::Merge { .. });
    world.recorder = Some(merge);
    world.net.dropped = Some(merge);
    link(world, to, 3, true);
    let came = world.run_until_true(world.now + 10_000 * MS, |world| !world.recorded.is_empty())?;
    ensure(came, "stage", || "n3 hands nothing in".into())?;
    world.recorder = None;
    world.net.dropped = None;
    Ok(world.recorded.swap_remove(0))
}

/// C22: one side deletes what the other changes, and something that the other does not touch.
pub fn delete_against_change() -> Check {
    let mut world = stage(3, 8)?;
    for key in ["a", "b", "c"] {
        set(&mut world, 1, key, "0")?;
    }
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    remove(&mut world, 1, "a")?;
    set(&mut world, 2, "a", "2")?;
    remove(&mut world, 2, "b")?;
    set(&mut world, 1, "b", "1")?;
    remove(&mut world, 2, "c")?;
    heal(&mut world)?;
    has(&world, "a", None)?;
    has(&world, "b", Some("1"))?;
    has(&world, "c", None)?;
    let lost = conflicts(&world);
    ensure(lost >= 1, "C23 nothing vanishes", || "the change of a is not in the journal".into())
}

/// C22: a delete that both have had stays a delete, through every later split.
pub fn delete_survives() -> Check {
    let mut world = stage(3, 9)?;
    set(&mut world, 1, "k", "0")?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    set(&mut world, 3, "other", "3")?;
    remove(&mut world, 1, "k")?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    ensure(get(&world, 3, "k").is_none(), "C22 a delete is kept", || "n3 has it still".into())?;
    heal(&mut world)?;
    has(&world, "k", None)?;
    counts(&world, 0)
}

/// A leader does not hear what the other side says, though the other side hears it: no merge, and no harm.
pub fn heard_one_way() -> Check {
    let mut world = split_in_two(12)?;
    for other in [2, 3] {
        world.net.mend(NodeId(1), NodeId(other));
    }
    run(&mut world, 8_000)?;
    set(&mut world, 1, "k", "111")?;
    world.net.heal();
    split(&mut world, &[&[1], &[2, 3]]);
    for other in [2, 3] {
        world.net.mend(NodeId(other), NodeId(1));
    }
    run(&mut world, 8_000)?;
    heal(&mut world)?;
    has(&world, "k", Some("111"))
}

/// P37: where nothing fails, an acknowledged write survives the loss of all disks but one.
pub fn acknowledged_is_on_every_disk() -> Check {
    let mut world = stage(3, 14)?;
    for round in 0..10 {
        set(&mut world, 1, "k", &round.to_string())?;
        let stored = world.stored(world.sides.newest);
        ensure(stored == 3, "P37 writes wait for the followers in step", || {
            format!("{stored} disks have it")
        })?;
    }
    heal(&mut world)
}

/// P37: a follower whose disk is slower than the patience for an append is in step all the same.
pub fn a_slow_disk_is_waited_for() -> Check {
    let mut world = stage(3, 16)?;
    set(&mut world, 1, "k", "0")?;
    (world.hosts[2].sync_us, world.hosts[2].steady) = (450_000, true);
    for round in 1..4 {
        set(&mut world, 1, "k", &round.to_string())?;
        let stored = world.stored(world.sides.newest);
        ensure(stored == 3, "P37 writes wait for the followers in step", || {
            format!("{stored} disks have it")
        })?;
    }
    heal(&mut world)
}

/// P33: n3, wiped, has records that n1 has never heard of; an override that n1 meant for n3's earlier log
/// arrives.
pub fn override_of_another_history() -> Check {
    let mut world = split_in_two(15)?;
    world.recorder = Some(|envelope| matches!(envelope.message, Message::Override { .. }));
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    let old = std::mem::take(&mut world.recorded);
    let wanted = old.iter().find(|(envelope, _)| envelope.to == NodeId(3));
    let (envelope, state) = match wanted {
        Some((envelope, state)) => (envelope.clone(), state.clone()),
        None => return ensure(false, "stage", || "n3 was not brought up".into()),
    };
    split(&mut world, &[&[1], &[2], &[3]]);
    world.wipe(2);
    world.start(2)?;
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    set(&mut world, 3, "k", "333")?;
    world.deliver(envelope, state)?;
    run(&mut world, 500)?;
    heal(&mut world)?;
    has(&world, "k", Some("1"))?;
    counts(&world, 2)
}

/// The links fail for less than a second in the middle of a heal.
#[derive(Clone, Copy, Debug)]
struct Cut {
    after_ms: u64,
    for_ms: u64,
    groups: &'static [&'static [u32]],
}

/// The end of a heal that is not disturbed.
fn healed() -> Result<(u64, World), Violation> {
    let mut world = split_in_two(13)?;
    let began = world.now;
    heal(&mut world)?;
    Ok(((world.now - began) / MS, world))
}

fn cut_short(cut: &Cut) -> Check {
    let mut world = split_in_two(13)?;
    world.net.heal();
    run(&mut world, cut.after_ms)?;
    split(&mut world, cut.groups);
    run(&mut world, cut.for_ms)?;
    heal(&mut world)?;
    let (_, undisturbed) = healed()?;
    ensure(data(&world) == data(&undisturbed), "C21 the order of merging does not matter", || {
        format!("{:?}, not {:?}", data(&world), data(&undisturbed))
    })
}

pub fn passes(scenario: fn() -> Check) {
    if let Err(violation) = scenario() {
        panic!("{}: {}", violation.checker, violation.what);
    }
}

#[test]
fn short_cuts_at_any_instant_of_a_heal() {
    let (took, world) = healed().expect("a heal that ends");
    assert_eq!(leaders(&world).len(), 1);
    let groups: [&'static [&'static [u32]]; 3] = [&[&[1], &[2, 3]], &[&[1, 2], &[3]], &[&[1, 3], &[2]]];
    let mut cuts = Vec::new();
    for after_ms in (0..took.max(400)).step_by(if crate::calm::is_full() { 2 } else { 12 }) {
        for for_ms in [30, 300, 900] {
            cuts.extend(groups.map(|groups| Cut { after_ms, for_ms, groups }));
        }
    }
    let runs = for_all(&cuts, cut_short);
    println!("{} short cuts within the {took} ms of a heal", runs.len());
}

macro_rules! tests {
    ($($name:ident)*) => {
        #[cfg(test)]
        mod tests {
            $(#[test] fn $name() { super::passes(super::$name) })*
        }
    };
}

tests! {
    one_against_two three_sides_meet_in_any_order the_third_hears_only_one returning_elder
    returning_youngest data_arrives_again late_merge repeated_splits delete_against_change delete_survives
    heard_one_way a_replaced_disk_hides_nothing an_old_copy_hides_nothing a_merge_outlives_its_disk
    a_merge_outlives_its_disk_within_an_epoch a_merge_outlives_an_epoch acknowledged_is_on_every_disk a_merge_is_lost_with_its_epoch
    a_slow_disk_is_waited_for override_of_another_history
}
