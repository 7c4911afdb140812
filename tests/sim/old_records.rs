//! P7, the classic: why a record of an old epoch is not committed by counting.

use eldest::protocol::{Envelope, Message};
use eldest::types::NodeId;

use crate::checks::{Check, ensure};
use crate::stage::{MS, core, linearizable, link, run, stage, write};
use crate::world::World;

/// A record of an old epoch reaches a majority under a new leader, which dies before any record that it wrote
/// does. A node with a later epoch's record then leads without it.
pub fn old_record_reaches_a_majority() -> Check {
    let mut world = stage(5, 14, |settings| {
        settings.limits.batch = 1;
        settings.limits.inflight = 1;
        settings.limits.keep = 1_000;
    })?;
    for other in [3, 4, 5] {
        link(&mut world, 1, other, false);
    }
    write(&mut world, 1, 1);
    run(&mut world, 5)?;
    world.crash(0, true);
    // n3 does not open its epoch: its own first record stays with it.
    world.cut_off(1);
    world.net.mend(NodeId(1), NodeId(3));
    for (a, b) in [(3, 4), (3, 5), (4, 5)] {
        link(&mut world, a, b, true);
    }
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Append { .. }));
    let claimed = world.run_until_true(world.now + 4_000 * MS, |world| {
        core(world, 3).is_some_and(|node| node.leads().is_some() && node.last().epoch.leader == NodeId(3))
    })?;
    ensure(claimed, "stage", || "n3 does not claim".into())?;
    run(&mut world, 5)?;
    world.crash(2, true);
    lead_with_old_records(&mut world)?;
    lead_with_later_record(&mut world)
}

fn lead_with_old_records(world: &mut World) -> Check {
    world.net.heal();
    let first = core(world, 2).map_or(0, |node| node.last().index);
    ensure(first == 2, "stage", || format!("n2 ends at {first}"))?;
    world.net.dropped = Some(opening_append);
    world.start(0)?;
    let led = world.run_until_true(world.now + 6_000 * MS, |world| {
        core(world, 1).is_some_and(|node| node.leads().is_some())
            && [4, 5].iter().all(|id| core(world, *id).is_some_and(|node| node.last().index == 2))
    })?;
    ensure(led, "stage", || "n1 does not bring its old record to the others".into())?;
    run(world, 20)?;
    world.crash(0, true);
    world.net.dropped = None;
    Ok(())
}

/// Appends that carry the record which opens the third epoch, or a later one.
fn opening_append(envelope: &Envelope) -> bool {
    match &envelope.message {
        Message::Append { records, .. } => records.iter().any(|record| record.epoch().counter >= 3),
        _ => false,
    }
}

fn lead_with_later_record(world: &mut World) -> Check {
    world.net.heal();
    world.cut_off(1);
    world.cut_off(0);
    world.start(2)?;
    run(world, 6_000)?;
    world.net.heal();
    world.start(0)?;
    run(world, 4_000)?;
    linearizable(world)
}
