//! The distances between nodes that each set of timings allows: from the start to a leader, and from the
//! death of a leader to the next.

use eldest::protocol::Timing;

use crate::stage::{MS, leads, started};
use crate::world::World;

/// The times in ms to the first leader, after the leader's port refuses, and after it is cut off, if they
/// end.
type Figures = [Option<u64>; 3];

fn until_led(world: &mut World, id: u32) -> Option<u64> {
    let from = world.now;
    let led = world.run_until_true(from + 120_000 * MS, |world| leads(world, id));
    led.expect("no violation").then(|| (world.now - from) / MS)
}

fn figures(timing: &Timing, round_trip_ms: u64) -> Figures {
    let start = || {
        let mut world = started(3, 51, |settings| settings.timing = timing.clone()).expect("it starts");
        let one_way = round_trip_ms * MS / 2;
        world.net.delay = (one_way, one_way + one_way / 50);
        world
    };
    let mut world = start();
    let first = until_led(&mut world, 1);
    let after = |cut: bool| {
        let mut world = start();
        until_led(&mut world, 1)?;
        world.run_until(world.now + 10_000 * MS).expect("no violation");
        if cut {
            world.cut_off(0);
        } else {
            world.crash(0, false);
        }
        until_led(&mut world, 2)
    };
    [first, after(false), after(true)]
}

#[test]
fn how_far_apart_nodes_may_be() {
    println!("| timings | round trip ms | first leader ms | after a crash ms | after a cut ms |");
    println!("|---|---:|---:|---:|---:|");
    for (name, timing) in [("lan", Timing::lan()), ("wan", Timing::wan())] {
        for round_trip in [1, 20, 40, 80, 100, 160, 250, 400, 600] {
            let [first, crashed, cut] = figures(&timing, round_trip);
            let shown = [first, crashed, cut].map(|ms| ms.map_or("never".into(), |ms: u64| ms.to_string()));
            println!("| {name} | {round_trip} | {} |", shown.join(" | "));
            // The profiles promise a round trip within a heartbeat, and four of them for an election.
            if round_trip * MS <= timing.heartbeat.0 {
                let (rounds, patience) = (4 * round_trip + 50, timing.dead_after.0 / MS);
                assert!(first.is_some_and(|ms| ms <= rounds), "{name}, {round_trip} ms: {first:?}");
                assert!(crashed.is_some_and(|ms| ms <= rounds), "{name}, {round_trip} ms: {crashed:?}");
                assert!(cut.is_some_and(|ms| ms <= patience + rounds), "{name}, {round_trip} ms: {cut:?}");
            }
        }
    }
}
