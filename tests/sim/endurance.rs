//! Long stretches of simulated time: an elder that keeps dying, a node that was away for a long time, a node
//! that is not heard or does not hear.

use eldest::protocol::{Takeover, Timing};
use eldest::types::NodeId;

use crate::calm::{MS, SECOND, Shape, ends_well, for_all, is_full, ms};
use crate::checks::{Violation, ensure};
use crate::world::{Event, World};

/// The eldest dies once in each `PERIOD`, and stays away for `DOWN`.
const PERIOD: u64 = 20 * SECOND;
const DOWN: u64 = 2 * SECOND;
const HOUR: u64 = 3_600 * SECOND;

/// The number of times that an elder which dies every `PERIOD` may take over in between. It may take over as
/// long as it is not on hold for longer than it lives. The hold starts with the second death and doubles.
fn takeovers(timing: &Timing) -> usize {
    let steady = DOWN + timing.stable_for.0;
    let hold = |deaths: u32| match deaths {
        0 | 1 => 0,
        more => timing.hold.times(1 << (more - 2).min(20)).0.min(timing.hold_most.0),
    };
    (1..20).filter(|deaths| steady.max(hold(*deaths)) < PERIOD).count()
}

/// The time without an acknowledged write: the sum of all waits between two that are over 50 ms.
fn without_writes(world: &World, from: u64) -> u64 {
    let times = world.clients.writes.iter().map(|(_, acknowledged)| *acknowledged);
    let times: Vec<u64> = [from].into_iter().chain(times).chain([world.now]).collect();
    let waits = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    waits.filter(|wait| *wait > 50 * MS).sum()
}

fn hour_of_deaths(takeover: Takeover) -> Result<(), Violation> {
    let think = if is_full() { 10 * MS } else { 25 * MS };
    let shape = Shape { takeover, keep: 100, clients: 1, think: (think, think), ..Shape::of(3) };
    let mut world = shape.formed()?;
    world.clients.writes_only = true;
    world.clients.writes.clear();
    let began = world.now;
    while world.now < began + HOUR {
        let next = world.now + PERIOD;
        world.run_until(next)?;
        world.crash(0, false);
        world.after(DOWN, Event::Restart { node: 0 });
    }
    let until = world.now + DOWN;
    world.run_until(until)?;
    let without = without_writes(&world, began);
    let availability = 100.0 - 100.0 * without as f64 / (world.now - began) as f64;
    let changes = world.openings.len();
    let most = match takeover {
        Takeover::Never => 1,
        Takeover::WhenStable => 1 + 2 * takeovers(&world.hosts[0].settings.timing),
    };
    println!(
        "{takeover:?}: {} writes, {availability:.4}% of the time with writes ({} ms without), {changes} changes of leader, at most {most}",
        world.clients.writes.len(),
        ms(without)
    );
    ensure(availability >= 99.0, "available", || format!("{availability}%"))?;
    ensure(changes <= most, "P20 bounded changes", || format!("{:?}", world.openings))?;
    ends_well(&mut world).map(|_| ())
}

#[test]
fn an_eldest_that_keeps_dying() {
    for_all(&[Takeover::Never, Takeover::WhenStable], |takeover| hour_of_deaths(*takeover));
}

/// The traffic that a node's links let through while it is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Isolated,
    /// It is heard but hears nothing.
    Deaf,
    /// It hears but is not heard.
    Mute,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    count: u32,
    node: u32,
    away: Away,
    seconds: u64,
    keep: u64,
}

fn cut(world: &mut World, id: NodeId, away: Away) {
    for other in world.others(id) {
        if away != Away::Deaf {
            world.net.cut(id, other);
        }
        if away != Away::Mute {
            world.net.cut(other, id);
        }
    }
}

/// n1 leads. While n1 is away one successor leads; while another node is away nothing changes. When the node
/// is back nothing changes either.
fn absence(case: &Case) -> Result<(), Violation> {
    let think = (50 * MS, 300 * MS);
    let mut world = Shape { keep: case.keep, think, ..Shape::of(case.count) }.formed()?;
    cut(&mut world, NodeId(case.node), case.away);
    let until = world.now + case.seconds * SECOND;
    world.run_until(until)?;
    let expected = usize::from(case.node == 1);
    ensure(world.openings.len() == expected, "P4 no change while it is away", || {
        format!("{:?}", world.openings)
    })?;
    world.net.heal();
    let until = world.now + 30 * SECOND;
    world.run_until(until)?;
    ensure(world.openings.len() == expected, "P4 no change when it is back", || {
        format!("{:?}", world.openings)
    })?;
    ends_well(&mut world).map(|_| ())
}

#[test]
fn ten_minutes_away() {
    let mut cases = Vec::new();
    for (count, keep) in [(3, 10_000), (3, 0), (5, 10_000)] {
        cases.extend((1..=count).map(|node| Case { count, node, away: Away::Isolated, seconds: 600, keep }));
    }
    for_all(&cases, absence);
}

#[test]
fn one_that_does_not_hear_unseats_nobody() {
    let mut cases = Vec::new();
    for away in [Away::Deaf, Away::Mute] {
        for count in [3, 5] {
            cases.extend((1..=count).map(|node| Case { count, node, away, seconds: 60, keep: 10_000 }));
        }
    }
    for_all(&cases, absence);
}
