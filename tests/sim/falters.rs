//! Leaders that fall silent for a while and come back. This costs two changes of leader, away and back, not
//! two each time.

use eldest::protocol::Takeover;

use crate::checks::{Check, ensure};
use crate::stage::{MS, core, leads, run, stage, write};

/// Longer than `dead_after`, and no longer than patience can grow.
const PAUSE_MS: u64 = 800;

/// n1 stops for 0.8 s every 20 s. It is given up once, and takes over again; from then on the others wait for
/// it.
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

/// A silence is forgotten a minute later.
fn a_leader_that_has_recovered() -> Check {
    let mut world = stage(3, 1, |settings| settings.takeover = Takeover::WhenStable)?;
    world.hosts[0].paused_until = world.now + PAUSE_MS * MS;
    run(&mut world, 80_000)?;
    let changes = world.openings.len();
    world.hosts[0].paused_until = world.now + PAUSE_MS * MS;
    run(&mut world, PAUSE_MS)?;
    ensure(world.openings.len() == changes + 1, "P3 patience ends", || format!("{:?}", world.openings))
}

/// Both followers' disks stand still for two seconds, under writes. No node could lead better, so beats and
/// linear reads go on.
pub fn disks_that_stall() -> Check {
    let mut world = stage(3, 1, |_| {})?;
    for node in [1, 2] {
        (world.hosts[node].sync_us, world.hosts[node].steady) = (2_000 * MS, true);
    }
    write(&mut world, 1, 1);
    run(&mut world, 1_000)?;
    let now = world.hosts[0].clock.now(world.now).mono;
    let leading = core(&world, 1).is_some_and(|core| core.is_leader(now));
    ensure(leading, "P29 beats are answered", || crate::run::states(&world))?;
    run(&mut world, 3_000)?;
    let changes = world.openings.len();
    ensure(changes == 1, "P29 stalled disks change no leader", || format!("{:?}", world.openings))
}

#[test]
fn leaders_that_falter() {
    for (name, scenario) in [
        ("it falters again and again", a_leader_that_falters as fn() -> Check),
        ("it has recovered", a_leader_that_has_recovered),
        ("disks stall", disks_that_stall),
    ] {
        if let Err(violation) = scenario() {
            panic!("{name}: {}: {}", violation.checker, violation.what);
        }
    }
}
