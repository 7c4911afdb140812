//! Two sides that hear each other and cannot become one: clients are served on both, and an operator learns
//! the reason (P48).

use eldest::protocol::{Impasse, Message, Node};
use eldest::types::NodeId;

use super::stage::{heal, led, set, split, stage};
use crate::checks::{Check, Violation, ensure};
use crate::stage::{MS, core, run};
use crate::world::World;

const SERVED: &str = "P48 both sides serve their clients";

/// n1 is apart from n2 with n3. Three keys are written on both sides, and one key on each.
fn apart(adjust: impl Fn(&mut eldest::protocol::Limits)) -> Result<World, Violation> {
    let mut world = stage(3, 41)?;
    for node in 0..3 {
        adjust(&mut world.hosts[node].settings.limits);
        world.crash(node, false);
        world.start(node)?;
    }
    led(&mut world, &[(1, &[2, 3])])?;
    split(&mut world, &[&[1], &[2, 3]]);
    led(&mut world, &[(1, &[]), (2, &[3])])?;
    for (node, value) in [(1, "1"), (2, "2")] {
        for key in ["a", "b", "c"] {
            set(&mut world, node, key, value)?;
        }
        set(&mut world, node, &format!("own{node}"), value)?;
    }
    Ok(world)
}

fn holds(world: &World, node: u32) -> bool {
    core(world, node).is_none_or(Node::service_is_down)
}

fn knows(world: &World, node: u32, is_it: fn(&Impasse) -> bool) -> bool {
    core(world, node).is_some_and(|core| core.impasses().any(|(_, why)| is_it(why)))
}

/// They meet. After a while one node knows why nothing comes of it, and both sides take writes.
fn come_to_nothing(world: &mut World, knower: u32, is_it: fn(&Impasse) -> bool) -> Check {
    split(world, &[&[1, 2, 3]]);
    let known = world.run_until_true(world.now + 40_000 * MS, |world| knows(world, knower, is_it))?;
    ensure(known, SERVED, || format!("n{knower} does not know why they do not merge"))?;
    let up = world.run_until_true(world.now + 10_000 * MS, |world| !holds(world, 1) && !holds(world, 2))?;
    ensure(up, SERVED, || format!("still down: n1 {}, n2 {}", holds(world, 1), holds(world, 2)))?;
    set(world, 1, "after1", "1")?;
    set(world, 2, "after2", "2")?;
    // From then on each side is served at least half of the time.
    let mut served = [0, 0];
    for _ in 0..120 {
        run(world, 1_000)?;
        for (node, served) in [1, 2].into_iter().zip(&mut served) {
            *served += u32::from(!holds(world, node));
        }
    }
    ensure(served.iter().all(|served| *served >= 50), SERVED, || format!("for {served:?} s of 120"))
}

/// The state that the younger side hands in never arrives.
pub fn nothing_comes() -> Check {
    let mut world = apart(|_| {})?;
    world.net.dropped = Some(|envelope| matches!(envelope.message, Message::Merge { .. }));
    come_to_nothing(&mut world, 1, |why| matches!(why, Impasse::NothingComes))?;
    world.net.dropped = None;
    comes_off_in_the_end(&mut world)
}

/// The state that the younger side would hand in is more than a node takes; an operator raises the bound.
pub fn too_large() -> Check {
    let mut world = apart(|limits| limits.merge_bytes = 200)?;
    come_to_nothing(&mut world, 2, |why| matches!(why, Impasse::TooLarge { .. }))?;
    restart_with(&mut world, |limits| limits.merge_bytes = 1 << 20)?;
    heal(&mut world)
}

/// The merge would make three entries in a journal that takes two; an operator raises the bound.
pub fn journal_is_full() -> Check {
    let mut world = apart(|limits| limits.conflicts = 2)?;
    come_to_nothing(&mut world, 1, |why| matches!(why, Impasse::JournalFull { entries: 3, .. }))?;
    let kept = (0..3).all(|node| world.side(node).store.conflict_count() <= 2);
    ensure(kept, "P48 the journal has a bound", || "it has more entries than it may".into())?;
    restart_with(&mut world, |limits| limits.conflicts = 3)?;
    heal(&mut world)?;
    let entries = world.side(0).store.conflict_count();
    ensure(entries == 3, "C21 what lost is in the journal", || format!("{entries} entries"))
}

/// The other way out: one side gives up its own values.
pub fn journal_gets_room() -> Check {
    let mut world = apart(|limits| limits.conflicts = 2)?;
    come_to_nothing(&mut world, 1, |why| matches!(why, Impasse::JournalFull { .. }))?;
    for key in ["a", "b", "c"] {
        let up = world.run_until_true(world.now + 2_400_000 * MS, |world| !holds(world, 2))?;
        ensure(up, SERVED, || "n2 takes no writes".into())?;
        set(&mut world, 2, key, "1")?;
    }
    // The same value on both sides is no conflict.
    comes_off_in_the_end(&mut world)
}

fn restart_with(world: &mut World, adjust: impl Fn(&mut eldest::protocol::Limits)) -> Check {
    for node in 0..3 {
        adjust(&mut world.hosts[node].settings.limits);
        world.crash(node, false);
        world.start(node)?;
    }
    Ok(())
}

/// The sides rest, and try again by themselves.
fn comes_off_in_the_end(world: &mut World) -> Check {
    let rest = 64 * 60_000 * MS;
    let one = world.run_until_true(world.now + rest, |world| {
        (1..=3).all(|node| core(world, node).is_some_and(|core| core.leader() == Some(NodeId(1))))
    })?;
    ensure(one, "P34 sides become one", || "they do not try again".into())?;
    heal(world)
}

#[test]
fn sides_that_cannot_become_one_serve_their_clients() {
    let scenarios = [
        ("nothing comes", nothing_comes as fn() -> Check),
        ("too large", too_large),
        ("journal is full", journal_is_full),
        ("journal gets room", journal_gets_room),
    ];
    for (name, scenario) in scenarios {
        assert_eq!(crate::guarded::guarded(scenario), Ok(()), "{name}");
    }
}
