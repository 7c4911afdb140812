//! The cost of a failover, in rounds and durable writes, on machines that never vary: every message takes
//! `DELAY` one way and every sync `SYNC`. All time is simulated, so the bounds are asserted to the
//! microsecond, except for `SLACK`. `--nocapture` prints the tables.

use std::fmt::Write as _;

use eldest::protocol::{Envelope, Message, Timing};
use eldest::types::NodeId;

use crate::calm::{MS, Shape, bound, for_all, leader, ms};
use crate::checks::{Violation, ensure};
use crate::host::Host;
use crate::run::states;
use crate::world::{Event, World};

const DELAY: u64 = 500;
const SYNC: u64 = 1_000;
/// A question and its answer.
const ROUND: u64 = 2 * DELAY;
/// The simulator's timers are late by at most this, over all timers of one failover.
const SLACK: u64 = 50;

/// The way in which the leader goes, and what the others know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Its port refuses; it has named an heir.
    Refused,
    /// Its port refuses; it had no time to name an heir.
    RefusedWithoutHeir,
    /// Its port refuses; the heir lacks a record that others have.
    RefusedHeirLags,
    /// It falls silent.
    Silent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figure {
    /// From the death to the opened epoch of the successor.
    us: u64,
    /// From the death until the successor may say that it leads: the dead leader's leases have run out.
    lease_us: u64,
    successor: u32,
    messages: u64,
    bytes: u64,
    trace: u64,
}

/// The length of a message's debug form, with names of fields: about what its JSON would take.
fn debug_length(envelope: &Envelope) -> u64 {
    struct Count(u64);
    impl std::fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 += text.len() as u64;
            Ok(())
        }
    }
    let mut count = Count(0);
    write!(count, "{envelope:?}").map_or(0, |()| count.0)
}

fn shape(count: u32) -> Shape {
    Shape { clients: 0, steady: Some((DELAY, SYNC)), ..Shape::of(count) }
}

/// The instant before the death. `phase` says how far into a heartbeat's period it is.
fn stage(count: u32, death: Death, phase: u64) -> Result<World, Violation> {
    let mut world = match death {
        Death::RefusedHeirLags => lagging_heir(count)?,
        _ => shape(count).formed()?,
    };
    let until = world.now + phase;
    world.run_until(until)?;
    if death == Death::RefusedWithoutHeir {
        // The next leader dies before its second beat, which would have named an heir.
        world.crash(0, false);
        world.after(10 * MS, Event::Restart { node: 0 });
        let until = world.now + bound(&world);
        world.run_until_true(until, |world| leader(world) == Some(NodeId(2)))?;
        let until = world.now + 20 * MS;
        world.run_until(until)?;
    }
    Ok(world)
}

/// A cluster whose heir was not sent the newest records.
fn lagging_heir(count: u32) -> Result<World, Violation> {
    let used = Shape { clients: 1, think: (5 * MS, 5 * MS), ..shape(count) };
    let mut world = used.formed()?;
    world.clients.writes_only = true;
    world.net.dropped =
        Some(|envelope| envelope.to == NodeId(2) && matches!(envelope.message, Message::Append { .. }));
    let until = world.now + 30 * MS;
    world.run_until(until)?;
    world.clients.stopped = true;
    let until = world.now + 20 * MS;
    world.run_until(until)?;
    world.net.dropped = None;
    let last = |id| world.host(NodeId(id)).core().map(|core| core.last());
    ensure(last(2) < last(1), "stage", || "the heir lacks nothing".into())?;
    Ok(world)
}

fn kill(world: &mut World, node: usize, death: Death) {
    // A machine without power refuses nothing.
    world.hosts[node].powered = death != Death::Silent;
    world.crash(node, death == Death::Silent);
}

fn failover(count: u32, death: Death, phase: u64) -> Result<Figure, Violation> {
    let mut world = stage(count, death, phase)?;
    world.openings.clear();
    world.scale = Some(debug_length);
    (world.messages, world.bytes) = (0, 0);
    let (died, victim) = (world.now, if death == Death::RefusedWithoutHeir { 1 } else { 0 });
    kill(&mut world, victim, death);
    let until = died + bound(&world);
    let opened = world.run_until_true(until, |world| !world.openings.is_empty())?;
    ensure(opened, "I10 somebody leads", || states(&world))?;
    let (messages, bytes, us) = (world.messages, world.bytes, world.now - died);
    let sure = world.run_until_true(until, says_that_it_leads)?;
    ensure(sure, "P11 a lease", || states(&world))?;
    let successor = world.openings[0].1.0;
    Ok(Figure { us, lease_us: world.now - died, successor, messages, bytes, trace: world.trace_hash })
}

