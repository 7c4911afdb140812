//! Timelines of disks that begin, or begin again, while others cannot hear them (P36).

use eldest::protocol::{MemberChange, Mode};
use eldest::replica::Call;
use eldest::types::NodeId;

use super::stage::{counts, has, heal, led, run, set, split, stage, unformed};
use crate::checks::{Check, Checks, Violation, ensure};
use crate::stage::{MS, leads};
use crate::world::World;

/// A wiped node begins alone, twice, and takes writes each time; then it meets the others.
pub fn lone_beginner() -> Check {
    let mut world = stage(3, 10)?;
    set(&mut world, 1, "k", "0")?;
    for round in 1..3 {
        split(&mut world, &[&[1, 2], &[3]]);
        world.wipe(2);
        world.start(2)?;
        led(&mut world, &[(1, &[2]), (3, &[])])?;
        set(&mut world, 3, "k", &format!("3{round}"))?;
        set(&mut world, 3, &format!("round{round}"), "3")?;
        set(&mut world, 1, "k", &format!("1{round}"))?;
        world.net.heal();
        led(&mut world, &[(1, &[2, 3])])?;
    }
    heal(&mut world)?;
    has(&world, "k", Some("12"))?;
    has(&world, "round1", Some("3"))?;
    has(&world, "round2", Some("3"))
}

/// n2 leads its own side and is wiped. No other node has heard of its epoch when it follows n1, and later it
/// leads again.
pub fn let_in_again() -> Check {
    let mut world = stage(3, 12)?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &[(1, &[3]), (2, &[])])?;
    set(&mut world, 2, "k", "1")?;
    world.wipe(1);
    world.net.heal();
    world.start(1)?;
    led(&mut world, &[(1, &[2, 3])])?;
    set(&mut world, 1, "k", "2")?;
    world.crash(0, false);
    led(&mut world, &[(2, &[3])])?;
    set(&mut world, 2, "k", "3")?;
    world.start(0)?;
    heal(&mut world)?;
    has(&world, "k", Some("3"))
}

/// n2, wiped, begins at a distant counter, n1 goes on from there, and n2 leads alone in epochs above. Then it
/// is wiped again, begins below all that, hears of n1's counter, and leads once more.
pub fn begins_below_its_former_life() -> Check {
    let mut world = stage(3, 14)?;
    let alone = [(1, &[3][..]), (2, &[])];
    let first = begins_anew(&mut world)?;
    world.net.heal();
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &alone)?;
    for life in 0..3 {
        set(&mut world, 2, "k", &life.to_string())?;
        world.crash(1, false);
        world.start(1)?;
        led(&mut world, &alone)?;
    }
    let second = begins_anew(&mut world)?;
    ensure(second < first, "stage", || format!("it begins at {second}, above {first}"))?;
    world.net.heal();
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1, 3], &[2]]);
    led(&mut world, &alone)?;
    set(&mut world, 2, "k", "9")?;
    heal(&mut world)?;
    has(&world, "k", Some("9"))
}

/// n2 loses its disk, and leads alone. Returns its counter.
fn begins_anew(world: &mut World) -> Result<u64, Violation> {
    world.wipe(1);
    split(world, &[&[1, 3], &[2]]);
    world.start(1)?;
    led(world, &[(1, &[3]), (2, &[])])?;
    let core = world.host(NodeId(2)).core();
    Ok(core.map_or(0, |core| core.vote().promise.epoch.counter))
}

/// Three blank nodes begin apart, and each takes writes before it has ever heard another.
pub fn three_beginnings() -> Check {
    let mut world = unformed(3, 11);
    split(&mut world, &[&[1], &[2], &[3]]);
    for node in 0..3 {
        world.start(node)?;
    }
    led(&mut world, &[(1, &[]), (2, &[]), (3, &[])])?;
    for node in [3, 2, 1] {
        set(&mut world, node, "k", &node.to_string())?;
        set(&mut world, node, &format!("own{node}"), "1")?;
    }
    heal(&mut world)?;
    has(&world, "k", Some("1"))?;
    has(&world, "own3", Some("1"))?;
    counts(&world, 2)
}

/// P43: a cluster that was formed in safe mode, so that its log names its members, goes on in available mode.
/// One side is ordered to remove the node that is the other side: in this mode the topology file says which
/// nodes belong together.
pub fn formed_in_safe_mode() -> Check {
    let mut world = unformed(3, 13);
    world.hosts.iter_mut().for_each(|host| host.settings.mode = Mode::Safe);
    for node in (0..3).rev() {
        world.start(node)?;
    }
    let formed = world.run_until_true(10_000 * MS, |world| leads(world, 1))?;
    ensure(formed, "stage", || "n1 does not lead".into())?;
    run(&mut world, 500)?;
    for node in 0..3 {
        world.crash(node, false);
        world.hosts[node].settings.mode = Mode::Available;
    }
    world.checks = Checks::default();
    world.checks.lease.void = true;
    for node in (0..3).rev() {
        world.start(node)?;
    }
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1, 2], &[3]]);
    led(&mut world, &[(1, &[2]), (3, &[])])?;
    set(&mut world, 3, "own3", "1")?;
    world.order(0, Call::ChangeMembers(MemberChange::Remove(NodeId(3))))?;
    run(&mut world, 500)?;
    set(&mut world, 1, "own1", "1")?;
    heal(&mut world)?;
    has(&world, "own1", Some("1"))?;
    has(&world, "own3", Some("1"))
}

#[cfg(test)]
mod tests {
    use super::super::scenarios::passes;

    #[test]
    fn lone_beginner() {
        passes(super::lone_beginner);
    }

    #[test]
    fn let_in_again() {
        passes(super::let_in_again);
    }

    #[test]
    fn begins_below_its_former_life() {
        passes(super::begins_below_its_former_life);
    }

    #[test]
    fn formed_in_safe_mode() {
        passes(super::formed_in_safe_mode);
    }

    #[test]
    fn three_beginnings() {
        passes(super::three_beginnings);
    }
}
