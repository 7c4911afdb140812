//! The story says why a leader lost the lead, and what it and others noted about it (P58).

use eldest::protocol::{Cause, Takeover};
use eldest::types::Span;

use crate::checks::{Check, ensure};
use crate::guarded::guarded;
use crate::stage::{MS, leads, run, stage};
use crate::world::World;

const NAME: &str = "P58 the story is whole";

/// n1 stands still, n2 leads, and n1 finds out for how long it stood still.
pub fn a_leader_stands_still() -> Check {
    let mut world = stage(3, 41, |settings| settings.takeover = Takeover::Never)?;
    world.hosts[0].paused_until = world.now + 3_000 * MS;
    run(&mut world, 5_000)?;
    ensure(leads(&world, 2), NAME, || format!("{:?}", world.openings))?;
    let story = world.checks.story.newest();
    let silence = story.as_ref().and_then(|change| change.cause()?.entry.cause.clone());
    ensure(silence.as_deref() == Some(Cause::Silence.word()), NAME, || format!("{story:#?}"))?;
    let slept = |ms: u64| (2_900..=3_000).contains(&ms);
    let says = story.as_ref().is_some_and(|change| {
        change
            .testimony()
            .iter()
            .any(|step| step.entry.event == "slept" && step.entry.for_ms.is_some_and(slept))
    });
    ensure(says, NAME, || format!("n1 does not say that it stood still: {story:#?}"))
}

/// n1 dies twice in a row: n2 and n3 say for how long others come before it. Meanwhile n2's wall clock is set back by an hour.
pub fn a_leader_dies_twice() -> Check {
    let mut world = stage(3, 42, |settings| {
        settings.takeover = Takeover::WhenStable;
        settings.timing.stable_for = Span::millis(500);
    })?;
    for _ in 0..2 {
        world.crash(0, false);
        run(&mut world, 500)?;
        world.start(0)?;
        run(&mut world, 3_000)?;
        world.hosts[1].clock.wall_offset -= 3_600_000 * MS as i64;
    }
    run(&mut world, 1_000)?;
    for (node, event) in [(1, "held"), (2, "held"), (1, "clock_set")] {
        let notes = world.checks.story.notes(node, event);
        ensure(notes > 0, NAME, || format!("machine {node} has not noted {event}"))?;
    }
    Ok(())
}

/// Every kind of hand-over says why it happened.
pub fn a_leader_hands_over() -> Check {
    let mut world = stage(3, 43, |settings| {
        settings.takeover = Takeover::WhenStable;
        settings.timing.stable_for = Span::millis(500);
    })?;
    world.crash(0, false);
    run(&mut world, 2_000)?;
    world.start(0)?;
    run(&mut world, 5_000)?;
    reason(&world, "elder")?;
    world.hand_over(0, None)?;
    run(&mut world, 300)?;
    reason(&world, "ordered")
}

fn reason(world: &World, reason: &str) -> Check {
    let story = world.checks.story.newest();
    let told = story.as_ref().and_then(|change| change.cause()?.entry.cause.clone());
    ensure(told.as_deref() == Some(reason), NAME, || format!("not {reason}: {story:#?}"))
}

#[test]
fn stories_are_whole() {
    for (name, scenario) in [
        ("it stands still", a_leader_stands_still as fn() -> Check),
        ("it dies twice", a_leader_dies_twice),
        ("it hands over", a_leader_hands_over),
    ] {
        if let Err(violation) = guarded(scenario) {
            panic!("{name}: {} {}", violation.checker, violation.what);
        }
    }
}
