//! The cost of leases: renewals make no records, and a change of leader makes none either.

use std::time::Instant;

use eldest::leases::{Leases, Outcome};
use eldest::store::{Command, LeaseOperation, Operation, Store};
use eldest::types::{
    Entry, Epoch, LeaseName, NodeId, Payload, Position, Record, Span, Stamp, Time, WallTime,
};

use super::plan::process;
use super::stage::{gets, run, stage};
use crate::checks::Violation;

const SECOND: u64 = 1_000_000;
const PROCESSES: u64 = 100_000;
const TTL: Span = Span::millis(45_000);

/// Records of kinds 107 and 108: leases that end, age or are refreshed.
fn due_records(world: &crate::world::World) -> usize {
    world.witness().records.range(107..=108).map(|(_, count)| count).sum()
}

/// A holder that renews in time, for a minute, with a change of leader in the middle.
fn calm_minute() -> Result<usize, Violation> {
    let mut world = stage(9, 1, 2_000)?;
    gets(&mut world, 0, 1)?;
    world.lessees_mut().steady = true;
    world.contender(0).idle = false;
    world.wakes_after(0, 100_000);
    run(&mut world, 30_000)?;
    world.hand_over(0, Some(NodeId(2)))?;
    run(&mut world, 30_000)?;
    assert!(world.contender(0).believes_until.0 > 0, "it holds on to the end");
    assert_eq!(world.witness().expired, 0);
    Ok(due_records(&world))
}

#[test]
fn who_renews_in_time_makes_no_records() {
    assert_eq!(calm_minute(), Ok(0));
}

fn registered() -> Store {
    let mut store = Store::default();
    let process = std::sync::Arc::new(process(TTL));
    for number in 1..=PROCESSES {
        let id = format!("p{number}").into();
        let operation = LeaseOperation::Register { id, process: process.clone() };
        apply(&mut store, Command::Single(Operation::Lease(operation.into())).to_payload(None));
    }
    store
}

fn apply(store: &mut Store, payload: Payload) {
    let index = store.applied().index + 1;
    let position = Position::new(Epoch::new(1, NodeId(1)), index);
    let stamp = Stamp { wall: WallTime(index), cluster: Span(index) };
    store.apply(&Record { position, stamp, entry: Entry::Client(payload) }).expect("a record of this test");
}

/// Renews each lease every ten seconds for this long, and counts the records that fall due.
fn beat(leases: &mut Leases, all: &[(LeaseName, u64)], from: Time, seconds: u64) -> usize {
    let mut records = 0;
    let slices = 1000;
    let slice = all.len() / slices;
    for step in 0..seconds * slices as u64 / 10 {
        let now = from + Span(step * 10 * SECOND / slices as u64);
        let turn = step as usize % slices;
        for (name, token) in &all[turn * slice..(turn + 1) * slice] {
            leases.renew(now, name, *token, None).expect("it is held");
        }
        records += usize::from(now >= leases.deadline() && !leases.due(now).is_empty());
    }
    records
}

/// No holder lives: counts the records that it takes to end all leases.
fn die_out(store: &mut Store, leases: &mut Leases) -> usize {
    let mut records = 0;
    while leases.deadline() != Time::NEVER {
        let now = leases.deadline();
        let due = leases.due(now);
        let names: Vec<LeaseName> =
            due.end.iter().chain(&due.age).chain(&due.refresh).map(|(name, _)| name.clone()).collect();
        let operation = match due.end.is_empty() {
            false => LeaseOperation::End { leases: due.end },
            true => LeaseOperation::Age { aged: due.age, renewed: due.refresh },
        };
        apply(store, Command::Single(Operation::Lease(operation.into())).to_payload(None));
        for name in names {
            let lease = store.lease(&name);
            leases.changed(now, name, lease);
        }
        leases.settled(now, Outcome::Applied);
        records += 1;
    }
    records
}

#[test]
fn a_hundred_thousand_processes() {
    let mut store = registered();
    let all: Vec<(LeaseName, u64)> = store.leases().map(|(name, lease)| (name, lease.token)).collect();
    assert_eq!(all.len() as u64, PROCESSES);
    let (mut leases, begins) = (Leases::default(), Time(1_000 * SECOND));
    leases.lead(begins, store.leases());
    let clock = Instant::now();
    assert_eq!(beat(&mut leases, &all, begins, 60), 0);
    let renewals = clock.elapsed() / (6 * PROCESSES as u32);

    let mut next = Leases::default();
    let failover = Time(2_000 * SECOND);
    let clock = Instant::now();
    next.lead(failover, store.leases());
    let lead = clock.elapsed();
    assert_eq!(beat(&mut next, &all, failover, 60), 0);

    let mut last = Leases::default();
    last.lead(Time(3_000 * SECOND), store.leases());
    let clock = Instant::now();
    let records = die_out(&mut store, &mut last);
    assert_eq!(store.leases().count(), 0);
    assert_eq!(records as u64, 2 * PROCESSES / 1000);
    println!(
        "{PROCESSES} processes: 0 records in a minute and over a change of leader, {renewals:?} a renewal; \
         a new leader begins to count in {lead:?}; all dead: {records} records in {:?}",
        clock.elapsed(),
    );
}
