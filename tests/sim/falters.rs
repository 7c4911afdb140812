//! Leaders that fall silent for a while and come back: it costs one change of leader, not one each time.

use eldest::protocol::Takeover;

use crate::checks::{Check, ensure};
use crate::stage::{MS, leads, run, stage};

/// Longer than `dead_after`, and no longer than a patience can become.
const PAUSE_MS: u64 = 800;

/// n1 stops for 0.8 s every 20 s. Once it is given up, and takes over again; then it is waited for.
pub fn a_leader_that_falters() -> Check {
    let mut world = stage(3, 1, |settings| settings.takeover = Takeover::WhenStable)?;
    for _ in 0..8 {
        world.hosts[0].paused_until = world.now + PAUSE_MS * MS;
        run(&mut world, 20_000)?;
        ensure(leads(&world, 1), "P3 the elder is back", || format!("{:?}", world.openings))?;
    }
    let changes = world.openings.len();
    ensure(changes == 3, "P3 a leader that falters is waited for", || format!("{:?}", world.openings))
}

/// It is forgotten a minute after the last time.
fn a_leader_that_has_recovered() -> Check {
    let mut world = stage(3, 1, |settings| settings.takeover = Takeover::WhenStable)?;
    world.hosts[0].paused_until = world.now + PAUSE_MS * MS;
    run(&mut world, 80_000)?;
    let changes = world.openings.len();
    world.hosts[0].paused_until = world.now + PAUSE_MS * MS;
    run(&mut world, PAUSE_MS)?;
    ensure(world.openings.len() == changes + 1, "P3 patience ends", || format!("{:?}", world.openings))
}

#[test]
fn leaders_that_falter() {
    for (name, scenario) in [
        ("it falters again and again", a_leader_that_falters as fn() -> Check),
        ("it has recovered", a_leader_that_has_recovered),
    ] {
        if let Err(violation) = scenario() {
            panic!("{name}: {}: {}", violation.checker, violation.what);
        }
    }
}