fn says_that_it_leads(world: &World) -> bool {
    let says = |host: &Host| {
        let now = host.clock.now(world.now).mono;
        host.core().is_some_and(|core| core.is_leader(now))
    };
    world.hosts.iter().any(says)
}

/// The worst figures over deaths at ten instants of a heartbeat's period (two, for more than 31 nodes).
fn worst(count: u32, death: Death) -> Figure {
    let phases: Vec<u64> = (0..10).map(|tenth| tenth * 10 * MS + 137).collect();
    let phases = if count > 31 { &phases[..2] } else { &phases[..] };
    let figures = for_all(phases, |phase| failover(count, death, *phase));
    figures.into_iter().fold(Figure::default(), |a, b| Figure {
        us: a.us.max(b.us),
        lease_us: a.lease_us.max(b.lease_us),
        messages: a.messages.max(b.messages),
        bytes: a.bytes.max(b.bytes),
        ..b
    })
}

/// The protocol's promise. A refused port is noticed one delay after the death. After silence, the last beat
/// was heard at most one delay after the death (and at least one heartbeat less a delay before it).
fn promised(death: Death, dead_after: u64) -> u64 {
    let rounds = match death {
        Death::Refused => 2,
        Death::RefusedWithoutHeir | Death::RefusedHeirLags | Death::Silent => 3,
    };
    let noticed = if death == Death::Silent { dead_after + DELAY } else { DELAY };
    noticed + rounds * ROUND + 2 * SYNC
}

#[test]
fn failover_takes_three_rounds_and_two_writes() {
    let deaths = [Death::Refused, Death::RefusedWithoutHeir, Death::RefusedHeirLags, Death::Silent];
    let dead_after = Timing::lan().dead_after.0;
    println!("one way {DELAY} us, a sync {SYNC} us, nothing varies; longest of ten instants, in ms");
    println!("| nodes | heir known | no heir named | heir lacks records | after silence |");
    println!("|---:|---:|---:|---:|---:|");
    for count in [3, 5, 7, 31] {
        let mut row = format!("| {count} |");
        for death in deaths {
            let (figure, most) = (worst(count, death), promised(death, dead_after));
            let _ = write!(row, " {} of {} |", ms(figure.us), ms(most));
            assert!(figure.us <= most + SLACK, "{count} nodes, {death:?}: {figure:?}, promised {most}");
        }
        println!("{row}");
    }
}

#[test]
fn the_price_of_a_failover() {
    println!(
        "from the death of n1 (its port refuses) to the open epoch of n2; bytes: length of the debug form"
    );
    println!(
        "| nodes | ms to the open epoch | ms to its lease | messages | bytes | messages a node | ms after silence | messages | bytes |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for count in [3, 5, 7, 31, 101] {
        let (refused, silent) = (worst(count, Death::Refused), worst(count, Death::Silent));
        println!(
            "| {count} | {} | {} | {} | {} | {:.1} | {} | {} | {} |",
            ms(refused.us),
            ms(refused.lease_us),
            refused.messages,
            refused.bytes,
            refused.messages as f64 / f64::from(count),
            ms(silent.us),
            silent.messages,
            silent.bytes,
        );
        // The last beat was granted one delay after the death; the rest of that lease travels with the
        // approval.
        let lease = Timing::lan().lease.0 + DELAY + SYNC + ROUND;
        assert!(refused.lease_us <= lease + SLACK, "{count} nodes: {refused:?}");
        assert!(refused.us <= promised(Death::Refused, 0) + SLACK, "{count} nodes: {refused:?}");
    }
}

#[test]
fn the_same_inputs_elect_the_same_successor() {
    for count in [3, 5, 7] {
        for death in [Death::Refused, Death::RefusedWithoutHeir, Death::RefusedHeirLags, Death::Silent] {
            let run = || failover(count, death, 33 * MS).expect("a failover");
            assert_eq!(run(), run(), "{count} nodes, {death:?}");
        }
    }
}
